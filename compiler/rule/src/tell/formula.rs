//! Formulas inside sentences.

use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Op, PrintOptions, TermId, Terms, print_within};

/// Formulas in sentences are cut near this many characters.
const LONG: usize = 160;

/// A term as text that fits into a sentence.
pub(crate) fn formula(terms: &Terms, id: TermId) -> String {
    let text = |id| print_within(terms, id, &PrintOptions::default(), LONG);
    match terms.op(id) {
        Op::Fn1(Fn1::Neg, x) if matches!(terms.op(*x), Op::Fn2(Fn2::Mul, ..)) => format!("-{}", text(*x)),
        _ => text(id),
    }
}
