//! Quadratic terms with absolute values of the weights: a soft threshold.

use super::Solved;
use super::affine::Affine;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::rule::{InitialDomain, Inside, Retained};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::TermId;

/// curvature * W' + pull + threshold * sign(W') = drive.
pub(super) struct Soft {
    pub smooth: Affine,
    pub threshold: Poly,
}

/// Objectives with `gamma * sum(abs(W'))` beside quadratic terms.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    p.no_norms()?;
    let soft = p.soft()?;
    let minimum = p.minimum_of(&soft.smooth)?;
    let next = p.step_of(p.old, &minimum)?;
    let threshold = p.over(&soft.threshold, &soft.smooth.curvature)?;
    let threshold = p.ring.write_factored(&threshold)?;
    let carried = p.ring.terms.use_var(p.old);
    let finish = p.shrink(carried, threshold)?;
    let whole = p.shrink(next.advance, threshold)?;
    let retained = p.at_rest(whole, None)?;
    let inside = if next.linear.is_some() { Inside::Threshold(threshold) } else { Inside::TokenByToken };
    let z = p.intermediate("Z");
    let (slope, shrunk) = (p.slope.clone(), p.shrink(z, threshold)?);
    let told = vec![
        p.stationarity(&slope, None)?,
        step(
            "without the absolute values",
            vec![("Z".into(), next.advance)],
            "the solution of the equation without sign(W').".into(),
        ),
        step(
            "soft threshold",
            vec![(p.name(p.unknown), shrunk)],
            "sign(W') stands for any value between -1 and 1 where W' = 0: entries of Z within the threshold \
             become 0, the others move towards 0 by it."
                .into(),
        ),
    ];
    let solved = Retained {
        carried: p.old,
        update: p.update,
        start: None,
        initial: InitialDomain::Any,
        advance: next.advance,
        linear: next.linear,
        value: None,
        finish: Some(finish),
        retained: Some(retained),
        inside,
    };
    Ok((solved, told))
}

impl Problem<'_> {
    /// Reads the slope as linear plus threshold * sign(W').
    pub fn soft(&mut self) -> Tried<Soft> {
        let unknown = self.ring.terms.use_var(self.unknown);
        let sign = self.ring.terms.fn1(Fn1::Sign, unknown)?;
        let slope = self.slope.clone();
        let name = self.name(self.unknown);
        let Some((threshold, rest)) = self.ring.linear_in_atom(&slope, sign) else {
            return refuse(format!("sign({name}) does not stand alone in the slope"));
        };
        if threshold.is_zero() || self.ring.poly_uses(&threshold, self.unknown) {
            return refuse(format!("the slope has no term `gamma * sign({name})`"));
        }
        if self.ring.poly_uses(&threshold, self.old) {
            return refuse("the threshold depends on the weights before the step");
        }
        if !self.ring.poly_bounds(&threshold)?.not_negative() {
            let text = self.text(&threshold)?;
            return refuse(format!("the threshold `{text}` is not known to be at least 0"));
        }
        Ok(Soft { smooth: self.affine(&rest)?, threshold })
    }

    /// sign(z) * max(abs(z) - threshold, 0).
    pub fn shrink(&mut self, z: TermId, threshold: TermId) -> Tried<TermId> {
        let t = &mut *self.ring.terms;
        let (sign, size, zero) = (t.fn1(Fn1::Sign, z)?, t.fn1(Fn1::Abs, z)?, t.num(0.0));
        let left = t.sub(size, threshold)?;
        let left = t.fn2(Fn2::Max, left, zero)?;
        Ok(t.mul(sign, left)?)
    }
}
