//! The one table of scalar functions.
//!
//! Everything that must know something about a scalar function reads it here: the inner calculus, the
//! retention solver, the backward pass, the emitters and the numeric witnesses. A fact that is not in
//! the table is a typed refusal, never a guess.

use std::fmt;

/// Functions of one real argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fn1 {
    /// -x
    Neg,
    /// e^x
    Exp,
    /// e^x - 1, accurate near 0
    Expm1,
    /// natural logarithm, x > 0
    Log,
    /// log(1 + x), accurate near 0, x > -1
    Log1p,
    /// square root, x >= 0
    Sqrt,
    /// |x|
    Abs,
    /// -1, 0 or 1; its derivative is 0 everywhere
    Sign,
    /// hyperbolic tangent
    Tanh,
    /// inverse of tanh, |x| < 1
    Atanh,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// log(x / (1 - x)), 0 < x < 1: the inverse of sigmoid
    Logit,
    /// log(1 + e^x)
    Softplus,
    /// x Phi(x) with the exact Gauss distribution function
    Gelu,
    /// the tanh approximation of gelu
    GeluTanh,
    /// x sigmoid(x)
    Silu,
    /// max(x, 0); derivative 0 at 0
    Relu,
    /// Gauss error function
    Erf,
    /// sine
    Sin,
    /// cosine
    Cos,
    /// tangent, |x| < pi/2: the inverse of atan
    Tan,
    /// hyperbolic sine
    Sinh,
    /// hyperbolic cosine
    Cosh,
    /// inverse of sinh
    Asinh,
    /// inverse tangent
    Atan,
}

/// Functions of two real arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fn2 {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b; 0 where both are 0: norms, powers and divisions have defined values at 0
    Div,
    /// a^b, with defined values at 0: 0^0 = 1 and 0^b = 0 for every other b, negative ones included (so
    /// `a^-1` is the reciprocal that is 0 at 0, and e.g. `e * (e^2)^(p/2 - 1)` is 0 at e = 0). For a < 0
    /// defined where b is a whole number, elsewhere 0. Its derivatives are 0 where infinite.
    Pow,
    /// the smaller
    Min,
    /// the larger
    Max,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cmp {
    /// a < b
    Lt,
    /// a <= b
    Le,
    /// a > b
    Gt,
    /// a >= b
    Ge,
    /// a = b
    Eq,
    /// a != b
    Ne,
}

/// A scalar expression of the table: what a derivative or an inverse is, in terms of its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// The n-th argument of the function at hand, from 0.
    Arg(u8),
    /// A number.
    Const(f64),
    /// A function applied to one expression.
    Fn1(Fn1, Box<Expr>),
    /// A function applied to two.
    Fn2(Fn2, Box<Expr>, Box<Expr>),
    /// `if a cmp b then c else d`.
    Select(Cmp, Box<Expr>, Box<Expr>, Box<Expr>, Box<Expr>),
}

/// An interval of reals, ends open; infinite where unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end (excluded).
    pub low: f64,
    /// Upper end (excluded).
    pub high: f64,
}

/// Symmetry of a function about 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// f(-x) = f(x)
    Even,
    /// f(-x) = -f(x)
    Odd,
    /// neither
    Neither,
}

/// How a function runs over its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monotone {
    /// strictly increasing
    Increasing,
    /// strictly decreasing
    Decreasing,
    /// neither strictly
    Neither,
}

/// One row of the table for a function of one argument.
#[derive(Clone, Copy, Debug)]
pub struct Row1 {
    /// The function.
    pub function: Fn1,
    /// Its name in the language; internal ones (`logit`, `tan`, `atanh`, `cosh`, `expm1`) have theirs too.
    pub name: &'static str,
    /// Whether programs may call it by that name.
    pub in_language: bool,
    /// Float64 meaning. Outside the domain, singular points included, the function is continued by its value
    /// at the nearest float64 inside: log(0) is log of the smallest normal, sqrt(-1) is 0.
    pub value: fn(f64) -> f64,
    /// Where it is defined.
    pub domain: Interval,
    /// The values it takes there. Ends may be attained where the function is not strictly monotone.
    pub range: Interval,
    /// Derivative with respect to argument 0, as an expression of argument 0. Every row has one.
    pub derivative: fn() -> Expr,
    /// The inverse from `range` to `domain`, as an expression of argument 0, where the table has one.
    pub inverse: Option<fn() -> Expr>,
    /// Symmetry.
    pub parity: Parity,
    /// Direction.
    pub monotone: Monotone,
    /// LaTeX with `#1` for the argument, e.g. `\exp(#1)`.
    pub latex: &'static str,
    /// Where the derivative jumps or is infinite; witnesses stay away from these.
    pub kinks: &'static [f64],
}

mod build;
mod calculus;
mod fact;
mod rows;
mod short;
pub mod single;
mod slope;
mod value;

#[cfg(test)]
mod witness;

pub use build::*;
pub use calculus::derivative2;
pub use fact::{IDENTITIES, INVERSES, Identity, Inverse, Solution, solution2};
pub use rows::{ROWS, row};

impl Fn1 {
    /// Float64 meaning.
    pub fn eval(self, x: f64) -> f64 {
        (row(self).value)(x)
    }

    /// The name in the language.
    pub fn name(self) -> &'static str {
        row(self).name
    }

    /// The function that programs call by this name.
    pub fn from_name(name: &str) -> Option<Fn1> {
        ROWS.iter().find(|r| r.in_language && r.name == name).map(|r| r.function)
    }
}

impl Fn2 {
    /// Float64 meaning.
    pub fn eval(self, a: f64, b: f64) -> f64 {
        value::value2(self, a, b)
    }

    /// Infix spelling of the four operators, `^`, or the name of a call.
    pub fn spelling(self) -> &'static str {
        match self {
            Fn2::Add => "+",
            Fn2::Sub => "-",
            Fn2::Mul => "*",
            Fn2::Div => "/",
            Fn2::Pow => "^",
            Fn2::Min => "min",
            Fn2::Max => "max",
        }
    }
}

impl Cmp {
    /// Float64 meaning.
    pub fn eval(self, a: f64, b: f64) -> bool {
        match self {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
        }
    }

    /// Spelling in the language.
    pub fn spelling(self) -> &'static str {
        match self {
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
            Cmp::Eq => "==",
            Cmp::Ne => "!=",
        }
    }
}

impl Expr {
    /// Float64 value for these arguments.
    pub fn eval(&self, args: &[f64]) -> f64 {
        match self {
            Expr::Arg(i) => args[*i as usize],
            Expr::Const(c) => *c,
            Expr::Fn1(f, a) => f.eval(a.eval(args)),
            Expr::Fn2(f, a, b) => f.eval(a.eval(args), b.eval(args)),
            Expr::Select(c, a, b, t, e) => {
                if c.eval(a.eval(args), b.eval(args)) {
                    t.eval(args)
                } else {
                    e.eval(args)
                }
            }
        }
    }
}

impl fmt::Display for Fn1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
