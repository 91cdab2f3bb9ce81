//! Results that are not finite: legal numbers, but seldom what was meant.

use crate::bundle::Bundle;
use crate::tensor::Tensor;
use miras_base::Diagnostic;
use miras_base::diagnostic::{code, listed};

/// A warning (W0503) that names a result with a value that is not finite, `o` before others, and the first token
/// at which `o` has one. None where all results are finite.
pub fn not_finite(results: &Bundle) -> Option<Diagnostic> {
    let broken: Vec<(&str, &Tensor)> =
        results.iter().map(|(n, t)| (n, &**t)).filter(|(_, t)| is_spoiled(t)).collect();
    let (name, tensor) = *broken.iter().find(|(name, _)| *name == "o").or(broken.first())?;
    // Of `o` [B, H, T, dv] the earliest token, of any row and head.
    let time = |at: &usize| if name == "o" { tensor.index_of(*at).get(2).copied() } else { None };
    let at = spoiled(tensor).min_by_key(time)?;
    let when = match time(&at) {
        Some(token) => format!(" (the first such token is {token})"),
        None => String::new(),
    };
    let value = tensor.at(at)?;
    let message = format!("the result `{name}` holds {value} at {:?}{when}", tensor.index_of(at));
    let others = broken.iter().map(|(name, _)| *name).filter(|n| *n != name);
    let mut warning = Diagnostic::new(code::NOT_FINITE_RESULT, message).with_help(
        "take smaller steps (`algo.eta`), shorten the keys (divide them by their length), or forget more; \
         `--backend reference` shows whether float64 stays finite",
    );
    if broken.len() > 1 {
        warning = warning.with_note(format!("not finite either: {}", listed(others)));
    }
    Some(warning)
}

fn is_spoiled(tensor: &Tensor) -> bool {
    tensor.width().is_some() && !tensor.all_between(f64::MIN, f64::MAX)
}

/// Flat indices of the entries that are not finite.
fn spoiled(tensor: &Tensor) -> impl Iterator<Item = usize> + '_ {
    let bad = |at: &usize| tensor.at(*at).is_some_and(|x| !x.is_finite());
    (0..tensor.len()).filter(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(o: Vec<f32>, state: f32) -> Bundle {
        let mut bundle = Bundle::new();
        bundle.insert("o", Tensor::f32([1, 2, 3, 1], o));
        bundle.insert("state.memory.W", Tensor::f32([1], vec![state]));
        bundle
    }

    #[test]
    fn finite_results_are_passed_over() {
        assert_eq!(not_finite(&bundle(vec![0.0; 6], 1.0)), None);
    }

    #[test]
    fn the_first_token_of_any_head_is_named() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let warning = not_finite(&bundle(vec![0.0, 0.0, nan, 0.0, inf, nan], nan)).expect("a warning");
        assert!(
            warning.message.contains("`o` holds inf at [0, 1, 1, 0] (the first such token is 1)"),
            "{warning}"
        );
        assert_eq!(warning.notes, ["not finite either: `state.memory.W`"]);
        assert!(!warning.is_error());
    }

    #[test]
    fn a_state_alone_is_told_of_too() {
        let warning = not_finite(&bundle(vec![0.0; 6], f32::NAN)).expect("a warning");
        assert!(warning.message.contains("`state.memory.W` holds NaN at [0]"), "{warning}");
    }
}
