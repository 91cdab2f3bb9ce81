//! Simplifications, one row a fact. The witness evaluates both sides over each row's condition.

use miras_base::scalar::{
    Cmp, Expr, Fn1, Fn2, add, arg, call, call2, div, mul, num, power, reciprocal, select,
};

/// `left` may be written as `right` wherever the condition holds.
///
/// `Arg(0)`, `Arg(1)`, ... stand for any terms. Both sides agree at singular points too, with the
/// values that the scalar table defines there.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, for derivations.
    pub name: &'static str,
    /// What is recognised.
    pub left: fn() -> Expr,
    /// What takes its place.
    pub right: fn() -> Expr,
    /// What must hold of the arguments.
    pub condition: &'static [Condition],
}

/// A side condition on a rule's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No entry of the argument is negative.
    NotNegative(u8),
    /// All entries of the argument are greater than 0.
    Positive(u8),
    /// The first argument is the vector whose Euclidean norm the second is, so that its entries are no
    /// larger. Such a rule holds up to the floor of 1e-12 below which a norm in a denominator counts as
    /// that floor: the sides differ by at most the floor.
    NormOf(u8, u8),
}

/// The rules, in the order in which they are tried.
pub static RULES: &[Rule] = &[
    rule("clamp", clamp_closed, clamp, &[Condition::NotNegative(1)]),
    rule("clamp, strict", clamp_open, clamp, &[Condition::NotNegative(1)]),
    rule(
        "clamp of a clamp from below",
        || select(Cmp::Gt, x(), y(), y(), low(x())),
        clamp,
        &[Condition::NotNegative(1)],
    ),
    rule("minimum, <=", || select(Cmp::Le, x(), y(), x(), y()), || call2(Fn2::Min, x(), y()), &[]),
    rule("minimum, <", || select(Cmp::Lt, x(), y(), x(), y()), || call2(Fn2::Min, x(), y()), &[]),
    rule("minimum, >=", || select(Cmp::Ge, x(), y(), y(), x()), || call2(Fn2::Min, x(), y()), &[]),
    rule("minimum, >", || select(Cmp::Gt, x(), y(), y(), x()), || call2(Fn2::Min, x(), y()), &[]),
    rule("maximum, <=", || select(Cmp::Le, x(), y(), y(), x()), || call2(Fn2::Max, x(), y()), &[]),
    rule("maximum, <", || select(Cmp::Lt, x(), y(), y(), x()), || call2(Fn2::Max, x(), y()), &[]),
    rule("maximum, >=", || select(Cmp::Ge, x(), y(), x(), y()), || call2(Fn2::Max, x(), y()), &[]),
    rule("maximum, >", || select(Cmp::Gt, x(), y(), x(), y()), || call2(Fn2::Max, x(), y()), &[]),
    rule("sign times abs", || mul(sign(x()), abs(x())), x, &[]),
    rule("sign times argument", || mul(sign(x()), x()), || abs(x()), &[]),
    rule("argument over abs", || mul(x(), reciprocal(abs(x()))), || sign(x()), &[]),
    rule("argument divided by abs", || div(x(), abs(x())), || sign(x()), &[]),
    rule("square of abs", || power(abs(x()), 2.0), || power(x(), 2.0), &[]),
    rule("power of a square", || pow(power(x(), 2.0), y()), || pow(abs(x()), mul(num(2.0), y())), &[]),
    rule("root of a square", || call(Fn1::Sqrt, power(x(), 2.0)), || abs(x()), &[]),
    rule("abs of a number that is not negative", || abs(x()), x, &[Condition::NotNegative(0)]),
    rule(
        "product with a reciprocal",
        || mul(x(), reciprocal(y())),
        || div(x(), y()),
        &[Condition::Positive(1)],
    ),
    rule("norm times its slope", || mul(y(), div(x(), floored(y()))), x, &[Condition::NormOf(0, 1)]),
    rule(
        "longer norm times its slope",
        || mul(add(y(), z()), div(x(), floored(y()))),
        || add(x(), mul(z(), div(x(), floored(y())))),
        &[Condition::NormOf(0, 1)],
    ),
    rule(
        "clip by length, <=",
        || clip(Cmp::Le),
        clipped,
        &[Condition::NotNegative(2), Condition::NormOf(0, 1)],
    ),
    rule(
        "clip by length, <",
        || clip(Cmp::Lt),
        clipped,
        &[Condition::NotNegative(2), Condition::NormOf(0, 1)],
    ),
    rule(
        "clip by a minimum",
        || mul(call2(Fn2::Min, y(), z()), div(x(), floored(y()))),
        clipped,
        &[Condition::NotNegative(2), Condition::NormOf(0, 1)],
    ),
];

const fn rule(
    name: &'static str,
    left: fn() -> Expr,
    right: fn() -> Expr,
    condition: &'static [Condition],
) -> Rule {
    Rule { name, left, right, condition }
}

fn x() -> Expr {
    arg(0)
}

fn y() -> Expr {
    arg(1)
}

fn z() -> Expr {
    arg(2)
}

fn abs(a: Expr) -> Expr {
    call(Fn1::Abs, a)
}

fn sign(a: Expr) -> Expr {
    call(Fn1::Sign, a)
}

fn pow(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Pow, a, b)
}

/// max(a, -y).
fn low(a: Expr) -> Expr {
    call2(Fn2::Max, a, call(Fn1::Neg, y()))
}

/// max(min(x, y), -y): x clamped to [-y, y].
fn clamp() -> Expr {
    low(call2(Fn2::Min, x(), y()))
}

fn clamp_closed() -> Expr {
    select(Cmp::Le, abs(x()), y(), x(), mul(y(), sign(x())))
}

fn clamp_open() -> Expr {
    select(Cmp::Lt, abs(x()), y(), x(), mul(y(), sign(x())))
}

fn floored(a: Expr) -> Expr {
    call2(Fn2::Max, a, num(super::reverse::SLOPE_FLOOR))
}

/// x where y is at most z, else x shortened to z.
fn clip(cmp: Cmp) -> Expr {
    select(cmp, y(), z(), x(), mul(z(), div(x(), floored(y()))))
}

/// x * (z / max(z, y)).
fn clipped() -> Expr {
    mul(x(), div(z(), call2(Fn2::Max, z(), y())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [f64; 11] = [-7.5, -2.0, -1.0, -0.3, 0.0, 1e-7, 0.4, 1.0, 1.5, 3.0, 250.0];

    fn holds(rule: &Rule, args: &[f64]) -> bool {
        rule.condition.iter().all(|c| match c {
            Condition::NotNegative(i) => args[*i as usize] >= 0.0,
            Condition::Positive(i) => args[*i as usize] > 0.0,
            Condition::NormOf(x, n) => args[*x as usize].abs() <= args[*n as usize],
        })
    }

    #[test]
    fn both_sides_of_every_rule_are_equal() {
        for rule in RULES {
            let (left, right) = ((rule.left)(), (rule.right)());
            let mut tried = 0;
            for a in POINTS {
                for b in POINTS {
                    for c in POINTS {
                        if !holds(rule, &[a, b, c]) {
                            continue;
                        }
                        let (l, r) = (left.eval(&[a, b, c]), right.eval(&[a, b, c]));
                        let size = l.abs().max(r.abs()).max(1e-300);
                        let same = l == r || (l - r).abs() <= 1e-13 * size;
                        assert!(same, "{} at {a}, {b}, {c}: {l} and {r}", rule.name);
                        tried += 1;
                    }
                }
            }
            assert!(tried >= 100, "{}: {tried} points", rule.name);
        }
    }

    #[test]
    fn below_the_floor_the_sides_differ_by_less_than_the_floor() {
        for rule in RULES.iter().filter(|r| r.condition.contains(&Condition::NormOf(0, 1))) {
            for n in [0.0, 1e-15, 3e-13, 1e-12] {
                for x in [-n, 0.5 * n, n] {
                    for z in [0.0, 1e-13, 1.0] {
                        let (l, r) = ((rule.left)().eval(&[x, n, z]), (rule.right)().eval(&[x, n, z]));
                        assert!((l - r).abs() <= 1e-12, "{} at {x}, {n}, {z}: {l} and {r}", rule.name);
                    }
                }
            }
        }
    }
}
