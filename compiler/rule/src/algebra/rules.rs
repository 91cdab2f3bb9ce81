//! The rules of simplification as a table: one row a fact, each with its side condition.
//!
//! Most rows are consequences of the normal form (sums of products with powers joined, logarithms of
//! products split); the others are patterns that are looked for wherever a choice, a minimum or a maximum
//! is built. The witnesses evaluate both sides of every row and check that both become the same term.

use super::bounds::Bounds;
use super::ring::{Out, Ring};
use miras_base::scalar::{Cmp, Expr, Fn1, Fn2};
use miras_base::scalar::{add, arg, call, call2, div, mul, num, power, reciprocal, select, sub};
use miras_term::{Op, TermId};

/// Who applies a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The normal form: both sides are read as the same sum of products.
    NormalForm,
    /// The pattern of the left side.
    Pattern,
}

/// `left = right` wherever the arguments lie within the condition.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Who applies it.
    pub by: By,
    /// The side that is replaced.
    pub left: fn() -> Expr,
    /// What it becomes.
    pub right: fn() -> Expr,
    /// Where `Arg(0)`, `Arg(1)`, ... must lie.
    pub condition: &'static [Bounds],
}

const R: Bounds = Bounds::REALS;
const P: Bounds = Bounds::POSITIVE;
const U: Bounds = Bounds::open(0.0, 1.0);

/// Every rule.
pub static RULES: &[Rule] = &[
    form("common factor", || add(mul(sub(num(1.0), y()), x()), mul(y(), x())), x, &[R, Bounds::UNIT]),
    form(
        "keep of a forget",
        || sub(num(1.0), sub(num(1.0), call(Fn1::Exp, x()))),
        || call(Fn1::Exp, x()),
        &[R],
    ),
    form("square of a difference", || power(sub(x(), y()), 2.0), squared_difference, &[R, R]),
    form("reciprocal cancels", || mul(x(), reciprocal(x())), || num(1.0), &[P]),
    form("quotient cancels", || div(mul(x(), y()), x()), y, &[P, R]),
    form("quotient of a sum", || div(sub(num(1.0), x()), sub(num(1.0), x())), || num(1.0), &[U]),
    form("common denominator", common_denominator, || num(1.0), &[R]),
    form("root over its square", root_slopes, || num(0.0), &[R]),
    form("log of a product", || call(Fn1::Log, mul(x(), y())), || add(log(x()), log(y())), &[P, P]),
    form("log of a quotient", || log(div(x(), y())), || sub(log(x()), log(y())), &[P, P]),
    form("log of a power", || log(call2(Fn2::Pow, x(), y())), || mul(y(), log(x())), &[P, R]),
    form("log of an exponential", || log(call(Fn1::Exp, x())), x, &[R]),
    form(
        "exponential of a log",
        || call(Fn1::Exp, add(log(x()), y())),
        || mul(x(), call(Fn1::Exp, y())),
        &[P, R],
    ),
    form("product of exponentials", || mul(exp(x()), exp(y())), || exp(add(x(), y())), &[R, R]),
    form("power of an exponential", || power(exp(x()), 3.0), || exp(mul(num(3.0), x())), &[R]),
    form("product of powers", product_of_powers, || call2(Fn2::Pow, x(), add(y(), z())), &[P, R, R]),
    form("power of a power", power_of_power, || call2(Fn2::Pow, x(), mul(y(), z())), &[P, R, R]),
    form("square of a root", || power(call(Fn1::Sqrt, x()), 2.0), x, &[P]),
    form("root of a square", || call(Fn1::Sqrt, power(x(), 2.0)), || abs(x()), &[R]),
    form("square of abs", || power(abs(x()), 2.0), || power(x(), 2.0), &[R]),
    form("sign times abs", || mul(sign(x()), abs(x())), x, &[R]),
    form("sign times itself's argument", || mul(sign(x()), x()), || abs(x()), &[R]),
    form("sign times a cube of abs", || mul(sign(x()), power(abs(x()), 3.0)), || power(x(), 3.0), &[R]),
    form("abs of a positive number", || abs(x()), x, &[P]),
    form("sign of a positive number", || sign(x()), || num(1.0), &[P]),
    form("odd function", || call(Fn1::Tanh, call(Fn1::Neg, x())), || neg(call(Fn1::Tanh, x())), &[R]),
    form("even function", || call(Fn1::Cosh, call(Fn1::Neg, x())), || call(Fn1::Cosh, x()), &[R]),
    pattern("clamp", || clamp_choice(Cmp::Le), clamp, &[R, Bounds::NOT_NEGATIVE]),
    pattern("clamp, strictly", || clamp_choice(Cmp::Lt), clamp, &[R, Bounds::NOT_NEGATIVE]),
    pattern("clamp, other way round", || clamp_other(Cmp::Gt), clamp, &[R, Bounds::NOT_NEGATIVE]),
    pattern(
        "clamp, other way round, with equality",
        || clamp_other(Cmp::Ge),
        clamp,
        &[R, Bounds::NOT_NEGATIVE],
    ),
    pattern("abs as a maximum", || call2(Fn2::Max, x(), neg(x())), || abs(x()), &[R]),
    pattern("maximum of equals", || call2(Fn2::Max, x(), x()), x, &[R]),
    pattern("minimum of equals", || call2(Fn2::Min, x(), x()), x, &[R]),
    pattern("abs as a choice", || select(Cmp::Ge, x(), num(0.0), x(), neg(x())), || abs(x()), &[R]),
    pattern("abs as a strict choice", || select(Cmp::Gt, x(), num(0.0), x(), neg(x())), || abs(x()), &[R]),
];

/// What the first pattern that fits makes of a term.
pub(super) fn apply(ring: &mut Ring<'_>, id: TermId) -> Out<Option<TermId>> {
    if !matches!(ring.terms.op(id), Op::Select(..) | Op::Fn2(Fn2::Min | Fn2::Max, ..)) {
        return Ok(None);
    }
    for rule in RULES.iter().filter(|r| r.by == By::Pattern) {
        let mut found = Bindings::default();
        if !fits(ring, &(rule.left)(), id, &mut found) {
            continue;
        }
        let Some(args) = found.complete(rule.condition.len()) else {
            continue;
        };
        let holds = args.iter().zip(rule.condition).all(|(a, c)| within(ring.bounds(*a), *c));
        if holds {
            return Ok(Some(ring.terms.expr(&(rule.right)(), &args)?));
        }
    }
    Ok(None)
}

/// Terms found for the arguments of a pattern.
#[derive(Clone, Default)]
struct Bindings([Option<TermId>; 3]);

impl Bindings {
    fn complete(&self, n: usize) -> Option<Vec<TermId>> {
        self.0.iter().take(n).copied().collect()
    }
}

fn within(known: Bounds, wanted: Bounds) -> bool {
    known.meet(wanted) == known
}

/// Whether a term has the pattern's form; arguments found on the way are bound.
fn fits(ring: &Ring<'_>, pattern: &Expr, id: TermId, found: &mut Bindings) -> bool {
    let id = if let Op::Spread(inner, _) = ring.terms.op(id) { *inner } else { id };
    match pattern {
        Expr::Arg(i) => match found.0.get(*i as usize).copied().flatten() {
            Some(bound) => bound == id,
            None => {
                if let Some(slot) = found.0.get_mut(*i as usize) {
                    *slot = Some(id);
                }
                true
            }
        },
        Expr::Const(c) => ring.terms.as_num(id) == Some(*c),
        Expr::Fn1(f, a) => {
            let Op::Fn1(g, b) = *ring.terms.op(id) else { return false };
            *f == g && fits(ring, a, b, found)
        }
        Expr::Fn2(f, a, b) => {
            let Op::Fn2(g, x, y) = *ring.terms.op(id) else { return false };
            let turns = matches!(f, Fn2::Add | Fn2::Mul | Fn2::Min | Fn2::Max);
            let straight = *f == g && both(ring, [(a, x), (b, y)], found);
            straight || (*f == g && turns && both(ring, [(a, y), (b, x)], found))
        }
        Expr::Select(cmp, a, b, t, e) => {
            let Op::Select(c, x, y) = *ring.terms.op(id) else { return false };
            let Op::Compare(seen, l, r) = *ring.terms.op(c) else { return false };
            let straight = *cmp == seen && both(ring, [(a, l), (b, r)], found);
            let turned = straight || (*cmp == mirrored(seen) && both(ring, [(a, r), (b, l)], found));
            turned && both(ring, [(t, x), (e, y)], found)
        }
    }
}

fn both(ring: &Ring<'_>, pairs: [(&Expr, TermId); 2], found: &mut Bindings) -> bool {
    let mut tried = found.clone();
    let fit = pairs.into_iter().all(|(p, t)| fits(ring, p, t, &mut tried));
    if fit {
        *found = tried;
    }
    fit
}

fn mirrored(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
        Cmp::Eq => Cmp::Eq,
        Cmp::Ne => Cmp::Ne,
    }
}

const fn form(
    name: &'static str,
    left: fn() -> Expr,
    right: fn() -> Expr,
    condition: &'static [Bounds],
) -> Rule {
    Rule { name, by: By::NormalForm, left, right, condition }
}

const fn pattern(
    name: &'static str,
    left: fn() -> Expr,
    right: fn() -> Expr,
    condition: &'static [Bounds],
) -> Rule {
    Rule { name, by: By::Pattern, left, right, condition }
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

fn neg(a: Expr) -> Expr {
    call(Fn1::Neg, a)
}

fn log(a: Expr) -> Expr {
    call(Fn1::Log, a)
}

fn exp(a: Expr) -> Expr {
    call(Fn1::Exp, a)
}

fn abs(a: Expr) -> Expr {
    call(Fn1::Abs, a)
}

fn sign(a: Expr) -> Expr {
    call(Fn1::Sign, a)
}

fn clamp() -> Expr {
    call2(Fn2::Max, call2(Fn2::Min, x(), y()), neg(y()))
}

/// The slope of Huber's loss as its definition gives it.
fn clamp_choice(cmp: Cmp) -> Expr {
    select(cmp, abs(x()), y(), x(), mul(y(), sign(x())))
}

fn clamp_other(cmp: Cmp) -> Expr {
    select(cmp, abs(x()), y(), mul(y(), sign(x())), x())
}

fn squared_difference() -> Expr {
    add(sub(power(x(), 2.0), mul(num(2.0), mul(x(), y()))), power(y(), 2.0))
}

fn hyperbola() -> Expr {
    add(num(1.0), power(x(), 2.0))
}

fn common_denominator() -> Expr {
    add(div(power(x(), 2.0), hyperbola()), reciprocal(hyperbola()))
}

/// x / sqrt(1 + x^2) - x sqrt(1 + x^2) / (1 + x^2).
fn root_slopes() -> Expr {
    let root = call(Fn1::Sqrt, hyperbola());
    sub(mul(x(), div(num(1.0), root.clone())), mul(x(), div(root, hyperbola())))
}

fn product_of_powers() -> Expr {
    mul(call2(Fn2::Pow, x(), y()), call2(Fn2::Pow, x(), z()))
}

fn power_of_power() -> Expr {
    call2(Fn2::Pow, call2(Fn2::Pow, x(), y()), z())
}
