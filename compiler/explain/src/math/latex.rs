//! Formulas as LaTeX, for amsmath.

use super::form::{ATOM, Form, PRODUCT, SUM, WEAK, digits};
use super::name::GREEK;
use super::{Big, Dot, Math, Symbol, of_left, rows};
use miras_base::scalar::{Cmp, row};

/// `left = right` for a display, broken at its summands where it is wide.
pub(super) fn equation(left: &Math, right: &Math) -> String {
    let rows = rows(left, right);
    if rows.len() == 1 {
        return format!("{} = {}", at(left, WEAK), at(right, WEAK));
    }
    let mut lines = Vec::new();
    for (n, (minus, part)) in rows.iter().enumerate() {
        let text = at(part, if *minus { PRODUCT } else { SUM });
        lines.push(match (n, minus) {
            (0, false) => format!("{} ={{}}& {text}", at(left, WEAK)),
            (0, true) => format!("{} ={{}}& -{text}", at(left, WEAK)),
            (_, false) => format!("&{{}} + {text}"),
            (_, true) => format!("&{{}} - {text}"),
        });
    }
    format!("\\begin{{aligned}} {} \\end{{aligned}}", lines.join(" \\\\ "))
}

fn at(math: &Math, least: u8) -> String {
    Latex::at(math, least)
}

/// In LaTeX's mathematics.
struct Latex;

impl Form for Latex {
    const LINE: bool = false;
    const MINUS: [&'static str; 2] = ["-", " - "];
    const PLUS: &'static str = " + ";

    fn enclosed(inner: &str) -> String {
        format!("\\left({inner}\\right)")
    }

    fn bare(math: &Math) -> String {
        match math {
            Math::Number(x) => number(*x),
            Math::Symbol(s) => symbol(s),
            Math::Word(w) => words(w),
            Math::Neg(a) => format!("-{}", at(a, PRODUCT)),
            Math::Sum(parts) => Latex::sum(parts),
            Math::Times(a, b, dot) => times(a, b, *dot),
            Math::MatMul(a, b) => format!("{}\\, {}", at(a, of_left(a)), at(b, ATOM)),
            Math::Outer(a, b) => format!("{} \\otimes {}", at(a, ATOM), at(b, ATOM)),
            Math::Inner(a, b) => {
                format!("\\left\\langle {}, {}\\right\\rangle", at(a, WEAK), at(b, WEAK))
            }
            Math::Transpose(a) => format!("{}^{{\\top}}", at(a, ATOM)),
            Math::Fraction(a, b) => format!("\\frac{{{}}}{{{}}}", at(a, WEAK), at(b, WEAK)),
            Math::Power(a, b) => format!("{{{}}}^{{{}}}", at(a, ATOM), at(b, WEAK)),
            Math::Function(f, a) => row(*f).latex.replace("#1", &at(a, WEAK)),
            Math::Call(f, along, arguments) => call(f, along, arguments),
            Math::Cases(c, a, b) => {
                let (c, a, b) = (at(c, WEAK), at(a, WEAK), at(b, WEAK));
                let cases = format!("{a} & \\text{{if }} {c} \\\\ {b} & \\text{{otherwise}}");
                format!("\\begin{{cases}} {cases} \\end{{cases}}")
            }
            Math::Compare(c, a, b) => format!("{} {} {}", at(a, SUM), comparison(*c), at(b, SUM)),
            Math::Norm(x, p) => {
                format!("\\left\\lVert {} \\right\\rVert_{{{}}}", at(x, WEAK), at(p, WEAK))
            }
            Math::Over(big, below, body) => {
                format!("{}_{{{}}} {}", sign(*big), at(below, WEAK), at(body, PRODUCT))
            }
            Math::Root(unknown, residual) => format!("{} : {} = 0", at(unknown, WEAK), at(residual, WEAK)),
            Math::Slope(of, by) => {
                format!("\\frac{{\\partial\\,{}}}{{\\partial {}}}", at(of, ATOM), at(by, ATOM))
            }
            Math::Cotangent(a) => format!("\\mathrm{{d.}}{}", at(a, ATOM)),
            Math::Prefixed(words, a) => format!("\\text{{{} }} {}", escape(words), at(a, WEAK)),
            Math::Marked(a) => format!("\\boxed{{{}}}", Latex::bare(a)),
        }
    }
}

fn times(a: &Math, b: &Math, dot: Dot) -> String {
    let sign = match (dot, a, b) {
        (_, _, Math::Number(_)) => " \\cdot ",
        (Dot::Scalar, ..) => "\\, ",
        (Dot::Entries, ..) => " \\odot ",
    };
    format!("{}{sign}{}", at(a, PRODUCT), at(b, PRODUCT))
}

fn call(name: &str, along: &str, arguments: &[Math]) -> String {
    let stem = name.trim_end_matches('\'');
    let primes = &name[stem.len()..];
    let arguments: Vec<String> = arguments.iter().map(|a| at(a, WEAK)).collect();
    let arguments = arguments.join(", ");
    let indexed = super::name::symbol(stem).filter(|s| !s.index.is_empty());
    let function = match stem {
        _ if indexed.is_some() => indexed.as_ref().map_or_else(String::new, symbol),
        "sum" => "\\sum".to_string(),
        "min" | "max" => format!("\\{stem}"),
        "largest" => "\\max".into(),
        "smallest" => "\\min".into(),
        "eye" => return format!("I_{{{arguments}}}"),
        "inverse_deviation" => "\\operatorname{std}^{-1}".into(),
        one if one.chars().count() == 1 => one.into(),
        other => format!("\\operatorname{{{}}}", escape(other)),
    };
    let along = if along.is_empty() { String::new() } else { format!("_{{\\mathrm{{{along}}}}}") };
    format!("{function}{primes}{along}\\left({arguments}\\right)")
}

/// A name in mathematics: Greek and single letters slanted, others upright.
fn symbol(s: &Symbol) -> String {
    let stem = match &s.stem {
        stem if stem.chars().count() == 1 => stem.clone(),
        stem if GREEK.iter().any(|(name, _)| name == stem) => format!("\\{stem}"),
        stem => format!("\\mathrm{{{}}}", escape(stem)),
    };
    let below: Vec<&str> =
        [s.index.as_str(), s.time.as_str()].into_iter().filter(|x| !x.is_empty()).collect();
    let below = if below.is_empty() { String::new() } else { format!("_{{{}}}", escape(&below.join(","))) };
    format!("{stem}{below}{}", "'".repeat(s.primes))
}

/// A word: a relation of short names is mathematics, anything else is upright.
fn words(text: &str) -> String {
    let short = text.split(|c: char| !c.is_alphanumeric()).all(|w| w.chars().count() <= 1);
    if short {
        return text.replace("<=", "\\le ").replace('*', "\\,");
    }
    format!("\\mathrm{{{}}}", escape(text).replace(' ', "\\ "))
}

fn number(x: f64) -> String {
    match digits(x) {
        (digits, None) => digits,
        (digits, Some(power)) if digits == "1" => format!("10^{{{power}}}"),
        (digits, Some(power)) => format!("{digits} \\cdot 10^{{{power}}}"),
    }
}

fn comparison(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Lt => "<",
        Cmp::Le => "\\le",
        Cmp::Gt => ">",
        Cmp::Ge => "\\ge",
        Cmp::Eq => "=",
        Cmp::Ne => "\\ne",
    }
}

fn sign(big: Big) -> &'static str {
    match big {
        Big::Sum => "\\sum",
        Big::Product => "\\prod",
        Big::Max => "\\max",
    }
}

/// Text with the characters that LaTeX gives a meaning taken literally.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}
