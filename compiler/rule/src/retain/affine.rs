//! Quadratic terms: a stationarity that is linear in the weights after the step.

use super::Solved;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::rule::{InitialDomain, Inside, Linear, Retained};
use miras_term::{TermId, VarId};

/// curvature * W' + pull = drive, with a curvature greater than 0.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    pub curvature: Poly,
    pub pull: Poly,
}

/// A step of a carried value: next = keep * carried + write * u + shift where it is of that form.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub advance: TermId,
    pub linear: Option<Linear>,
}

/// Objectives whose slope is linear: W' = keep W + write u + shift.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    p.no_norms()?;
    let found = p.affine(&p.slope.clone())?;
    let minimum = p.minimum_of(&found)?;
    let step = p.step_of(p.old, &minimum)?;
    let retained = p.at_rest(step.advance, None)?;
    let told = p.told(&step)?;
    let inside = if step.linear.is_some() { Inside::Identity } else { Inside::TokenByToken };
    let solved = Retained {
        carried: p.old,
        update: p.update,
        start: None,
        initial: InitialDomain::Any,
        advance: step.advance,
        linear: step.linear,
        value: None,
        finish: None,
        retained: Some(retained),
        inside,
    };
    Ok((solved, told))
}

impl Problem<'_> {
    /// Reads a slope as curvature * W' + pull.
    pub fn affine(&mut self, slope: &Poly) -> Tried<Affine> {
        let Some((curvature, pull)) = self.ring.linear_in(slope, self.unknown)? else {
            let text = self.text(slope)?;
            return refuse(format!("the slope `{text}` is not linear in `{}`", self.name(self.unknown)));
        };
        if curvature.is_zero() {
            return refuse(format!("the slope does not depend on `{}`", self.name(self.unknown)));
        }
        self.require_positive(&curvature, "the curvature")?;
        Ok(Affine { curvature, pull })
    }

    /// W' = (drive - pull) / curvature.
    pub fn minimum_of(&mut self, a: &Affine) -> Tried<Poly> {
        let drive = self.var(self.drive);
        Ok(self.over(&drive.sub(&a.pull), &a.curvature)?)
    }

    /// The next value of what is carried, written as keep * carried + write * u + shift where it is that.
    pub fn step_of(&mut self, carried: VarId, next: &Poly) -> Tried<Step> {
        let Some((keep, write, shift)) = self.linear_parts(carried, next)? else {
            return Ok(Step { advance: self.written(next)?, linear: None });
        };
        let advance = self.recurrence(carried, &keep, &write, &shift)?;
        let scaled = write.as_number() != Some(1.0);
        let write = if scaled { Some(self.ring.write_factored(&write)?) } else { None };
        let keep = self.ring.write_factored(&keep)?;
        let shift = if shift.is_zero() { None } else { Some(self.ring.write_factored(&shift)?) };
        Ok(Step { advance, linear: Some(Linear { keep, write, shift }) })
    }

    /// keep, write and shift of a value that is linear in what is carried and in u.
    pub fn linear_parts(&mut self, carried: VarId, next: &Poly) -> Tried<Option<(Poly, Poly, Poly)>> {
        let Some((keep, rest)) = self.ring.linear_in(next, carried)? else { return Ok(None) };
        let Some((write, shift)) = self.ring.linear_in(&rest, self.update)? else { return Ok(None) };
        if self.ring.poly_uses(&keep, self.update) {
            return Ok(None);
        }
        Ok(Some((keep, write, shift)))
    }

    fn told(&mut self, solved: &Step) -> Tried<Vec<crate::rule::DerivationStep>> {
        let slope = self.slope.clone();
        let stationarity = self.stationarity(&slope, None)?;
        let solution = step(
            "closed form",
            vec![(self.name(self.unknown), solved.advance)],
            "the equation is linear in W', and the objective is strictly convex.".into(),
        );
        Ok(vec![stationarity, solution])
    }
}
