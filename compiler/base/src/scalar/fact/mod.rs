//! Facts that join several occurrences of an argument or several functions: identities and inverses.
//!
//! Each is one named row with its side condition; the witnesses evaluate both sides over the condition.

mod identity;
mod inverse;

pub use identity::IDENTITIES;
pub use inverse::{INVERSES, solution2};

use super::{Expr, Interval, arg};

/// `left = right` for all arguments within the condition.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Its name, for derivations.
    pub name: &'static str,
    /// One side, usually the longer.
    pub left: fn() -> Expr,
    /// The other, usually the shorter and the safer in floating point.
    pub right: fn() -> Expr,
    /// Where `Arg(0)`, `Arg(1)`, ... must lie: one open interval each.
    pub condition: &'static [Interval],
}

/// A function of `Arg(0)` (with a parameter `Arg(1)` where `parameter` is given) and its inverse, both as
/// expressions; for what single rows cannot invert because the argument occurs more than once.
#[derive(Clone, Copy, Debug)]
pub struct Inverse {
    /// Its name, for derivations.
    pub name: &'static str,
    /// y as an expression of x = `Arg(0)`.
    pub forward: fn() -> Expr,
    /// x as an expression of y = `Arg(0)`.
    pub inverse: fn() -> Expr,
    /// Where x lies.
    pub domain: Interval,
    /// Where y then lies; every y there is taken.
    pub range: Interval,
    /// Where the parameter `Arg(1)` lies.
    pub parameter: Option<Interval>,
}

/// The solution of `y = f(a, b)` for one argument: an expression of y = `Arg(0)` and the other argument
/// = `Arg(1)`. Each condition is a union of open intervals.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The argument solved for.
    pub expr: Expr,
    /// Where it lies.
    pub domain: &'static [Interval],
    /// Where the other argument must lie.
    pub other: &'static [Interval],
    /// Where y must lie.
    pub range: &'static [Interval],
}

pub(super) const REALS: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
pub(super) const POSITIVE: Interval = Interval { low: 0.0, high: f64::INFINITY };
pub(super) const NEGATIVE: Interval = Interval { low: f64::NEG_INFINITY, high: 0.0 };
pub(super) const UNIT: Interval = Interval { low: 0.0, high: 1.0 };
pub(super) const BALL: Interval = Interval { low: -1.0, high: 1.0 };
pub(super) const ABOVE_MINUS_ONE: Interval = Interval { low: -1.0, high: f64::INFINITY };
pub(super) const ABOVE_ONE: Interval = Interval { low: 1.0, high: f64::INFINITY };
pub(super) const NONZERO: &[Interval] = &[NEGATIVE, POSITIVE];

pub(super) fn x() -> Expr {
    arg(0)
}

pub(super) fn y() -> Expr {
    arg(1)
}
