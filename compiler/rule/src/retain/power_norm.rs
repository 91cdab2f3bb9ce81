//! A power of a p-norm by itself: as the potential of a lazy retention, or as the distance to the last weights.

use super::Solved;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::rule::DerivationStep;
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Axis, TermId};

/// Floor of a norm in a scale (docs/mathematics.md).
const FLOOR: f64 = 1e-6;

/// Objectives that are a power of one norm of W' - centre; the weights themselves are carried.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    let (advance, told) = lazy(p)?;
    let solved = p.stepping(advance)?;
    Ok((solved, told))
}

/// c norm(W' - centre, q)^s with q > 1, s > 1: with A what pulls the weights, p = q / (q - 1) and N = max(norm(A, p),
/// 1e-6), W' = centre + (N / (c s))^(1 / (s - 1)) sign(A) (abs(A) / N)^(p - 1).
pub(super) fn lazy(p: &mut Problem<'_>) -> Tried<(TermId, Vec<DerivationStep>)> {
    let [norm] = p.parts.norms.as_slice() else {
        return refuse("the objective is not a power of one norm");
    };
    let (norm, power) = (norm.clone(), norm.power);
    if !p.parts.entries.is_empty() || norm.axis != Axis::All || power <= 1.0 {
        return refuse(
            "the objective is not a number times a power, above 1, of one norm of the whole weight",
        );
    }
    let q = (*p.ring.poly(norm.order)?).clone();
    let above_one = p.ring.poly_bounds(&q.sub(&Poly::number(1.0)))?;
    if !above_one.positive() && q.as_number().is_some() {
        return refuse("the order of the norm must be greater than 1");
    }
    let (factor, centre) = p.centre_of(&norm)?;
    let coefficient = (*p.ring.poly(norm.coefficient)?).clone().scale(factor);
    // An order that is known only with the data makes the sign of 1 / (q - 1) known only then.
    if q.as_number().is_some() {
        p.require_positive(&coefficient, "the factor of the norm")?;
    }
    let scale = p.ring.reciprocal(&coefficient.scale(power))?;
    let conjugate = p.over(&q, &q.sub(&Poly::number(1.0)))?;
    let drive = p.ring.terms.use_var(p.drive);
    let moved = p.power_map(drive, &conjugate, &scale, power)?;
    let map = if centre.is_zero() {
        moved
    } else {
        let centre = p.written(&centre)?;
        p.ring.terms.add(centre, moved)?
    };
    let conjugate = p.ring.write_factored(&conjugate)?;
    let told = vec![step(
        "closed form",
        vec![("p".into(), conjugate), (p.name(p.unknown), map)],
        format!(
            "the derivative of norm(W', q)^{power} by an entry is {power} norm(W', q)^({power} - q) sign(W') \
             abs(W')^(q - 1); the p-norm of both sides gives norm(W', q), and the rest is solved entry by entry. The \
             norm in the scale is at least 1e-6."
        ),
    )];
    Ok((map, told))
}

impl Problem<'_> {
    /// (scale N)^(1 / (power - 1)) sign(a) (abs(a) / N)^(p - 1) with N = max(norm(a, p), 1e-6): entries are divided by
    /// the norm before they are raised, so that neither part leaves float32 where the result does not.
    fn power_map(&mut self, a: TermId, p: &Poly, scale: &Poly, power: f64) -> Tried<TermId> {
        let (order, minus_one) = (self.ring.write_factored(p)?, p.sub(&Poly::number(1.0)));
        let (minus_one, scale) = (self.ring.write(&minus_one)?, self.ring.write_factored(scale)?);
        let t = &mut *self.ring.terms;
        let (sign, size) = (t.fn1(Fn1::Sign, a)?, t.fn1(Fn1::Abs, a)?);
        let floor = t.num(FLOOR);
        let norm = t.norm(a, order)?;
        let norm = t.fn2(Fn2::Max, norm, floor)?;
        let share = t.div(size, norm)?;
        let raised = t.fn2(Fn2::Pow, share, minus_one)?;
        let signed = t.mul(sign, raised)?;
        let mut scaled = t.mul(scale, norm)?;
        if power != 2.0 {
            let root = t.num(1.0 / (power - 1.0));
            scaled = t.fn2(Fn2::Pow, scaled, root)?;
        }
        Ok(t.mul(scaled, signed)?)
    }
}
