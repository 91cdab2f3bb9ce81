//! Where the elements of an array come from, or go to.

use super::{chunk, misfit, past};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_host as host;
use miras_host::{Data, Tensor};
use miras_kernel::{Array, Role};
use miras_spec::Algo;
use std::borrow::Cow;

/// The elements of one array for all tasks.
pub(crate) enum Supply<'a> {
    /// [B, H, T, ...]
    PerToken(&'a [f32]),
    /// [H, ...]
    PerHead(&'a [f32]),
    /// [N, H, ...]
    PerTask(Cow<'a, [f32]>),
    /// The same for all heads: of each stream, one for each token.
    PerStream(Vec<Vec<f32>>),
    /// For each task one for each token of its past and of the run.
    Past(Vec<Vec<f32>>),
    /// Results [B, H, T, ...].
    Answers(Vec<f32>),
    /// Results [N, H, ...].
    States(Vec<f32>),
    /// Scratch.
    Nothing,
}

/// The supply of an array, by its role and name; one token of the array is `unit` of the problem's.
pub(crate) fn supply<'a>(
    array: &Array,
    unit: usize,
    rule: &host::Rule,
    bound: &'a host::Bound,
) -> Result<Supply<'a>, Diagnostic> {
    let there = |tensor: Option<&'a Tensor>| match tensor.map(|t| &t.data) {
        Some(Data::F32(values)) => Ok(values.as_slice()),
        Some(Data::F64(_) | Data::I64(_)) => Err(misfit(array, "was not bound in float32")),
        None => Err(misfit(array, "is no tensor of this problem")),
    };
    match array.role {
        Role::TokenInput { .. } => match chunk::marks(&array.name, rule, bound) {
            Some(marks) => Ok(Supply::PerStream(marks)),
            None => there(of_tokens(&array.name, rule, bound)).map(Supply::PerToken),
        },
        Role::PastInput { .. } => past::past(array, bound).map(Supply::Past),
        Role::HeadInput => there(of_heads(&array.name, rule, bound)).map(Supply::PerHead),
        Role::StateIn => match chunk::anchor(&array.name, rule, bound) {
            Some(anchor) => anchor.map(Supply::PerTask),
            None => there(of_streams(&array.name, rule, bound)).map(|v| Supply::PerTask(Cow::Borrowed(v))),
        },
        Role::TokenOutput { .. } => {
            let parts =
                [array.part().map(|n| n / unit), Some(bound.batch), Some(bound.heads), Some(bound.tokens)];
            room(array, parts.into_iter().try_fold(1usize, |n, p| n.checked_mul(p?))).map(Supply::Answers)
        }
        Role::StateOut => zeros(array, &[bound.streams.len(), bound.heads]).map(Supply::States),
        Role::Scratch => Ok(Supply::Nothing),
    }
}

fn of_tokens<'a>(name: &str, rule: &host::Rule, bound: &'a host::Bound) -> Option<&'a Tensor> {
    match name {
        "q" => Some(&bound.query),
        "k" => Some(&bound.key),
        "v" => Some(&bound.value),
        _ => param(name, rule, bound),
    }
}

fn of_heads<'a>(name: &str, rule: &host::Rule, bound: &'a host::Bound) -> Option<&'a Tensor> {
    let weights = rule.layer.memory.weights.iter().zip(&bound.weights);
    let mut initial = weights.filter(|(w, _)| name.strip_prefix("memory.") == Some(&w.name));
    match initial.next() {
        Some((_, weight)) => weight.initial.as_deref(),
        None => param(name, rule, bound),
    }
}

fn param<'a>(name: &str, rule: &host::Rule, bound: &'a host::Bound) -> Option<&'a Tensor> {
    let at = rule.layer.params.iter().position(|p| p.tensor == name)?;
    Some(&bound.params.get(at)?.values)
}

fn of_streams<'a>(name: &str, rule: &host::Rule, bound: &'a host::Bound) -> Option<&'a Tensor> {
    if let Some(name) = name.strip_prefix("state.memory.") {
        let at = rule.layer.memory.weights.iter().position(|w| w.name == name)?;
        return bound.weights.get(at)?.carried.as_deref();
    }
    let name = name.strip_prefix("state.algo.")?;
    let states = match &rule.layer.algo {
        Algo::Step(step) => step.states.as_slice(),
        Algo::Weigh(_) => &[],
    };
    let at = states.iter().position(|s| s.name == name)?;
    bound.states.get(at)?.carried.as_deref()
}

/// Room for a result of so many parts.
fn zeros(array: &Array, parts: &[usize]) -> Result<Vec<f32>, Diagnostic> {
    room(array, parts.iter().try_fold(array.part().unwrap_or(usize::MAX), |n, p| n.checked_mul(*p)))
}

/// So many zeros.
pub(crate) fn room(array: &Array, count: Option<usize>) -> Result<Vec<f32>, Diagnostic> {
    let mut values = Vec::new();
    let room = count.filter(|n| values.try_reserve_exact(*n).is_ok());
    let Some(count) = room else {
        let message = format!("there is no memory for `{}`", array.name);
        return Err(Diagnostic::new(code::UNSUPPORTED, message)
            .with_help("run fewer rows, heads or tokens at a time"));
    };
    values.resize(count, 0.0);
    Ok(values)
}
