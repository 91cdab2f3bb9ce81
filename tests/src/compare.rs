//! Comparison of results, as `golden/README.md` defines it.

use miras_host as host;

/// How far a tensor may be off.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// For `o` and `state.*`, relative to the largest expected entry.
    pub values: f64,
    /// For `d.*`, likewise.
    pub gradients: f64,
    /// Absolute, for all.
    pub absolute: f64,
}

/// Everything that is wrong with results: each expected tensor must be there, of that shape, with
/// `max |found - expected| <= relative * max |expected| + absolute`.
pub fn differences(found: &host::Bundle, expected: &host::Bundle, tolerance: Tolerance) -> Vec<String> {
    let compare = |(name, expected): (&str, &std::sync::Arc<host::Tensor>)| {
        let relative = if name.starts_with("d.") { tolerance.gradients } else { tolerance.values };
        let Some(found) = found.get(name) else { return Some(format!("`{name}` is missing")) };
        difference(found, expected, relative, tolerance.absolute).map(|what| format!("`{name}` {what}"))
    };
    expected.iter().filter_map(compare).collect()
}

/// What is wrong with one tensor.
pub fn difference(
    found: &host::Tensor,
    expected: &host::Tensor,
    relative: f64,
    absolute: f64,
) -> Option<String> {
    if found.shape != expected.shape {
        return Some(format!("has shape {:?}, expected {:?}", found.shape, expected.shape));
    }
    if let (Some(a), Some(b)) = (found.i64s(), expected.i64s()) {
        return (a != b).then(|| format!("is {a:?}, expected {b:?}"));
    }
    let (Some(a), Some(b)) = (found.f64s(), expected.f64s()) else {
        return Some("has another element type".into());
    };
    let allowed = relative * b.iter().fold(0.0_f64, |m, x| m.max(x.abs())) + absolute;
    // NaN must fail, and a maximum would pass over it.
    let wrong = a.iter().zip(b.iter()).map(|(x, y)| (x - y).abs());
    let worst = wrong.fold(0.0_f64, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) });
    let fits = worst <= allowed;
    (!fits).then(|| format!("is off by {worst:.3e}, allowed {allowed:.3e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_shape_and_excess_are_told() {
        let t = |v: &[f64]| host::Tensor::f64([v.len()], v.to_vec());
        assert_eq!(difference(&t(&[1.0, 2.0]), &t(&[1.0, 2.0 + 1e-9]), 1e-9, 0.0), None);
        for wrong in [&[1.0, 2.1][..], &[1.0, f64::NAN], &[1.0], &[1.0, f64::INFINITY]] {
            assert!(difference(&t(wrong), &t(&[1.0, 2.0]), 1e-9, 0.0).is_some(), "{wrong:?}");
        }
    }
}
