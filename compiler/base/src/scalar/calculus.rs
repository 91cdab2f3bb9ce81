//! Derivatives of functions of two arguments and of whole expressions.

use super::{Cmp, Expr, Fn1, Fn2};
use super::{arg, call, call2, div, mul, num, reciprocal, row, select, sub};

/// The partial derivative of `f(Arg(0), Arg(1))` by argument `by` (0 or 1; others do not occur in it, so 0).
///
/// A tie of `min` or `max` counts as argument 0 chosen. Powers: `b a^(b-1)` by the base, `a^b log a` by the
/// exponent where a > 0, else 0; the table's 0^b = 0 for b < 0 makes them 0 where the truth is infinite.
pub fn derivative2(f: Fn2, by: u8) -> Expr {
    match by {
        0 => by_first(f),
        1 => by_second(f),
        _ => num(0.0),
    }
}

fn by_first(f: Fn2) -> Expr {
    match f {
        Fn2::Add | Fn2::Sub => num(1.0),
        Fn2::Mul => arg(1),
        Fn2::Div => reciprocal(arg(1)),
        Fn2::Pow => mul(arg(1), call2(Fn2::Pow, arg(0), sub(arg(1), num(1.0)))),
        Fn2::Min => select(Cmp::Le, arg(0), arg(1), num(1.0), num(0.0)),
        Fn2::Max => select(Cmp::Ge, arg(0), arg(1), num(1.0), num(0.0)),
    }
}

fn by_second(f: Fn2) -> Expr {
    match f {
        Fn2::Add => num(1.0),
        Fn2::Sub => num(-1.0),
        Fn2::Mul => arg(0),
        Fn2::Div => call(Fn1::Neg, div(div(arg(0), arg(1)), arg(1))),
        Fn2::Pow => {
            let slope = mul(call2(Fn2::Pow, arg(0), arg(1)), call(Fn1::Log, arg(0)));
            select(Cmp::Gt, arg(0), num(0.0), slope, num(0.0))
        }
        Fn2::Min => select(Cmp::Le, arg(0), arg(1), num(0.0), num(1.0)),
        Fn2::Max => select(Cmp::Ge, arg(0), arg(1), num(0.0), num(1.0)),
    }
}

impl Expr {
    /// The partial derivative by argument `by`, constants folded. The condition of a `Select` counts as
    /// locally constant.
    pub fn derivative(&self, by: u8) -> Expr {
        match self {
            Expr::Arg(i) => num(if *i == by { 1.0 } else { 0.0 }),
            Expr::Const(_) => num(0.0),
            Expr::Fn1(f, a) => chain((row(*f).derivative)(), &[a], by, 0),
            Expr::Fn2(f, a, b) => fold2(
                Fn2::Add,
                chain(derivative2(*f, 0), &[a, b], by, 0),
                chain(derivative2(*f, 1), &[a, b], by, 1),
            ),
            Expr::Select(c, a, b, t, e) => match (t.derivative(by), e.derivative(by)) {
                (t, e) if t == e => t,
                (t, e) => select(*c, (**a).clone(), (**b).clone(), t, e),
            },
        }
    }

    /// The expression with `Arg(i)` replaced by `args[i]`, constants folded. Arguments beyond `args` stay.
    pub fn substitute(&self, args: &[&Expr]) -> Expr {
        match self {
            Expr::Arg(i) => args.get(*i as usize).map_or_else(|| self.clone(), |a| (*a).clone()),
            Expr::Const(_) => self.clone(),
            Expr::Fn1(f, a) => fold1(*f, a.substitute(args)),
            Expr::Fn2(f, a, b) => fold2(*f, a.substitute(args), b.substitute(args)),
            Expr::Select(c, a, b, t, e) => {
                let [a, b, t, e] = [a, b, t, e].map(|p| p.substitute(args));
                select(*c, a, b, t, e)
            }
        }
    }
}

/// `slope(args) * d args[which] / d by`.
fn chain(slope: Expr, args: &[&Expr], by: u8, which: usize) -> Expr {
    let inner = args[which].derivative(by);
    if inner == Expr::Const(0.0) {
        return inner;
    }
    fold2(Fn2::Mul, slope.substitute(args), inner)
}

fn fold1(f: Fn1, a: Expr) -> Expr {
    match (f, a) {
        (f, Expr::Const(c)) => num(f.eval(c)),
        (Fn1::Neg, Expr::Fn1(Fn1::Neg, a)) => *a,
        (f, a) => call(f, a),
    }
}

/// Constants and neutral elements; `0 * a` is 0, since no row's derivative is infinite where it is used.
fn fold2(f: Fn2, a: Expr, b: Expr) -> Expr {
    match (f, constant(&a), constant(&b)) {
        (f, Some(a), Some(b)) => num(f.eval(a, b)),
        (Fn2::Add, Some(0.0), None) | (Fn2::Mul, Some(1.0), None) => b,
        (Fn2::Add | Fn2::Sub, None, Some(0.0)) => a,
        (Fn2::Mul | Fn2::Div | Fn2::Pow, None, Some(1.0)) => a,
        (Fn2::Mul, Some(0.0), None) | (Fn2::Mul, None, Some(0.0)) => num(0.0),
        (Fn2::Div, Some(0.0), None) => num(0.0),
        (Fn2::Pow, None, Some(0.0)) => num(1.0),
        (Fn2::Sub, Some(0.0), None) => fold1(Fn1::Neg, b),
        (Fn2::Mul, Some(-1.0), None) => fold1(Fn1::Neg, b),
        (Fn2::Mul, None, Some(-1.0)) => fold1(Fn1::Neg, a),
        _ => call2(f, a, b),
    }
}

fn constant(a: &Expr) -> Option<f64> {
    if let Expr::Const(c) = a { Some(*c) } else { None }
}
