//! Formulas as MathML Core.

use super::form::{ATOM, Form, PRODUCT, SUM, WEAK, digits};
use super::name::GREEK;
use super::{Big, Dot, Math, Symbol, of_left, rows};
use miras_base::scalar::{Cmp, Fn1};

/// `left = right` as a display, broken at its summands where it is wide; `latex` becomes its annotation.
pub(super) fn equation(left: &Math, right: &Math, latex: &str) -> String {
    let rows = rows(left, right);
    let left = at(left, WEAK);
    let body = if rows.len() == 1 {
        format!("<mrow>{left}{}{}</mrow>", op("="), at(right, WEAK))
    } else {
        let lines: Vec<String> = (rows.iter().enumerate())
            .map(|(n, (minus, part))| {
                let part = at(part, if *minus { PRODUCT } else { SUM });
                let (before, sign) = match (n, minus) {
                    (0, false) => (left.as_str(), String::new()),
                    (0, true) => (left.as_str(), op("−")),
                    (_, false) => ("", "<mo form=\"infix\">+</mo>".into()),
                    (_, true) => ("", "<mo form=\"infix\">−</mo>".into()),
                };
                let equals = if n == 0 { op("=") } else { String::new() };
                format!(
                    "<mtr><mtd class=\"r\">{before}</mtd><mtd>{equals}</mtd><mtd class=\"l\"><mrow>{sign}{part}</mrow></mtd></mtr>"
                )
            })
            .collect();
        format!("<mtable class=\"rows\" displaystyle=\"true\">{}</mtable>", lines.concat())
    };
    format!(
        "<math display=\"block\"><semantics>{body}<annotation encoding=\"application/x-tex\">{}</annotation></semantics></math>",
        escape(latex)
    )
}

fn at(math: &Math, least: u8) -> String {
    MathMl::at(math, least)
}

/// In MathML.
struct MathMl;

impl Form for MathMl {
    const LINE: bool = false;
    const MINUS: [&'static str; 2] = ["<mo>−</mo>", "<mo>−</mo>"];
    const PLUS: &'static str = "<mo>+</mo>";

    fn enclosed(inner: &str) -> String {
        between("(", inner, ")")
    }

    fn bare(math: &Math) -> String {
        match math {
            Math::Number(x) => number(*x),
            Math::Symbol(s) => symbol(s),
            Math::Word(w) => words(w),
            Math::Neg(a) => format!("<mrow>{}{}</mrow>", op("−"), at(a, PRODUCT)),
            Math::Sum(parts) => format!("<mrow>{}</mrow>", MathMl::sum(parts)),
            Math::Times(a, b, dot) => times(a, b, *dot),
            Math::MatMul(a, b) => format!("<mrow>{}{THIN}{}</mrow>", at(a, of_left(a)), at(b, ATOM)),
            Math::Outer(a, b) => format!("<mrow>{}{}{}</mrow>", at(a, ATOM), op("⊗"), at(b, ATOM)),
            Math::Inner(a, b) => between("⟨", &format!("{}{}{}", at(a, WEAK), op(","), at(b, WEAK)), "⟩"),
            Math::Transpose(a) => format!("<msup>{}<mo>⊤</mo></msup>", at(a, ATOM)),
            Math::Fraction(a, b) => format!("<mfrac>{}{}</mfrac>", at(a, WEAK), at(b, WEAK)),
            Math::Power(a, b) => format!("<msup>{}{}</msup>", at(a, ATOM), at(b, WEAK)),
            Math::Function(f, a) => function(*f, a),
            Math::Call(f, along, arguments) => call(f, along, arguments),
            Math::Cases(c, a, b) => cases(c, a, b),
            Math::Compare(c, a, b) => {
                format!("<mrow>{}{}{}</mrow>", at(a, SUM), op(comparison(*c)), at(b, SUM))
            }
            Math::Norm(x, p) => {
                format!("<msub>{}{}</msub>", between("‖", &at(x, WEAK), "‖"), at(p, WEAK))
            }
            Math::Over(big, below, body) => over(*big, below, body),
            Math::Root(unknown, residual) => {
                let (unknown, residual) = (at(unknown, WEAK), at(residual, WEAK));
                format!("<mrow>{unknown}{}{residual}{}<mn>0</mn></mrow>", op(":"), op("="))
            }
            Math::Slope(of, by) => {
                let side = |m| format!("<mrow><mo>∂</mo>{}</mrow>", at(m, ATOM));
                format!("<mfrac>{}{}</mfrac>", side(of), side(by))
            }
            Math::Cotangent(a) => format!("<mrow><mtext>d.</mtext>{}</mrow>", at(a, ATOM)),
            Math::Prefixed(words, a) => {
                format!("<mrow><mtext>{}&#xA0;</mtext>{}</mrow>", escape(words), at(a, WEAK))
            }
            Math::Marked(a) => format!("<mrow class=\"differs\">{}</mrow>", MathMl::bare(a)),
        }
    }
}

fn over(big: Big, below: &Math, body: &Math) -> String {
    let sign = format!("<mo largeop=\"true\" movablelimits=\"false\">{}</mo>", sign(big));
    format!("<mrow><munder>{sign}{}</munder>{}</mrow>", at(below, WEAK), at(body, PRODUCT))
}

const THIN: &str = "<mspace width=\"0.17em\"/>";

fn op(sign: &str) -> String {
    format!("<mo>{}</mo>", escape(sign))
}

/// Something in fences, which grow with it where it is higher than a line: without a font for mathematics browsers let
/// them grow around any index.
fn between(left: &str, inner: &str, right: &str) -> String {
    let high = ["<mfrac", "<mtable", "<munder", "<msqrt"].iter().any(|tag| inner.contains(tag));
    let fence = |sign: &str| format!("<mo fence=\"true\" stretchy=\"{high}\">{sign}</mo>");
    format!("<mrow>{}{inner}{}</mrow>", fence(left), fence(right))
}

fn times(a: &Math, b: &Math, dot: Dot) -> String {
    let sign = match (dot, a, b) {
        (_, _, Math::Number(_)) => op("·"),
        (Dot::Scalar, ..) => THIN.into(),
        (Dot::Entries, ..) => op("⊙"),
    };
    format!("<mrow>{}{sign}{}</mrow>", at(a, PRODUCT), at(b, PRODUCT))
}

fn function(f: Fn1, a: &Math) -> String {
    let name = match f {
        Fn1::Neg => return format!("<mrow>{}{}</mrow>", op("−"), at(a, PRODUCT)),
        Fn1::Sqrt => return format!("<msqrt>{}</msqrt>", at(a, WEAK)),
        Fn1::Abs => return between("|", &at(a, WEAK), "|"),
        Fn1::Sigmoid => "σ",
        other => other.name(),
    };
    applied(&format!("<mi>{name}</mi>"), &at(a, WEAK))
}

fn applied(function: &str, arguments: &str) -> String {
    format!("<mrow>{function}<mo>&#x2061;</mo>{}</mrow>", MathMl::enclosed(arguments))
}

fn call(name: &str, along: &str, arguments: &[Math]) -> String {
    let stem = name.trim_end_matches('\'');
    let primes = name.len() - stem.len();
    let inside: Vec<String> = arguments.iter().map(|a| at(a, WEAK)).collect();
    let inside = format!("<mrow>{}</mrow>", inside.join(&op(",")));
    let indexed = super::name::symbol(stem).filter(|s| !s.index.is_empty());
    let function = match stem {
        _ if indexed.is_some() => indexed.as_ref().map_or_else(String::new, symbol),
        "sum" => "<mo largeop=\"true\">∑</mo>".to_string(),
        "largest" => "<mi>max</mi>".into(),
        "smallest" => "<mi>min</mi>".into(),
        "eye" => return format!("<msub><mi>I</mi>{inside}</msub>"),
        "inverse_deviation" => format!("<msup><mi>std</mi><mrow>{}<mn>1</mn></mrow></msup>", op("−")),
        other => format!("<mi>{}</mi>", escape(other)),
    };
    let function = primed(function, primes);
    let function =
        if along.is_empty() { function } else { format!("<msub>{function}<mtext>{along}</mtext></msub>") };
    applied(&function, &inside)
}

fn primed(base: String, primes: usize) -> String {
    if primes == 0 { base } else { format!("<msup>{base}<mo>{}</mo></msup>", "′".repeat(primes)) }
}

fn cases(c: &Math, a: &Math, b: &Math) -> String {
    let row = |value: &Math, when: String| {
        format!("<mtr><mtd class=\"l\">{}</mtd><mtd class=\"l\">{when}</mtd></mtr>", at(value, WEAK))
    };
    let first = row(a, format!("<mrow><mtext>if&#xA0;</mtext>{}</mrow>", at(c, WEAK)));
    let second = row(b, "<mtext>otherwise</mtext>".into());
    format!("<mrow><mo fence=\"true\" stretchy=\"true\">{{</mo><mtable>{first}{second}</mtable></mrow>")
}

/// A name: Greek and single letters slanted, others upright.
fn symbol(s: &Symbol) -> String {
    let stem = GREEK.iter().find(|(name, _)| *name == s.stem).map(|(_, sign)| sign.to_string());
    let base = format!("<mi>{}</mi>", escape(&stem.unwrap_or_else(|| s.stem.clone())));
    let base = primed(base, s.primes);
    let below: Vec<String> =
        [&s.index, &s.time].into_iter().filter(|x| !x.is_empty()).map(|x| letters(x)).collect();
    if below.is_empty() {
        return base;
    }
    let below = below.join("<mo separator=\"true\">,</mo>");
    match s.primes {
        0 => format!("<msub>{base}<mrow>{below}</mrow></msub>"),
        n => {
            format!("<msubsup><mi>{}</mi><mrow>{below}</mrow><mo>{}</mo></msubsup>", inner(s), "′".repeat(n))
        }
    }
}

fn inner(s: &Symbol) -> String {
    let sign = GREEK.iter().find(|(name, _)| *name == s.stem).map(|(_, sign)| sign.to_string());
    escape(&sign.unwrap_or_else(|| s.stem.clone()))
}

/// `t-1`, `i<=t`: letters, numbers and signs between them.
fn letters(text: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    let flush = |run: &mut String, out: &mut String| {
        if !run.is_empty() {
            let tag = if run.chars().all(|c| c.is_ascii_digit()) { "mn" } else { "mi" };
            *out += &format!("<{tag}>{run}</{tag}>");
            run.clear();
        }
    };
    let text = text.replace("<=", "≤").replace('-', "−");
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() => run.push(c),
            ' ' => flush(&mut run, &mut out),
            c => {
                flush(&mut run, &mut out);
                out += &op(&c.to_string());
            }
        }
    }
    flush(&mut run, &mut out);
    out
}

/// A word: a relation of short names is mathematics, anything else is upright.
fn words(text: &str) -> String {
    let short = text.split(|c: char| !c.is_alphanumeric()).all(|w| w.chars().count() <= 1);
    if short { format!("<mrow>{}</mrow>", letters(text)) } else { format!("<mtext>{}</mtext>", escape(text)) }
}

fn number(x: f64) -> String {
    let signed = |text: &str| match text.strip_prefix('-') {
        Some(rest) => format!("{}<mn>{rest}</mn>", op("−")),
        None => format!("<mn>{text}</mn>"),
    };
    let (digits, power) = digits(x);
    match power {
        Some(power) => {
            let power = format!("<msup><mn>10</mn><mrow>{}</mrow></msup>", signed(&power));
            if digits == "1" { power } else { format!("<mrow>{}{}{power}</mrow>", signed(&digits), op("·")) }
        }
        None if x.is_sign_negative() => format!("<mrow>{}</mrow>", signed(&digits)),
        None => signed(&digits),
    }
}

fn comparison(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Lt => "<",
        Cmp::Le => "≤",
        Cmp::Gt => ">",
        Cmp::Ge => "≥",
        Cmp::Eq => "=",
        Cmp::Ne => "≠",
    }
}

fn sign(big: Big) -> &'static str {
    match big {
        Big::Sum => "∑",
        Big::Product => "∏",
        Big::Max => "max",
    }
}

/// Text in which the characters that markup gives a meaning are taken literally.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
