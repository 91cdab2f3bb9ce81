//! Formulas as trees, between terms and the forms they are printed in.
//!
//! A term becomes a tree by [`Scope::math`]; formulas that speak of several tokens are put together here. Each
//! printed form (text, LaTeX, MathML) is one exhaustive match over the same tree.

mod build;
mod form;
mod latex;
mod mathml;
mod name;
mod number;
mod term;
mod text;

pub(crate) use build::*;
pub(crate) use latex::escape as escape_latex;
pub(crate) use mathml::escape as escape_markup;
pub use name::Symbol;
pub(crate) use name::named;
pub(crate) use term::{Scope, at};
pub(crate) use text::{CLOSE, OPEN};

use form::{ATOM, PRODUCT};
use miras_base::scalar::{Cmp, Fn1};

/// A formula, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Math {
    /// A number.
    Number(f64),
    /// A name with its index, time and primes.
    Symbol(Symbol),
    /// A word that stands in a formula as it is: a size, `head`, a condition.
    Word(String),
    /// `-a`
    Neg(Box<Math>),
    /// Summands with their signs; true: subtracted.
    Sum(Vec<(bool, Math)>),
    /// A product, entry by entry, or of a scalar with anything.
    Times(Box<Math>, Box<Math>, Dot),
    /// A matrix product.
    MatMul(Box<Math>, Box<Math>),
    /// An outer product.
    Outer(Box<Math>, Box<Math>),
    /// An inner product of vectors.
    Inner(Box<Math>, Box<Math>),
    /// A transposed matrix.
    Transpose(Box<Math>),
    /// `a / b`
    Fraction(Box<Math>, Box<Math>),
    /// `a^b`
    Power(Box<Math>, Box<Math>),
    /// A function of the table.
    Function(Fn1, Box<Math>),
    /// Any other function: its name, the axes it runs along (may be empty), its arguments.
    Call(String, &'static str, Vec<Math>),
    /// `if c then a else b`
    Cases(Box<Math>, Box<Math>, Box<Math>),
    /// A comparison.
    Compare(Cmp, Box<Math>, Box<Math>),
    /// The p-norm over all entries.
    Norm(Box<Math>, Box<Math>),
    /// A sum or product over tokens: the sign, what stands below it, the body.
    Over(Big, Box<Math>, Box<Math>),
    /// `unknown` such that `residual = 0`.
    Root(Box<Math>, Box<Math>),
    /// The derivative of a scalar by something.
    Slope(Box<Math>, Box<Math>),
    /// The cotangent of something: d(outer scalar) / d(it).
    Cotangent(Box<Math>),
    /// Words before a formula.
    Prefixed(String, Box<Math>),
    /// A part that is marked, where two formulas are compared.
    Marked(Box<Math>),
}

/// How a product is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// One side is a scalar.
    Scalar,
    /// Entry by entry.
    Entries,
}

/// Signs that run over tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Big {
    /// A sum.
    Sum,
    /// A product.
    Product,
    /// The largest.
    Max,
}

/// `left = right`, where it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// Left side.
    pub left: Math,
    /// Right side.
    pub right: Math,
    /// For which tokens, or what the formula gives; may be empty.
    pub remark: String,
}

impl Formula {
    /// `left = right`.
    pub(crate) fn new(left: Math, right: Math) -> Formula {
        Formula { left, right, remark: String::new() }
    }

    /// The same with a remark.
    #[must_use]
    pub(crate) fn remarked(mut self, remark: impl Into<String>) -> Formula {
        self.remark = remark.into();
        self
    }

    /// As a line of text.
    pub fn text(&self) -> String {
        format!("{} = {}", self.left.text(), self.right.text())
    }

    /// As LaTeX for a display: broken into lines where it is long.
    pub fn latex(&self) -> String {
        latex::equation(&self.left, &self.right)
    }

    /// As a `<math>` element for a display, with the LaTeX as its annotation.
    pub fn mathml(&self) -> String {
        mathml::equation(&self.left, &self.right, &self.latex())
    }
}

impl Math {
    /// As a line of text, in the language's own syntax where it has one.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The same without primes, where tokens tell before and after.
    #[must_use]
    pub(crate) fn unprimed(self) -> Math {
        build::mapped(self, &|m| match m {
            Math::Symbol(s) => Math::Symbol(Symbol { primes: 0, ..s }),
            other => other,
        })
    }

    /// The same without the marks of a comparison, which stand around it or around its summands.
    #[must_use]
    pub(crate) fn unmarked(self) -> Math {
        match self {
            Math::Marked(inner) => *inner,
            Math::Sum(parts) => {
                Math::Sum(parts.into_iter().map(|(minus, p)| (minus, p.unmarked())).collect())
            }
            other => other,
        }
    }

    /// The summands of a sum; the formula itself where it is none.
    pub(crate) fn summands(&self) -> Vec<(bool, Math)> {
        match self {
            Math::Sum(parts) => parts.clone(),
            Math::Neg(inner) => vec![(true, (**inner).clone())],
            other => vec![(false, other.clone())],
        }
    }
}

/// How tightly the left side of a matrix product must bind where the product has no sign of its own: it binds
/// tighter than a product entry by entry.
fn of_left(left: &Math) -> u8 {
    match left {
        Math::Times(_, _, Dot::Entries) => ATOM,
        _ => PRODUCT,
    }
}

/// Formulas wider than this many characters of text are broken at their summands.
const WIDE: usize = 72;

/// The rows of a formula for a display: its summands, each with its sign, where it is wide; else one row.
fn rows(left: &Math, right: &Math) -> Vec<(bool, Math)> {
    let wide = left.text().chars().count() + right.text().chars().count() > WIDE;
    match right {
        Math::Sum(parts) if wide && parts.len() > 1 => parts.clone(),
        _ => vec![(false, right.clone())],
    }
}
