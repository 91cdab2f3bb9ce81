//! Terms as plain text.

use crate::arena::{Axis, Op, Place, Reduce, TermId, Terms};
use miras_base::scalar::{Fn1, Fn2};
use std::cell::Cell;
use std::collections::HashMap;

/// How terms are printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Terms that have a name of their own and are printed as that name.
    pub names: HashMap<TermId, String>,
}

/// A term as one line of text, in the language's own syntax where it has one.
pub fn print(terms: &Terms, id: TermId, options: &PrintOptions) -> String {
    Printer { terms, options, left: Cell::new(usize::MAX) }.at(id, 0)
}

/// A term as text of about `most` characters: parts that would make it longer are `...`.
pub fn print_within(terms: &Terms, id: TermId, options: &PrintOptions, most: usize) -> String {
    Printer { terms, options, left: Cell::new(most) }.at(id, 0)
}

struct Printer<'a> {
    terms: &'a Terms,
    options: &'a PrintOptions,
    /// Characters that may still be spent.
    left: Cell<usize>,
}

/// Binding strengths, weakest first.
const IF: u8 = 0;
const COMPARE: u8 = 1;
const SUM: u8 = 2;
const PRODUCT: u8 = 3;
const SIGN: u8 = 4;
const POWER: u8 = 5;
const ATOM: u8 = 6;

impl Printer<'_> {
    /// The term's text, in parentheses where it binds weaker than `least`.
    fn at(&self, id: TermId, least: u8) -> String {
        if let Some(name) = self.options.names.get(&id) {
            return name.clone();
        }
        let leaf = self.terms.operands(id).is_empty();
        let left = self.left.get();
        if left < 3 && !leaf {
            return "...".into();
        }
        self.left.set(left.saturating_sub(if leaf { 1 } else { 3 }));
        let (text, strength) = self.bare(id);
        if strength < least { format!("({text})") } else { text }
    }

    fn bare(&self, id: TermId) -> (String, u8) {
        match self.terms.op(id) {
            Op::Const(n) => (number(n.0), if n.0.is_sign_negative() { SIGN } else { ATOM }),
            Op::Size(dim) => (dim.formula(), if dim.formula().contains([' ', '*']) { SUM } else { ATOM }),
            Op::Place(place) => (place_name(*place).into(), ATOM),
            Op::Var(v) => (self.terms.var(*v).name.clone(), ATOM),
            Op::Fn1(Fn1::Neg, a) => (format!("-{}", self.at(*a, SIGN)), SIGN),
            Op::Fn1(f, a) => (self.call(f.name(), &[*a]), ATOM),
            Op::Fn2(f, a, b) => self.binary(*f, *a, *b),
            Op::Compare(c, a, b) => {
                (format!("{} {} {}", self.at(*a, SUM), c.spelling(), self.at(*b, SUM)), COMPARE)
            }
            Op::Select(c, a, b) => (
                format!("if {} then {} else {}", self.at(*c, COMPARE), self.at(*a, COMPARE), self.at(*b, IF)),
                IF,
            ),
            Op::MatMul(a, b) => (format!("{} @ {}", self.at(*a, PRODUCT), self.at(*b, SIGN)), PRODUCT),
            Op::Outer(a, b) => (self.call("outer", &[*a, *b]), ATOM),
            Op::Transpose(a) => (self.call("transpose", &[*a]), ATOM),
            Op::Row(a) => (self.call("row", &[*a]), ATOM),
            Op::Col(a) => (self.call("col", &[*a]), ATOM),
            Op::Flat(a) | Op::Spread(a, _) => self.bare_or_name(*a),
            Op::Reduce(op, axis, a) => {
                (self.call(&format!("{}{}", reduce_name(*op), axis_suffix(*axis)), &[*a]), ATOM)
            }
            Op::Norm(x, p) => (self.call("norm", &[*x, *p]), ATOM),
            Op::Softmax(axis, a) => (self.call(&format!("softmax{}", axis_suffix(*axis)), &[*a]), ATOM),
            Op::LogSoftmax(axis, a) => (self.call(&format!("logsoftmax{}", axis_suffix(*axis)), &[*a]), ATOM),
            Op::LayerNorm(a) => (self.call("layernorm", &[*a]), ATOM),
            Op::InverseDeviation(a) => (self.call("inverse_deviation", &[*a]), ATOM),
            Op::Eye(n) => (format!("eye({n})"), ATOM),
            Op::Stop(a) => (self.call("stop", &[*a]), ATOM),
            Op::Root(root) => {
                let r = self.terms.root(*root);
                let unknown = &self.terms.var(r.unknown).name;
                (format!("root({unknown}: {} = 0)", self.at(r.residual, SUM)), ATOM)
            }
        }
    }

    fn bare_or_name(&self, id: TermId) -> (String, u8) {
        match self.options.names.get(&id) {
            Some(name) => (name.clone(), ATOM),
            None => self.bare(id),
        }
    }

    fn call(&self, name: &str, args: &[TermId]) -> String {
        let args: Vec<String> = args.iter().map(|a| self.at(*a, IF)).collect();
        format!("{name}({})", args.join(", "))
    }

    fn binary(&self, f: Fn2, a: TermId, b: TermId) -> (String, u8) {
        let infix = |left: u8, right: u8, strength: u8, sign: &str| {
            (format!("{}{sign}{}", self.at(a, left), self.at(b, right)), strength)
        };
        match f {
            Fn2::Add => match self.terms.op(b) {
                Op::Fn1(Fn1::Neg, inner) if !self.options.names.contains_key(&b) => {
                    (format!("{} - {}", self.at(a, SUM), self.at(*inner, PRODUCT)), SUM)
                }
                _ => infix(SUM, SUM, SUM, " + "),
            },
            Fn2::Sub => infix(SUM, PRODUCT, SUM, " - "),
            Fn2::Mul => infix(PRODUCT, SIGN, PRODUCT, " * "),
            Fn2::Div => infix(PRODUCT, SIGN, PRODUCT, " / "),
            Fn2::Pow => infix(ATOM, POWER, POWER, "^"),
            Fn2::Min | Fn2::Max => (self.call(f.spelling(), &[a, b]), ATOM),
        }
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

fn reduce_name(op: Reduce) -> &'static str {
    match op {
        Reduce::Sum => "sum",
        Reduce::Max => "largest",
        Reduce::Min => "smallest",
    }
}

fn axis_suffix(axis: Axis) -> &'static str {
    match axis {
        Axis::All => "",
        Axis::Row => "_row",
        Axis::Column => "_column",
    }
}

/// A number as short as it can be read back: `2`, `0.5`, `1e-6`.
fn number(x: f64) -> String {
    let magnitude = x.abs();
    if x != 0.0 && !(1e-4..1e7).contains(&magnitude) { format!("{x:e}") } else { format!("{x}") }
}
