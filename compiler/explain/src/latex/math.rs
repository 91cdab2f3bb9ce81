//! Terms as LaTeX formulas.

use miras_base::scalar::{Cmp, Fn1, Fn2, row};
use miras_term::{Axis, Op, Place, Reduce, TermId, Terms};
use std::collections::HashMap;

/// A term as a formula; terms with a name are printed as that name.
pub(super) fn math(terms: &Terms, id: TermId, names: &HashMap<TermId, String>) -> String {
    Writer { terms, names }.at(id, 0)
}

/// The left side of an equation of the derivation: a name, `dloss/dy`, or a call.
pub(super) fn left_side(text: &str) -> String {
    match text.strip_prefix("dloss/d") {
        Some(by) => format!("\\frac{{\\partial\\,\\mathrm{{loss}}}}{{\\partial {}}}", name(by)),
        None => name(text),
    }
}

/// A name such as `W[1]`, `alpha`, `S'` or `delta[2]` in mathematics; anything else upright.
fn name(text: &str) -> String {
    let (body, primes) = match text.find('\'') {
        Some(i) if text[i..].chars().all(|c| c == '\'') => (&text[..i], &text[i..]),
        _ => (text, ""),
    };
    let (stem, index) = match body.split_once('[') {
        Some((stem, rest)) => (stem, rest.strip_suffix(']').unwrap_or(rest)),
        None => (body, ""),
    };
    let simple = |s: &str| s.chars().all(|c| c.is_ascii_alphanumeric());
    if !simple(stem) || !simple(index) || stem.is_empty() {
        return format!("\\mathrm{{{}}}{primes}", super::escape(body).replace(' ', "\\ "));
    }
    let stem = if GREEK.contains(&stem) {
        format!("\\{stem}")
    } else if stem.chars().count() == 1 {
        stem.to_string()
    } else {
        format!("\\mathrm{{{stem}}}")
    };
    let index = if index.is_empty() { String::new() } else { format!("_{{{index}}}") };
    format!("{stem}{index}{primes}")
}

const GREEK: &[&str] = &[
    "alpha", "beta", "gamma", "delta", "eta", "theta", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau",
    "phi", "psi", "zeta", "Gamma",
];

struct Writer<'a> {
    terms: &'a Terms,
    names: &'a HashMap<TermId, String>,
}

/// Binding strengths, weakest first.
const WEAK: u8 = 0;
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const ATOM: u8 = 3;

impl Writer<'_> {
    fn at(&self, id: TermId, least: u8) -> String {
        if let Some(text) = self.names.get(&id) {
            return name(text);
        }
        let (text, strength) = self.bare(id);
        if strength < least { format!("\\left({text}\\right)") } else { text }
    }

    fn bare(&self, id: TermId) -> (String, u8) {
        let terms = self.terms;
        match terms.op(id) {
            Op::Const(n) => (number(n.0), if n.0.is_sign_negative() { SUM } else { ATOM }),
            Op::Size(dim) => (format!("\\mathrm{{{}}}", dim.formula()), PRODUCT),
            Op::Place(place) => (format!("\\mathrm{{{}}}", place_name(*place)), ATOM),
            Op::Var(v) => (name(&terms.var(*v).name), ATOM),
            Op::Fn1(Fn1::Neg, a) => (format!("-{}", self.at(*a, PRODUCT)), SUM),
            Op::Fn1(f, a) => (row(*f).latex.replace("#1", &self.at(*a, WEAK)), ATOM),
            Op::Fn2(f, a, b) => self.binary(*f, *a, *b),
            Op::Compare(c, a, b) => {
                (format!("{} {} {}", self.at(*a, SUM), comparison(*c), self.at(*b, SUM)), WEAK)
            }
            Op::Select(c, a, b) => {
                let (c, a, b) = (self.at(*c, WEAK), self.at(*a, WEAK), self.at(*b, WEAK));
                let cases = format!("{a} & \\text{{if }} {c} \\\\ {b} & \\text{{otherwise}}");
                (format!("\\begin{{cases}} {cases} \\end{{cases}}"), WEAK)
            }
            Op::MatMul(a, b) => (format!("{}\\, {}", self.at(*a, PRODUCT), self.at(*b, ATOM)), PRODUCT),
            Op::Outer(a, b) => (format!("{} \\otimes {}", self.at(*a, ATOM), self.at(*b, ATOM)), PRODUCT),
            Op::Transpose(a) => (format!("{}^{{\\top}}", self.at(*a, ATOM)), ATOM),
            Op::Row(a) | Op::Col(a) | Op::Flat(a) | Op::Spread(a, _) => match self.names.get(a) {
                Some(text) => (name(text), ATOM),
                None => self.bare(*a),
            },
            Op::Reduce(op, axis, a) => {
                let inner = self.at(*a, PRODUCT);
                (format!("{}_{{{}}} {inner}", reduction(*op), axis_name(*axis)), PRODUCT)
            }
            Op::Norm(x, p) => (
                format!("\\left\\lVert {} \\right\\rVert_{{{}}}", self.at(*x, WEAK), self.at(*p, WEAK)),
                ATOM,
            ),
            Op::Softmax(axis, a) => (self.call("softmax", Some(*axis), *a), ATOM),
            Op::LogSoftmax(axis, a) => (self.call("logsoftmax", Some(*axis), *a), ATOM),
            Op::LayerNorm(a) => (self.call("layernorm", None, *a), ATOM),
            Op::InverseDeviation(a) => (self.call("std^{-1}", None, *a), ATOM),
            Op::Eye(_) => ("I".into(), ATOM),
            Op::Stop(a) => (self.call("stop", None, *a), ATOM),
            Op::Root(root) => {
                let root = terms.root(*root);
                let unknown = name(&terms.var(root.unknown).name);
                (format!("{unknown} : {} = 0", self.at(root.residual, WEAK)), WEAK)
            }
        }
    }

    fn call(&self, function: &str, axis: Option<Axis>, a: TermId) -> String {
        let along = match axis {
            None | Some(Axis::All) => String::new(),
            Some(axis) => format!("_{{\\mathrm{{{}}}}}", axis_name(axis)),
        };
        format!("\\mathrm{{{function}}}{along}\\left({}\\right)", self.at(a, WEAK))
    }

    fn binary(&self, f: Fn2, a: TermId, b: TermId) -> (String, u8) {
        match f {
            Fn2::Add => (format!("{} + {}", self.at(a, SUM), self.at(b, SUM)), SUM),
            Fn2::Sub => (format!("{} - {}", self.at(a, SUM), self.at(b, PRODUCT)), SUM),
            Fn2::Mul => {
                let scalars = self.terms.shape(a).rank() == 0 || self.terms.shape(b).rank() == 0;
                let dot = if scalars { "\\, " } else { " \\odot " };
                (format!("{}{dot}{}", self.at(a, PRODUCT), self.at(b, PRODUCT)), PRODUCT)
            }
            Fn2::Div => (format!("\\frac{{{}}}{{{}}}", self.at(a, WEAK), self.at(b, WEAK)), ATOM),
            Fn2::Pow => (format!("{{{}}}^{{{}}}", self.at(a, ATOM), self.at(b, WEAK)), PRODUCT),
            Fn2::Min => (format!("\\min\\left({}, {}\\right)", self.at(a, WEAK), self.at(b, WEAK)), ATOM),
            Fn2::Max => (format!("\\max\\left({}, {}\\right)", self.at(a, WEAK), self.at(b, WEAK)), ATOM),
        }
    }
}

fn number(x: f64) -> String {
    let text = if x != 0.0 && !(1e-4..1e7).contains(&x.abs()) { format!("{x:e}") } else { format!("{x}") };
    match text.split_once('e') {
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

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Head => "head",
        Place::Heads => "heads",
        Place::Layer => "layer",
        Place::Layers => "layers",
    }
}

fn reduction(op: Reduce) -> &'static str {
    match op {
        Reduce::Sum => "\\sum",
        Reduce::Max => "\\max",
        Reduce::Min => "\\min",
    }
}

fn axis_name(axis: Axis) -> &'static str {
    match axis {
        Axis::All => "",
        Axis::Row => "row",
        Axis::Column => "column",
    }
}
