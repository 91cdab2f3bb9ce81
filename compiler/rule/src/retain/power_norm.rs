//! The square of a p-norm as the potential of a lazy retention.

use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::tell::step;
use crate::algebra::is_var;
use crate::algebra::poly::Poly;
use crate::rule::DerivationStep;
use miras_base::scalar::{Fn1, Fn2};
use miras_term::TermId;

/// Floor of a norm in a scale (docs/mathematics.md).
const FLOOR: f64 = 1e-6;

/// potential = c norm(W', q)^2 with q > 1: with p = q / (q - 1),
/// W' = sign(A') abs(A')^(p - 1) / (2 c N^(p - 2)) with N = max(norm(A', p), 1e-6), as N sign(A') (abs(A') / N)^(p - 1)
/// / (2 c).
pub(super) fn lazy(p: &mut Problem<'_>) -> Tried<(TermId, Vec<DerivationStep>)> {
    let [norm] = p.parts.norms.as_slice() else {
        return refuse("the potential is not the square of one norm");
    };
    let norm = norm.clone();
    let of_weights = is_var(p.ring.terms, norm.inner, p.unknown);
    if !p.parts.entries.is_empty() || !of_weights || norm.power != 2.0 {
        return refuse("the potential is not a number times the square of one norm of the weights");
    }
    let q = (*p.ring.poly(norm.order)?).clone();
    let above_one = p.ring.poly_bounds(&q.sub(&Poly::number(1.0)))?;
    if !above_one.positive() && q.as_number().is_some() {
        return refuse("the order of the norm must be greater than 1");
    }
    let coefficient = (*p.ring.poly(norm.coefficient)?).clone();
    let scale = p.ring.reciprocal(&coefficient.scale(2.0))?;
    let conjugate = p.over(&q, &q.sub(&Poly::number(1.0)))?;
    let drive = p.ring.terms.use_var(p.drive);
    let map = p.power_map(drive, &conjugate, &scale)?;
    let conjugate = p.ring.write_factored(&conjugate)?;
    let told = vec![step(
        "closed form",
        vec![("p".into(), conjugate), (p.name(p.unknown), map)],
        "the derivative of norm(W', q)^2 by an entry is 2 norm(W', q)^(2 - q) sign(W') abs(W')^(q - 1); the p-norm \
         of both sides gives norm(W', q), and the rest is solved entry by entry. The norm in the scale is at least \
         1e-6."
            .into(),
    )];
    Ok((map, told))
}

impl Problem<'_> {
    /// scale * N sign(a) (abs(a) / N)^(p - 1) with N = max(norm(a, p), 1e-6): entries are divided by the norm before
    /// they are raised, so that neither part leaves float32 where the result does not.
    fn power_map(&mut self, a: TermId, p: &Poly, scale: &Poly) -> Tried<TermId> {
        let (order, minus_one) = (self.ring.write_factored(p)?, p.sub(&Poly::number(1.0)));
        let (minus_one, scale) = (self.ring.write(&minus_one)?, self.ring.write_factored(scale)?);
        let t = &mut *self.ring.terms;
        let (sign, size) = (t.fn1(Fn1::Sign, a)?, t.fn1(Fn1::Abs, a)?);
        let floor = t.num(FLOOR);
        let norm = t.norm(a, order)?;
        let norm = t.fn2(Fn2::Max, norm, floor)?;
        let share = t.div(size, norm)?;
        let power = t.fn2(Fn2::Pow, share, minus_one)?;
        let signed = t.mul(sign, power)?;
        let scaled = t.mul(scale, norm)?;
        Ok(t.mul(scaled, signed)?)
    }
}
