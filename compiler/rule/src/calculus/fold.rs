//! Constructors that keep the results of calculus short.
//!
//! They are the arena's constructors plus folding of signs, numeric coefficients, repeated scalars and
//! masks. Every fold is an identity of real numbers for all finite operands, and a mask selects (it
//! never multiplies), so a masked infinity stays masked.

use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Axis, Mismatch, Op, Reduce, Shape, TermId, Terms};

type Built = Result<TermId, Mismatch>;

/// `a * b`.
pub fn times(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let shape = joined(t, a, b);
    if t.as_num(a) == Some(0.0) || t.as_num(b) == Some(0.0) {
        return Ok(t.fill(0.0, shape));
    }
    let ((c, x), (d, y)) = (split(t, a), split(t, b));
    let coefficient = c * d;
    if !coefficient.is_finite() || coefficient == 0.0 {
        return t.mul(a, b);
    }
    let core = match (x, y) {
        (None, None) => return Ok(t.fill(coefficient, shape)),
        (Some(x), None) | (None, Some(x)) => x,
        (Some(x), Some(y)) => masked_product(t, x, y)?,
    };
    let core = fit(t, core, &shape)?;
    scaled(t, coefficient, core)
}

/// `a + b`.
pub fn plus(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let shape = joined(t, a, b);
    if let (Op::Select(c, a1, a2), Op::Select(d, b1, b2)) = (t.op(a).clone(), t.op(b).clone())
        && c == d
        && ![a1, a2, b1, b2].iter().any(|x| is_choice(t, *x))
    {
        let (first, second) = (plus(t, a1, b1)?, plus(t, a2, b2)?);
        return select(t, c, first, second);
    }
    let ((c, x), (d, y)) = (split(t, a), split(t, b));
    if let (Some(x), Some(y)) = (x, y)
        && x == y
        && (c + d).is_finite()
    {
        let sum = if c + d == 0.0 { t.fill(0.0, shape.clone()) } else { scaled(t, c + d, x)? };
        return fit(t, sum, &shape);
    }
    match (t.op(a).clone(), t.op(b).clone()) {
        (_, Op::Fn1(Fn1::Neg, inner)) => t.sub(a, inner),
        (Op::Fn1(Fn1::Neg, inner), _) => t.sub(b, inner),
        _ => t.add(a, b),
    }
}

/// `a - b`.
pub fn minus(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let b = negated(t, b)?;
    plus(t, a, b)
}

/// `-a`.
pub fn negated(t: &mut Terms, a: TermId) -> Built {
    match t.op(a).clone() {
        Op::Fn2(Fn2::Sub, x, y) => t.sub(y, x),
        Op::Fn2(Fn2::Mul, c, x) if t.as_num(c).is_some() => {
            let minus = t.neg(c)?;
            t.mul(minus, x)
        }
        Op::Spread(inner, shape) => {
            let minus = negated(t, inner)?;
            t.spread(minus, &shape)
        }
        Op::Select(c, x, y) if !is_choice(t, x) && !is_choice(t, y) => {
            let (x, y) = (negated(t, x)?, negated(t, y)?);
            select(t, c, x, y)
        }
        _ => t.neg(a),
    }
}

/// `a / b`.
pub fn over(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let shape = joined(t, a, b);
    if t.as_num(a) == Some(0.0) {
        return Ok(t.fill(0.0, shape));
    }
    match (split(t, a), t.as_num(b)) {
        ((c, x), Some(d)) if exact_reciprocal(d) => {
            let quotient = match x {
                Some(x) => scaled(t, c / d, x)?,
                None => t.num(c / d),
            };
            fit(t, quotient, &shape)
        }
        ((c, Some(x)), _) if c < 0.0 => {
            let (positive, b) = (scaled(t, -c, x)?, unspread_number(t, b));
            let quotient = t.div(positive, b)?;
            let quotient = fit(t, quotient, &shape)?;
            t.neg(quotient)
        }
        _ => match into_mask(t, a, b, over)? {
            Some(quotient) => fit(t, quotient, &shape),
            None => t.div(a, b),
        },
    }
}

/// `if c then a else b`.
pub fn select(t: &mut Terms, c: TermId, a: TermId, b: TermId) -> Built {
    t.select(c, a, b)
}

/// The sum along the axes, factors that do not vary along them drawn out.
pub fn total(t: &mut Terms, axis: Axis, a: TermId) -> Built {
    match t.op(a).clone() {
        Op::Fn1(Fn1::Neg, x) => {
            let sum = total(t, axis, x)?;
            negated(t, sum)
        }
        Op::Fn2(Fn2::Mul, x, y) if t.shape(x).rank() == 0 => {
            let sum = total(t, axis, y)?;
            times(t, x, sum)
        }
        Op::Fn2(Fn2::Mul, x, y) if t.shape(y).rank() == 0 => {
            let sum = total(t, axis, x)?;
            times(t, y, sum)
        }
        Op::Fn2(Fn2::Div, x, y) if t.shape(y).rank() == 0 => {
            let sum = total(t, axis, x)?;
            over(t, sum, y)
        }
        Op::Spread(inner, _) if t.shape(inner).rank() == 0 => {
            let (reduced, count) = (t.reduce(Reduce::Sum, axis, a)?, t.count(axis, a)?);
            let shape = t.shape(reduced).clone();
            let product = times(t, inner, count)?;
            fit(t, product, &shape)
        }
        Op::Softmax(along, _) if same_slices(t, a, along, axis) => {
            let reduced = t.reduce(Reduce::Sum, axis, a)?;
            let shape = t.shape(reduced).clone();
            Ok(t.fill(1.0, shape))
        }
        _ => t.reduce(Reduce::Sum, axis, a),
    }
}

/// `a @ b`, where an outer product or an identity matrix is not multiplied out.
pub fn matmul(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let vector = t.shape(b).rank() == 1;
    if t.as_num(a) == Some(0.0) || t.as_num(b) == Some(0.0) {
        let product = t.matmul(a, b)?;
        let shape = t.shape(product).clone();
        return Ok(t.fill(0.0, shape));
    }
    match (t.op(a).clone(), t.op(b).clone()) {
        (Op::Eye(_), _) => Ok(b),
        (Op::Outer(left, right), _) if vector => {
            let dot = dot(t, right, b)?;
            times(t, dot, left)
        }
        (Op::Outer(left, right), _) => {
            let turned = transpose(t, b)?;
            let right = matmul(t, turned, right)?;
            outer(t, left, right)
        }
        (_, Op::Outer(left, right)) => {
            let left = matmul(t, a, left)?;
            outer(t, left, right)
        }
        (_, Op::Eye(_)) => Ok(a),
        (Op::Fn1(Fn1::Neg, inner), _) => {
            let product = matmul(t, inner, b)?;
            negated(t, product)
        }
        (_, Op::Fn1(Fn1::Neg, inner)) => {
            let product = matmul(t, a, inner)?;
            negated(t, product)
        }
        _ => t.matmul(a, b),
    }
}

/// The outer product of two vectors, signs drawn out.
pub fn outer(t: &mut Terms, a: TermId, b: TermId) -> Built {
    if t.as_num(a) == Some(0.0) || t.as_num(b) == Some(0.0) {
        let product = t.outer(a, b)?;
        let shape = t.shape(product).clone();
        return Ok(t.fill(0.0, shape));
    }
    match (t.op(a).clone(), t.op(b).clone()) {
        (Op::Fn1(Fn1::Neg, x), _) => {
            let product = outer(t, x, b)?;
            t.neg(product)
        }
        (_, Op::Fn1(Fn1::Neg, y)) => {
            let product = outer(t, a, y)?;
            t.neg(product)
        }
        _ => t.outer(a, b),
    }
}

/// A vector as one row, a sign drawn out.
pub fn row(t: &mut Terms, a: TermId) -> Built {
    match *t.op(a) {
        Op::Fn1(Fn1::Neg, x) => {
            let row = t.row(x)?;
            t.neg(row)
        }
        _ => t.row(a),
    }
}

/// A vector as one column, a sign drawn out.
pub fn col(t: &mut Terms, a: TermId) -> Built {
    match *t.op(a) {
        Op::Fn1(Fn1::Neg, x) => {
            let col = t.col(x)?;
            t.neg(col)
        }
        _ => t.col(a),
    }
}

/// The transpose; that of an outer product is the outer product the other way round.
pub fn transpose(t: &mut Terms, a: TermId) -> Built {
    match t.op(a).clone() {
        Op::Outer(x, y) => t.outer(y, x),
        Op::Eye(_) => Ok(a),
        Op::Fn1(Fn1::Neg, inner) => {
            let inner = transpose(t, inner)?;
            t.neg(inner)
        }
        _ => t.transpose(a),
    }
}

/// sum(a * b).
pub fn dot(t: &mut Terms, a: TermId, b: TermId) -> Built {
    let product = times(t, a, b)?;
    total(t, Axis::All, product)
}

/// `a` repeated to a shape, where it is smaller.
pub fn fit(t: &mut Terms, a: TermId, shape: &Shape) -> Built {
    let own = t.shape(a);
    let smaller =
        own.rank() < shape.rank() || own.0.iter().zip(&shape.0).any(|(x, y)| x.is_one() && !y.is_one());
    if smaller { t.spread(a, shape) } else { Ok(a) }
}

/// The shape in which two operands that fit meet.
pub(crate) fn joined(t: &Terms, a: TermId, b: TermId) -> Shape {
    let (a, b) = (t.shape(a), t.shape(b));
    match (a.rank(), b.rank()) {
        (0, _) => b.clone(),
        (_, 0) => a.clone(),
        _ => {
            Shape(a.0.iter().zip(&b.0).map(|(x, y)| if x.is_one() { y.clone() } else { x.clone() }).collect())
        }
    }
}

/// A term as number times rest; no rest where it is a number.
pub(crate) fn split(t: &Terms, a: TermId) -> (f64, Option<TermId>) {
    if let Some(c) = t.as_num(a) {
        return (c, None);
    }
    match t.op(a) {
        Op::Fn1(Fn1::Neg, x) => {
            let (c, rest) = split(t, *x);
            (-c, rest)
        }
        Op::Fn2(Fn2::Mul, c, x) if t.as_num(*c).is_some() => (t.as_num(*c).unwrap_or(1.0), Some(*x)),
        Op::Fn2(Fn2::Mul, x, c) if t.as_num(*c).is_some() => (t.as_num(*c).unwrap_or(1.0), Some(*x)),
        Op::Fn2(Fn2::Div, x, c) if t.as_num(*c).is_some_and(exact_reciprocal) => {
            (1.0 / t.as_num(*c).unwrap_or(1.0), Some(*x))
        }
        _ => (1.0, Some(a)),
    }
}

/// Whether 1/d is a float64 without rounding: d is a power of two.
fn exact_reciprocal(d: f64) -> bool {
    d.is_normal() && (1.0 / d).is_normal() && d.to_bits() & ((1 << 52) - 1) == 0
}

fn scaled(t: &mut Terms, c: f64, x: TermId) -> Built {
    match c {
        1.0 => Ok(x),
        -1.0 => negated(t, x),
        _ => {
            let c = t.num(c);
            match into_mask(t, x, c, times)? {
                Some(product) => Ok(product),
                None => t.mul(c, x),
            }
        }
    }
}

/// A product in which a mask (a choice with a zero branch) stays outermost and a repeated scalar is
/// not repeated.
fn masked_product(t: &mut Terms, x: TermId, y: TermId) -> Built {
    let shape = joined(t, x, y);
    let (x, y) = (repeated_scalar(t, x), repeated_scalar(t, y));
    let product = match (into_mask(t, x, y, times)?, into_mask(t, y, x, times)?) {
        (Some(product), _) | (None, Some(product)) => product,
        (None, None) => t.mul(x, y)?,
    };
    fit(t, product, &shape)
}

/// `f(if c then a else 0, other)` as `if c then f(a, other) else 0`, where f is linear in its first argument.
fn into_mask(
    t: &mut Terms,
    mask: TermId,
    other: TermId,
    f: fn(&mut Terms, TermId, TermId) -> Built,
) -> Result<Option<TermId>, Mismatch> {
    let Op::Select(c, a, b) = *t.op(mask) else { return Ok(None) };
    if [a, b, other].iter().any(|x| is_choice(t, *x)) {
        return Ok(None);
    }
    let (zero_a, zero_b) = (t.as_num(a) == Some(0.0), t.as_num(b) == Some(0.0));
    if !zero_a && !zero_b {
        return Ok(None);
    }
    let (a, b) = (f(t, a, other)?, f(t, b, other)?);
    Ok(Some(select(t, c, a, b)?))
}

/// Choices within choices are left alone: moving factors through them would copy shared branches.
fn is_choice(t: &Terms, a: TermId) -> bool {
    matches!(t.op(a), Op::Select(..))
}

fn repeated_scalar(t: &Terms, a: TermId) -> TermId {
    match t.op(a) {
        Op::Spread(inner, _) if t.shape(*inner).rank() == 0 => *inner,
        _ => a,
    }
}

fn unspread_number(t: &Terms, a: TermId) -> TermId {
    if t.as_num(a).is_some() { repeated_scalar(t, a) } else { a }
}

fn same_slices(t: &Terms, a: TermId, first: Axis, second: Axis) -> bool {
    let whole = |axis: Axis| axis == Axis::All || t.shape(a).rank() < 2;
    first == second || (whole(first) && whole(second))
}
