//! What the printed forms share: how tightly a formula binds, and where parentheses stand.

use super::Math;

/// Binding strengths, weakest first.
pub(super) const WEAK: u8 = 0;
pub(super) const SUM: u8 = 1;
pub(super) const PRODUCT: u8 = 2;
pub(super) const SIGN: u8 = 3;
pub(super) const POWER: u8 = 4;
pub(super) const ATOM: u8 = 5;

/// A printed form.
pub(super) trait Form {
    /// Whether everything stands on one line: fractions and exponents are not told by their place, and what runs over
    /// something is written as a call.
    const LINE: bool;
    /// Before a summand that is subtracted: the first, another.
    const MINUS: [&'static str; 2];
    /// Before a summand that is added and not the first.
    const PLUS: &'static str;

    /// A formula, with parentheses inside it only.
    fn bare(math: &Math) -> String;

    /// In parentheses.
    fn enclosed(inner: &str) -> String;

    /// A formula in parentheses where it binds weaker than `least`.
    fn at(math: &Math, least: u8) -> String {
        let text = Self::bare(math);
        if strength(math, Self::LINE) < least { Self::enclosed(&text) } else { text }
    }

    /// Summands with their signs.
    fn sum(parts: &[(bool, Math)]) -> String {
        let mut text = String::new();
        for (n, (minus, part)) in parts.iter().enumerate() {
            text += match (n, minus) {
                (0, true) => Self::MINUS[0],
                (_, true) => Self::MINUS[1],
                (0, false) => "",
                (_, false) => Self::PLUS,
            };
            text += &Self::at(part, if *minus { PRODUCT } else { SUM });
        }
        text
    }
}

/// How tightly a formula binds, on one line or with its parts placed.
fn strength(math: &Math, line: bool) -> u8 {
    let or = |on_line, placed| if line { on_line } else { placed };
    match math {
        Math::Number(x) if x.is_sign_negative() => or(SIGN, SUM),
        // On a line a power of ten is part of the number.
        Math::Number(x) => or(ATOM, if digits(*x).1.is_some() { PRODUCT } else { ATOM }),
        Math::Word(w) if w.contains([' ', '*']) => SUM,
        Math::Neg(_) | Math::Sum(_) => SUM,
        Math::Times(..) | Math::MatMul(..) | Math::Over(..) => PRODUCT,
        Math::Fraction(..) => or(PRODUCT, ATOM),
        Math::Power(..) => or(POWER, PRODUCT),
        Math::Outer(..) | Math::Slope(..) => or(ATOM, PRODUCT),
        Math::Root(..) => or(ATOM, WEAK),
        Math::Cases(..) | Math::Compare(..) | Math::Prefixed(..) => WEAK,
        Math::Symbol(_)
        | Math::Word(_)
        | Math::Inner(..)
        | Math::Transpose(_)
        | Math::Function(..)
        | Math::Call(..)
        | Math::Norm(..)
        | Math::Cotangent(_) => ATOM,
        Math::Marked(a) => strength(a, line),
    }
}

/// The shortest digits that read back as a number, and its power of ten where it is very large or small.
pub(super) fn digits(x: f64) -> (String, Option<String>) {
    if x == 0.0 || (1e-4..1e7).contains(&x.abs()) {
        return (format!("{x}"), None);
    }
    let text = format!("{x:e}");
    match text.split_once('e') {
        Some((digits, power)) => (digits.into(), Some(power.into())),
        None => (text, None),
    }
}
