//! Distances between results, and how far a layer itself moves when its inputs are rounded.

use crate::{Case, Failure, Reference, Runner};
use miras_host as host;
use miras_reference as reference;
use miras_rule as rule;
use miras_spec as spec;

/// The error of a tensor: max |a - b| / max |b|, absolute where b is 0 (docs/mathematics.md). Not a number, or
/// another shape: infinite.
pub fn error(a: &host::Tensor, b: &host::Tensor) -> f64 {
    if a.shape != b.shape {
        return f64::INFINITY;
    }
    if let (Some(a), Some(b)) = (a.i64s(), b.i64s()) {
        return if a == b { 0.0 } else { f64::INFINITY };
    }
    let (Some(a), Some(b)) = (a.f64s(), b.f64s()) else { return f64::INFINITY };
    let size = b.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let worst = a.iter().zip(b.iter()).map(|(x, y)| (x - y).abs());
    let worst = worst.fold(0.0_f64, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) });
    if size == 0.0 { worst } else { worst / size }
}

/// The largest error among the tensors of `b` that `which` names, and whose it is. A missing tensor is
/// infinitely far off.
pub(crate) fn worst(a: &host::Bundle, b: &host::Bundle, which: impl Fn(&str) -> bool) -> (f64, String) {
    let mut worst = (0.0, String::new());
    for (name, tensor) in b.iter().filter(|(name, _)| which(name)) {
        let error = a.get(name).map_or(f64::INFINITY, |found| error(found, tensor));
        if error > worst.0 || worst.1.is_empty() {
            worst = (error, name.to_string());
        }
    }
    worst
}

/// Outputs and final states.
pub(crate) fn forward(name: &str) -> bool {
    name == "o" || name.starts_with("state.")
}

/// Gradients.
pub(crate) fn backward(name: &str) -> bool {
    name.starts_with("d.")
}

/// How much float32 may differ from the reference: this much in any case, ...
const FLOOR: f64 = 2e-5;

/// ... and this many times what the reference loses when every one of its operations is rounded to float32: a
/// backend rounds inside sums and products too, and in another order.
const ROUNDINGS: f64 = 64.0;

/// The figure that float32 may differ by on this data, for the results of the kind `which`.
///
/// # Errors
/// Those of the reference.
pub(crate) fn allowance(
    case: &Case<'_>,
    schedule: host::Schedule,
    grad: bool,
    data: &host::Bundle,
    which: impl Fn(&str) -> bool,
) -> Result<f64, Failure> {
    Ok(FLOOR + ROUNDINGS * loses(case.rule, schedule, grad, data, which)?)
}

/// What the outputs and states of a recurrent run lose when every operation is rounded to float32, in units of
/// one such rounding. Above some hundreds the layer is chaotic on this data, and no two ways to compute it
/// agree for long.
///
/// # Errors
/// Those of the reference.
fn amplification(rule: &rule::UpdateRule, data: &host::Bundle) -> Result<f64, Failure> {
    Ok(loses(rule, host::Schedule::Recurrent, false, data, forward)? * 2_f64.powi(24))
}

fn loses(
    rule: &rule::UpdateRule,
    schedule: host::Schedule,
    grad: bool,
    data: &host::Bundle,
    which: impl Fn(&str) -> bool,
) -> Result<f64, Failure> {
    let results = Reference::new(rule).run(data, schedule, grad)?;
    let arithmetic = reference::Arithmetic::RoundedToFloat32;
    let rounded = Reference { rule, arithmetic }.run(data, schedule, grad)?;
    Ok(worst(&rounded, &results, which).0)
}

/// A rounding that grows by more than this makes figures that say nothing.
const CALM: f64 = 32.0;

/// Where the search for calm data ends.
const SMALLEST: f64 = 1.0 / 256.0;

/// Synthetic data on which the layer is not chaotic: the largest of the factors 1, 1/2, ... of [`calmed`] at which
/// roundings hardly grow, and the data with it.
///
/// # Errors
/// Those of the reference.
pub fn calm(rule: &rule::UpdateRule, data: &host::Bundle) -> Result<(host::Bundle, f64), Failure> {
    let mut factor = 1.0;
    loop {
        let calmer = calmed(rule, data, factor);
        if factor <= SMALLEST || amplification(rule, &calmer)? <= CALM {
            return Ok((calmer, factor));
        }
        factor /= 2.0;
    }
}

/// The data with the algorithm's step sizes (its `positive` parameters) and what retention forgets (its `unit`
/// parameters) times a factor.
fn calmed(rule: &rule::UpdateRule, data: &host::Bundle, factor: f64) -> host::Bundle {
    let mut scaled = data.clone();
    let meant = |p: &&spec::Param| {
        let gate = (p.tensor.split('.').next(), p.kind);
        matches!(gate, (Some("algo"), spec::Kind::Positive) | (Some("retention"), spec::Kind::Unit))
    };
    for param in rule.layer.params.iter().filter(meant) {
        let Some(values) = data.get(&param.tensor).and_then(|t| t.f32s()) else { continue };
        let shape = data.get(&param.tensor).map(|t| t.shape.clone()).unwrap_or_default();
        let values = values.iter().map(|x| x * factor as f32).collect();
        scaled.insert(&*param.tensor, host::Tensor::f32(shape, values));
    }
    scaled
}

/// `data` with a cotangent of the outputs, drawn at random.
pub(crate) fn with_cotangent(data: &host::Bundle, o: &host::Tensor) -> host::Bundle {
    let mut random = host::Random::new(7);
    let mut data = data.clone();
    let values = (0..o.len()).map(|_| random.normal()).collect();
    data.insert("grad.o", host::Tensor::f64(o.shape.clone(), values));
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_the_largest_entry() {
        let t = |v: &[f64]| host::Tensor::f64([v.len()], v.to_vec());
        assert_eq!(error(&t(&[1.0, 4.0]), &t(&[1.0, 2.0])), 1.0);
        assert_eq!(error(&t(&[3.0]), &t(&[0.0])), 3.0);
        assert_eq!(error(&t(&[f64::NAN]), &t(&[0.0])), f64::INFINITY);
        assert_eq!(error(&t(&[0.0]), &t(&[0.0, 0.0])), f64::INFINITY);
    }
}
