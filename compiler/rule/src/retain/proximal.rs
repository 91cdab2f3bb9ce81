//! Quadratic terms with absolute values of the weights: a soft threshold.

use super::Solved;
use super::affine::Affine;
use super::problem::Problem;
use super::refuse::{Fail, Tried, refuse};
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::rule::{InitialDomain, Inside, Retained};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Op, TermId};
use std::collections::BTreeSet;

/// curvature * W' + pull + threshold * sign(W' - centre) = drive.
pub(super) struct Soft {
    pub smooth: Affine,
    pub threshold: Poly,
    /// Where the absolute value has its kink; None: 0.
    pub centre: Option<TermId>,
}

/// Objectives with `gamma * sum(abs(W' - centre))` beside quadratic terms.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    p.no_norms()?;
    let soft = p.soft()?;
    if let Some(centre) = soft.centre {
        return around(p, &soft, centre);
    }
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

/// A soft threshold towards another point than 0: the weights themselves are carried.
fn around(p: &mut Problem<'_>, soft: &Soft, centre: TermId) -> Tried<Solved> {
    let minimum = p.minimum_of(&soft.smooth)?;
    let next = p.step_of(p.old, &minimum)?;
    let threshold = p.over(&soft.threshold, &soft.smooth.curvature)?;
    let threshold = p.ring.write_factored(&threshold)?;
    let advance = p.shrink_to(next.advance, threshold, Some(centre))?;
    let z = p.intermediate("Z");
    let (slope, shrunk) = (p.slope.clone(), p.shrink_to(z, threshold, Some(centre))?);
    let told = vec![
        p.stationarity(&slope, None)?,
        step(
            "without the absolute values",
            vec![("Z".into(), next.advance)],
            "the solution of the equation without the sign.".into(),
        ),
        step(
            "soft threshold",
            vec![(p.name(p.unknown), shrunk)],
            "the sign stands for any value between -1 and 1 at its jump: entries of Z within the threshold of that \
             point become it, the others move towards it by the threshold."
                .into(),
        ),
    ];
    let solved = p.stepping(advance)?;
    Ok((solved, told))
}

impl Problem<'_> {
    /// Reads the slope as linear, or as linear plus threshold * sign(W'): then with the threshold.
    pub fn soft_or_smooth(&mut self) -> Tried<(Affine, Option<Poly>)> {
        let slope = self.slope.clone();
        let reason = match self.affine(&slope) {
            Ok(smooth) => return Ok((smooth, None)),
            Err(Fail::Refused(reason)) => reason,
            Err(other) => return Err(other),
        };
        match self.soft() {
            Ok(Soft { smooth, threshold, centre: None }) => Ok((smooth, Some(threshold))),
            Ok(_) => refuse("the absolute values have their kink at another point than 0"),
            Err(Fail::Refused(_)) => refuse(reason),
            Err(other) => Err(other),
        }
    }

    /// The sign of the slope that depends on the weights after the step: itself, and its argument as
    /// direction * (W' - centre).
    fn kink(&mut self) -> Tried<Option<(TermId, f64, Poly)>> {
        let atoms: BTreeSet<TermId> =
            self.slope.monomials.keys().flat_map(|m| m.0.iter().map(|(t, _)| *t)).collect();
        for atom in atoms {
            let Op::Fn1(Fn1::Sign, inner) = *self.ring.terms.op(atom) else { continue };
            if !self.ring.terms.uses(inner, self.unknown) {
                continue;
            }
            let inner = (*self.ring.poly(inner)?).clone();
            let Some((factor, rest)) = self.ring.linear_in(&inner, self.unknown)? else { continue };
            let Some(factor) = factor.as_number().filter(|f| *f != 0.0) else { continue };
            return Ok(Some((atom, factor.signum(), rest.scale(-1.0 / factor))));
        }
        Ok(None)
    }

    /// Reads the slope as linear plus threshold * sign(W' - centre).
    pub fn soft(&mut self) -> Tried<Soft> {
        let slope = self.slope.clone();
        let name = self.name(self.unknown);
        let Some((sign, direction, centre)) = self.kink()? else {
            return refuse(format!("the slope has no term `gamma * sign({name})`"));
        };
        let Some((threshold, rest)) = self.ring.linear_in_atom(&slope, sign) else {
            return refuse(format!("sign({name}) does not stand alone in the slope"));
        };
        let threshold = threshold.scale(direction);
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
        let centre = if centre.is_zero() { None } else { Some(self.written(&centre)?) };
        Ok(Soft { smooth: self.affine(&rest)?, threshold, centre })
    }

    /// centre + shrink(z - centre); a centre that is left out is 0.
    pub fn shrink_to(&mut self, z: TermId, threshold: TermId, centre: Option<TermId>) -> Tried<TermId> {
        let Some(centre) = centre else { return self.shrink(z, threshold) };
        let away = self.ring.terms.sub(z, centre)?;
        let shrunk = self.shrink(away, threshold)?;
        Ok(self.ring.terms.add(centre, shrunk)?)
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
