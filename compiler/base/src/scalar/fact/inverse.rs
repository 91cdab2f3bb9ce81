//! Inverses by several occurrences, and by one argument of two.

use super::super::short::{abs, exp, log, pow, sign, sqrt};
use super::super::{Expr, Fn2, Interval, add, div, mul, num, power, reciprocal, sub};
use super::{
    ABOVE_MINUS_ONE, ABOVE_ONE, BALL, Inverse, NEGATIVE, NONZERO, POSITIVE, REALS, Solution, UNIT, x, y,
};

/// The inverses of expressions in which the argument occurs more than once.
pub static INVERSES: &[Inverse] = &[
    Inverse {
        parameter: Some(POSITIVE),
        ..inverse("signed power", signed_power, || mul(sign(x()), pow(abs(x()), reciprocal(y()))))
    },
    Inverse {
        parameter: Some(ABOVE_MINUS_ONE),
        ..inverse(
            "x times a power of abs",
            || mul(x(), pow(abs(x()), y())),
            || mul(sign(x()), pow(abs(x()), reciprocal(add(num(1.0), y())))),
        )
    },
    Inverse {
        domain: UNIT,
        range: POSITIVE,
        ..inverse("odds", || div(x(), sub(num(1.0), x())), || div(x(), add(num(1.0), x())))
    },
    Inverse {
        domain: POSITIVE,
        range: NEGATIVE,
        ..inverse(
            "log of a share",
            || sub(log(x()), log(add(num(1.0), x()))),
            || div(exp(x()), sub(num(1.0), exp(x()))),
        )
    },
    Inverse {
        range: BALL,
        ..inverse("softsign", || div(x(), add(num(1.0), abs(x()))), || div(x(), sub(num(1.0), abs(x()))))
    },
    Inverse {
        range: BALL,
        ..inverse(
            "direction on the hyperbola",
            || div(x(), sqrt(add(num(1.0), power(x(), 2.0)))),
            || div(x(), sqrt(mul(sub(num(1.0), x()), add(num(1.0), x())))),
        )
    },
    Inverse {
        domain: BALL,
        ..inverse(
            "direction on the circle",
            || div(x(), sqrt(sub(num(1.0), power(x(), 2.0)))),
            || div(x(), sqrt(add(num(1.0), power(x(), 2.0)))),
        )
    },
    Inverse {
        domain: POSITIVE,
        ..inverse(
            "difference from the reciprocal",
            || sub(x(), reciprocal(x())),
            || {
                let root = sqrt(add(power(x(), 2.0), num(4.0)));
                mul(num(0.5), add(x(), root))
            },
        )
    },
];

/// The solution of `y = f(a, b)` for argument `by` (0 or 1) where it is unique.
pub fn solution2(f: Fn2, by: u8) -> Option<Solution> {
    const ALL: &[Interval] = &[REALS];
    const POS: &[Interval] = &[POSITIVE];
    let anywhere = |expr| Solution { expr, domain: ALL, other: ALL, range: ALL };
    match (f, by) {
        (Fn2::Add, 0 | 1) => Some(anywhere(sub(x(), y()))),
        (Fn2::Sub, 0) => Some(anywhere(add(x(), y()))),
        (Fn2::Sub, 1) => Some(anywhere(sub(y(), x()))),
        (Fn2::Mul, 0 | 1) => Some(Solution { other: NONZERO, ..anywhere(div(x(), y())) }),
        (Fn2::Div, 0) => Some(Solution { other: NONZERO, ..anywhere(mul(x(), y())) }),
        (Fn2::Div, 1) => {
            Some(Solution { expr: div(y(), x()), domain: NONZERO, other: NONZERO, range: NONZERO })
        }
        (Fn2::Pow, 0) => {
            Some(Solution { expr: pow(x(), reciprocal(y())), domain: POS, other: NONZERO, range: POS })
        }
        (Fn2::Pow, 1) => {
            const BASES: &[Interval] = &[UNIT, ABOVE_ONE];
            Some(Solution { expr: div(log(x()), log(y())), domain: ALL, other: BASES, range: POS })
        }
        (Fn2::Min | Fn2::Max, _) | (_, 2..) => None,
    }
}

const fn inverse(name: &'static str, forward: fn() -> Expr, inverse: fn() -> Expr) -> Inverse {
    Inverse { name, forward, inverse, domain: REALS, range: REALS, parameter: None }
}

fn signed_power() -> Expr {
    mul(sign(x()), pow(abs(x()), y()))
}
