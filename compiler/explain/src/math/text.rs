//! Formulas as text.

use super::{ATOM, Big, Math, POWER, PRODUCT, SIGN, SUM, Symbol, WEAK};

/// A formula as one line, in the language's own syntax where it has one.
pub(super) fn text(math: &Math) -> String {
    at(math, WEAK)
}

/// Text in parentheses where it binds weaker than `least`.
fn at(math: &Math, least: u8) -> String {
    let (text, strength) = bare(math);
    if strength < least { format!("({text})") } else { text }
}

fn bare(math: &Math) -> (String, u8) {
    match math {
        Math::Number(x) => (number(*x), if x.is_sign_negative() { SIGN } else { ATOM }),
        Math::Symbol(s) => (symbol(s), ATOM),
        Math::Word(w) => (w.clone(), if w.contains([' ', '*']) { SUM } else { ATOM }),
        Math::Neg(a) => (format!("-{}", at(a, PRODUCT)), SUM),
        Math::Sum(parts) => (sum(parts), SUM),
        Math::Times(a, b, _) => (format!("{} * {}", at(a, PRODUCT), at(b, SIGN)), PRODUCT),
        Math::MatMul(a, b) => (format!("{} @ {}", at(a, PRODUCT), at(b, SIGN)), PRODUCT),
        Math::Outer(a, b) => (call("outer", "", &[text(a), text(b)]), ATOM),
        Math::Inner(a, b) => (call("dot", "", &[text(a), text(b)]), ATOM),
        Math::Transpose(a) => (call("transpose", "", &[text(a)]), ATOM),
        Math::Fraction(a, b) => {
            let least = if matches!(**a, Math::Fraction(..) | Math::Over(..)) { SIGN } else { PRODUCT };
            (format!("{} / {}", at(a, least), at(b, SIGN)), PRODUCT)
        }
        Math::Power(a, b) => (format!("{}^{}", at(a, ATOM), at(b, POWER)), POWER),
        Math::Function(f, a) => (call(f.name(), "", &[text(a)]), ATOM),
        Math::Call(f, along, arguments) => {
            (call(f, along, &arguments.iter().map(text).collect::<Vec<_>>()), ATOM)
        }
        Math::Cases(c, a, b) => (format!("if {} then {} else {}", text(c), at(a, SUM), text(b)), WEAK),
        Math::Compare(c, a, b) => (format!("{} {} {}", at(a, SUM), c.spelling(), at(b, SUM)), WEAK),
        Math::Norm(x, p) => (call("norm", "", &[text(x), text(p)]), ATOM),
        Math::Over(big, below, body) => {
            (format!("{}_{{{}}} {}", sign(*big), text(below), at(body, PRODUCT)), PRODUCT)
        }
        Math::Root(unknown, residual) => (format!("root({}: {} = 0)", text(unknown), text(residual)), ATOM),
        Math::Slope(of, by) => (format!("d{}/d{}", text(of), text(by)), ATOM),
        Math::Cotangent(a) => (format!("d.{}", at(a, ATOM)), ATOM),
        Math::Prefixed(words, a) => (format!("{words} {}", text(a)), WEAK),
        Math::Marked(a) => {
            let (text, strength) = bare(a);
            (format!("{OPEN}{text}{CLOSE}"), strength)
        }
    }
}

/// Where a marked part of a text begins and ends; neither occurs in formulas.
pub(crate) const OPEN: char = '\u{1}';
pub(crate) const CLOSE: char = '\u{2}';

fn sum(parts: &[(bool, Math)]) -> String {
    let mut text = String::new();
    for (n, (minus, part)) in parts.iter().enumerate() {
        text += match (n, minus) {
            (0, true) => "-",
            (0, false) => "",
            (_, true) => " - ",
            (_, false) => " + ",
        };
        text += &at(part, if *minus { PRODUCT } else { SUM });
    }
    text
}

fn call(name: &str, along: &str, arguments: &[String]) -> String {
    let along = if along.is_empty() { String::new() } else { format!("_{along}") };
    format!("{name}{along}({})", arguments.join(", "))
}

fn sign(big: Big) -> &'static str {
    match big {
        Big::Sum => "sum",
        Big::Product => "product",
        Big::Max => "max",
    }
}

/// A number as short as it can be read back: `2`, `0.5`, `1e-6`.
fn number(x: f64) -> String {
    let magnitude = x.abs();
    if x != 0.0 && !(1e-4..1e7).contains(&magnitude) { format!("{x:e}") } else { format!("{x}") }
}

fn symbol(s: &Symbol) -> String {
    let index = match s.index.split_once('.') {
        _ if s.index.is_empty() => String::new(),
        Some((index, copy)) => format!("[{index}].{copy}"),
        None => format!("[{}]", s.index),
    };
    let time = match s.time.chars().count() {
        0 => String::new(),
        1 => format!("_{}", s.time),
        _ => format!("_{{{}}}", s.time),
    };
    format!("{}{index}{}{time}", s.stem, "'".repeat(s.primes))
}
