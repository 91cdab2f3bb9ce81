//! Formulas as text.

use super::form::{ATOM, Form, POWER, PRODUCT, SIGN, SUM, WEAK, digits};
use super::{Big, Math, Symbol};

/// A formula as one line, in the language's own syntax where it has one.
pub(super) fn text(math: &Math) -> String {
    Line::at(math, WEAK)
}

/// On one line.
struct Line;

impl Form for Line {
    const LINE: bool = true;
    const MINUS: [&'static str; 2] = ["-", " - "];
    const PLUS: &'static str = " + ";

    fn enclosed(inner: &str) -> String {
        format!("({inner})")
    }

    fn bare(math: &Math) -> String {
        match math {
            Math::Number(x) => number(*x),
            Math::Symbol(s) => symbol(s),
            Math::Word(w) => w.clone(),
            Math::Neg(a) => format!("-{}", Line::at(a, PRODUCT)),
            Math::Sum(parts) => Line::sum(parts),
            Math::Times(a, b, _) => format!("{} * {}", Line::at(a, PRODUCT), Line::at(b, SIGN)),
            Math::MatMul(a, b) => format!("{} @ {}", Line::at(a, PRODUCT), Line::at(b, SIGN)),
            Math::Outer(a, b) => call("outer", "", &[text(a), text(b)]),
            Math::Inner(a, b) => call("dot", "", &[text(a), text(b)]),
            Math::Transpose(a) => call("transpose", "", &[text(a)]),
            Math::Fraction(a, b) => {
                let least = if matches!(**a, Math::Fraction(..) | Math::Over(..)) { SIGN } else { PRODUCT };
                format!("{} / {}", Line::at(a, least), Line::at(b, SIGN))
            }
            Math::Power(a, b) => format!("{}^{}", Line::at(a, ATOM), Line::at(b, POWER)),
            Math::Function(f, a) => call(f.name(), "", &[text(a)]),
            Math::Call(f, along, arguments) => {
                call(f, along, &arguments.iter().map(text).collect::<Vec<_>>())
            }
            Math::Cases(c, a, b) => format!("if {} then {} else {}", text(c), Line::at(a, SUM), text(b)),
            Math::Compare(c, a, b) => format!("{} {} {}", Line::at(a, SUM), c.spelling(), Line::at(b, SUM)),
            Math::Norm(x, p) => call("norm", "", &[text(x), text(p)]),
            Math::Over(big, below, body) => {
                format!("{}_{{{}}} {}", sign(*big), text(below), Line::at(body, PRODUCT))
            }
            Math::Root(unknown, residual) => format!("root({}: {} = 0)", text(unknown), text(residual)),
            Math::Slope(of, by) => format!("d{}/d{}", text(of), text(by)),
            Math::Cotangent(a) => format!("d.{}", Line::at(a, ATOM)),
            Math::Prefixed(words, a) => format!("{words} {}", text(a)),
            Math::Marked(a) => format!("{OPEN}{}{CLOSE}", Line::bare(a)),
        }
    }
}

/// Where a marked part of a text begins and ends; neither occurs in formulas.
pub(crate) const OPEN: char = '\u{1}';
pub(crate) const CLOSE: char = '\u{2}';

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
    let (digits, power) = digits(x);
    digits + &power.map_or_else(String::new, |p| format!("e{p}"))
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
