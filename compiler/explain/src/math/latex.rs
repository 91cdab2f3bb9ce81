//! Formulas as LaTeX, for amsmath.

use super::name::GREEK;
use super::{ATOM, Big, Dot, Math, PRODUCT, SUM, Symbol, WEAK, of_left, rows};
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
    let (text, strength) = bare(math);
    if strength < least { format!("\\left({text}\\right)") } else { text }
}

fn bare(math: &Math) -> (String, u8) {
    match math {
        Math::Number(x) => (number(*x), if x.is_sign_negative() { SUM } else { ATOM }),
        Math::Symbol(s) => (symbol(s), ATOM),
        Math::Word(w) => (words(w), if w.contains([' ', '*']) { SUM } else { ATOM }),
        Math::Neg(a) => (format!("-{}", at(a, PRODUCT)), SUM),
        Math::Sum(parts) => (sum(parts), SUM),
        Math::Times(a, b, dot) => (times(a, b, *dot), PRODUCT),
        Math::MatMul(a, b) => (format!("{}\\, {}", at(a, of_left(a)), at(b, ATOM)), PRODUCT),
        Math::Outer(a, b) => (format!("{} \\otimes {}", at(a, ATOM), at(b, ATOM)), PRODUCT),
        Math::Inner(a, b) => {
            (format!("\\left\\langle {}, {}\\right\\rangle", at(a, WEAK), at(b, WEAK)), ATOM)
        }
        Math::Transpose(a) => (format!("{}^{{\\top}}", at(a, ATOM)), ATOM),
        Math::Fraction(a, b) => (format!("\\frac{{{}}}{{{}}}", at(a, WEAK), at(b, WEAK)), ATOM),
        Math::Power(a, b) => (format!("{{{}}}^{{{}}}", at(a, ATOM), at(b, WEAK)), PRODUCT),
        Math::Function(f, a) => (row(*f).latex.replace("#1", &at(a, WEAK)), ATOM),
        Math::Call(f, along, arguments) => (call(f, along, arguments), ATOM),
        Math::Cases(c, a, b) => {
            let (c, a, b) = (at(c, WEAK), at(a, WEAK), at(b, WEAK));
            let cases = format!("{a} & \\text{{if }} {c} \\\\ {b} & \\text{{otherwise}}");
            (format!("\\begin{{cases}} {cases} \\end{{cases}}"), WEAK)
        }
        Math::Compare(c, a, b) => (format!("{} {} {}", at(a, SUM), comparison(*c), at(b, SUM)), WEAK),
        Math::Norm(x, p) => {
            (format!("\\left\\lVert {} \\right\\rVert_{{{}}}", at(x, WEAK), at(p, WEAK)), ATOM)
        }
        Math::Over(big, below, body) => {
            (format!("{}_{{{}}} {}", sign(*big), at(below, WEAK), at(body, PRODUCT)), PRODUCT)
        }
        Math::Root(unknown, residual) => {
            (format!("{} : {} = 0", at(unknown, WEAK), at(residual, WEAK)), WEAK)
        }
        Math::Slope(of, by) => {
            (format!("\\frac{{\\partial\\,{}}}{{\\partial {}}}", at(of, ATOM), at(by, ATOM)), PRODUCT)
        }
        Math::Cotangent(a) => (format!("\\mathrm{{d.}}{}", at(a, ATOM)), ATOM),
        Math::Prefixed(words, a) => (format!("\\text{{{} }} {}", escape(words), at(a, WEAK)), WEAK),
        Math::Marked(a) => {
            let (text, strength) = bare(a);
            (format!("\\boxed{{{text}}}"), strength)
        }
    }
}

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
    let text = if x != 0.0 && !(1e-4..1e7).contains(&x.abs()) { format!("{x:e}") } else { format!("{x}") };
    match text.split_once('e') {
        Some(("1", power)) => format!("10^{{{power}}}"),
        Some((digits, power)) => format!("{digits} \\cdot 10^{{{power}}}"),
        None => text,
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
