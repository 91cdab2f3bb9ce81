//! Bundles cut along time, joined, packed and split by rows.

use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use std::ops::Range;

/// Whether an input has one entry, or as many as the algorithm steps, for each token (its third axis).
fn has_tokens(rule: &rule::UpdateRule, name: &str) -> bool {
    let param = || rule.layer.params.iter().find(|p| p.tensor == name);
    let per_token = |p: &spec::Param| matches!(p.source, spec::Source::Learned(_) | spec::Source::Input);
    matches!(name, "q" | "k" | "v" | "grad.o") || param().is_some_and(per_token)
}

/// The tokens of a range out of inputs for `tokens` tokens. Initial weights stay.
pub fn tokens(
    rule: &rule::UpdateRule,
    data: &host::Bundle,
    tokens: usize,
    range: Range<usize>,
) -> host::Bundle {
    let cut = |(name, tensor): (&str, &std::sync::Arc<host::Tensor>)| {
        if !has_tokens(rule, name) {
            return (name.to_string(), host::Tensor::clone(tensor));
        }
        let entries = tensor.shape[2] / tokens.max(1);
        (name.to_string(), along(tensor, 2, range.start * entries..range.end * entries))
    };
    data.iter().map(cut).collect()
}

/// One row of the batch.
pub fn row(rule: &rule::UpdateRule, data: &host::Bundle, row: usize) -> host::Bundle {
    let cut = |(name, tensor): (&str, &std::sync::Arc<host::Tensor>)| match has_tokens(rule, name) {
        true => (name.to_string(), along(tensor, 0, row..row + 1)),
        false => (name.to_string(), host::Tensor::clone(tensor)),
    };
    data.iter().map(cut).collect()
}

/// A range of an axis.
pub fn along(tensor: &host::Tensor, axis: usize, range: Range<usize>) -> host::Tensor {
    let values = tensor.f64s().unwrap_or_default();
    let inner: usize = tensor.shape[axis + 1..].iter().product();
    let outer: usize = tensor.shape[..axis].iter().product();
    let size = tensor.shape[axis];
    let mut cut = Vec::new();
    for o in 0..outer {
        cut.extend_from_slice(&values[(o * size + range.start) * inner..(o * size + range.end) * inner]);
    }
    let mut shape = tensor.shape.clone();
    shape[axis] = range.len();
    host::Tensor::f64(shape, cut)
}

/// Two tensors one after the other along an axis.
pub fn joined(a: &host::Tensor, b: &host::Tensor, axis: usize) -> host::Tensor {
    let (x, y) = (a.f64s().unwrap_or_default(), b.f64s().unwrap_or_default());
    let part = |t: &host::Tensor| t.shape[axis..].iter().product::<usize>();
    let outer: usize = a.shape[..axis].iter().product();
    let mut all = Vec::new();
    for o in 0..outer {
        all.extend_from_slice(&x[o * part(a)..(o + 1) * part(a)]);
        all.extend_from_slice(&y[o * part(b)..(o + 1) * part(b)]);
    }
    let mut shape = a.shape.clone();
    shape[axis] += b.shape[axis];
    host::Tensor::f64(shape, all)
}

/// Inputs that continue where results stopped; initial weights of which there is a state are left out.
pub fn continued(data: &host::Bundle, results: &host::Bundle) -> host::Bundle {
    let mut next = data.clone();
    let carried = |n: &&str| results.has(&format!("state.{n}"));
    let initial: Vec<String> = data.names().filter(carried).map(String::from).collect();
    initial.iter().for_each(|n| drop(next.remove(n)));
    for (name, tensor) in results.iter().filter(|(name, _)| name.starts_with("state.")) {
        next.insert(name, tensor.clone());
    }
    next
}
