//! A 2-norm beside quadratic terms: each slice of the weights moves along one direction.
//!
//! c V + kappa s norm(V)^(s - 2) V = B for V = W' - centre, with one number c: V is B times a number at least 0. Its
//! length r solves c r + kappa s r^(s - 1) = norm(B), which rises with r. With gamma * sum(abs(W')) besides, B is first
//! moved towards 0 by gamma: V has the signs of that.

use super::Solved;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::summands::NormPower;
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::calculus::vector_jacobian;
use crate::rule::{DerivationStep, Retained};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Axis, Mismatch, Reduce, Role, Root, Shape, TermId};
use std::collections::HashMap;

/// Safeguarded steps for the length where it has no closed form.
const STEPS: u32 = 60;

/// Floor of a norm in a slope (docs/mathematics.md).
const FLOOR: f64 = 1e-12;

/// Objectives with one norm; the weights themselves are carried: first B in their place, then what the norm leaves of it.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    let found = p.radial()?;
    let pull = p.pull_of(&found)?;
    let told = p.told_radial(&found, pull)?;
    let centre = p.written(&found.centre)?;
    let (whole, _) = p.along(&found, pull, centre)?;
    let solved = p.stepping(whole)?;
    // A point that depends on the last weights is not there any more once B is in their place.
    if p.ring.terms.uses(centre, p.old) {
        return Ok((solved, told));
    }
    let carried = p.ring.terms.use_var(p.old);
    let finish = Some(p.along(&found, carried, centre)?.0);
    Ok((Retained { advance: pull, finish, ..solved }, told))
}

/// The weights that minimise a potential, in terms of what pulls them.
pub(super) fn lazy(p: &mut Problem<'_>) -> Tried<(TermId, Vec<DerivationStep>)> {
    let found = p.radial()?;
    let pull = p.pull_of(&found)?;
    let centre = p.written(&found.centre)?;
    let (weights, _) = p.along(&found, pull, centre)?;
    Ok((weights, p.told_radial(&found, pull)?))
}

/// curvature V + factor power norm(V)^(power - 2) V = pull, V = W' - centre.
struct Radial {
    norm: NormPower,
    curvature: TermId,
    factor: TermId,
    centre: Poly,
    pull: Poly,
    /// The factor of sum(abs(W')), where there is one.
    threshold: Option<Poly>,
}

impl Problem<'_> {
    /// Reads the objective as quadratic terms with one curvature beside one norm.
    fn radial(&mut self) -> Tried<Radial> {
        let [norm] = self.parts.norms.as_slice() else {
            return refuse("the objective is not made of quadratic terms and one norm");
        };
        let norm = norm.clone();
        if self.ring.terms.as_num(norm.order) != Some(2.0) {
            return refuse("the norm beside the quadratic terms is not the 2-norm");
        }
        let (power, whole) = (norm.power, norm.axis == Axis::All);
        if !(power == 1.0 || (power >= 2.0 && whole)) {
            return refuse("the power of the norm is neither 1 nor, for the whole weight, at least 2");
        }
        let (smooth, threshold) = self.soft_or_smooth()?;
        let curvature = self.ring.write_factored(&smooth.curvature)?;
        if self.ring.terms.shape(curvature).rank() > 0 {
            return refuse(
                "the curvature varies between entries: the norm pulls in another direction than they do",
            );
        }
        let (scale, centre) = self.centre_of(&norm)?;
        if threshold.is_some() && !centre.is_zero() {
            return refuse("the absolute values and the norm have their kinks at different points");
        }
        let factor = (*self.ring.poly(norm.coefficient)?).clone().scale(scale);
        if !self.ring.poly_bounds(&factor)?.not_negative() {
            let text = self.text(&factor)?;
            return refuse(format!("the factor `{text}` of the norm is not known to be at least 0"));
        }
        let factor = self.ring.write_factored(&factor)?;
        let moved = self.ring.mul(&smooth.curvature, &centre)?;
        let pull = self.var(self.drive).sub(&smooth.pull).sub(&moved);
        Ok(Radial { norm, curvature, factor, centre, pull, threshold })
    }

    /// The norm of f (W' - centre) as abs(f)^power times that of W' - centre: that number, and the centre.
    pub(super) fn centre_of(&mut self, norm: &NormPower) -> Tried<(f64, Poly)> {
        let inner = (*self.ring.poly(norm.inner)?).clone();
        if let Some((factor, rest)) = self.ring.linear_in(&inner, self.unknown)?
            && let Some(factor) = factor.as_number().filter(|f| *f != 0.0)
        {
            return Ok((factor.abs().powf(norm.power), rest.scale(-1.0 / factor)));
        }
        refuse("the norm is not that of the weights, nor of their difference from a point")
    }

    /// B: what is left of the pull besides the norm, moved towards 0 by a threshold where there is one.
    fn pull_of(&mut self, found: &Radial) -> Tried<TermId> {
        let pull = self.step_of(self.old, &found.pull)?.advance;
        let Some(threshold) = &found.threshold else { return Ok(pull) };
        let threshold = self.ring.write_factored(threshold)?;
        self.shrink(pull, threshold)
    }

    /// How the weights follow from B, told with B and the length as names.
    fn told_radial(&mut self, found: &Radial, pull: TermId) -> Tried<Vec<DerivationStep>> {
        let (shown, centre) = (self.intermediate("B"), self.written(&found.centre)?);
        let (mut told, length) = self.along(found, shown, centre)?;
        let mut equations = Vec::new();
        if let Some(root) = length {
            let r = self.ring.terms.add_var("r", Role::Bound, Shape::scalar(), None);
            let r = self.ring.terms.use_var(r);
            told = self.ring.terms.replace_parts(&[told], &HashMap::from([(root, r)]))?[0];
            equations.push(("r".to_string(), root));
        }
        equations.push((self.name(self.unknown), told));
        let slices = match found.norm.axis {
            Axis::All => "the weights without the norm have the direction of B, and those with it too",
            Axis::Row => "each row has the direction of its row of B",
            Axis::Column => "each column has the direction of its column of B",
        };
        let length = match (found.norm.power, length) {
            (1.0, _) => {
                "what is not longer than the factor of the norm becomes 0, where the norm has any slope up to that"
            }
            (_, None) => "the length is the root of a quadratic equation",
            (_, Some(_)) => "the length r solves an equation that rises with r, by safeguarded Newton steps",
        };
        let balance = match found.threshold {
            None => "the equation without the norm.",
            Some(_) => {
                "the equation without the norm; sign(W') stands for any value between -1 and 1 where W' = 0, and the \
                 norm changes no sign."
            }
        };
        let slope = self.slope_of_norm(found)?;
        Ok(vec![
            self.stationarity(&slope, None)?,
            step("what the norm has to balance", vec![("B".into(), pull)], balance.into()),
            step("closed form", equations, format!("{slices}; {length}.")),
        ])
    }

    /// centre + V for the pull B, and the length of V where it is the root of an equation.
    fn along(&mut self, found: &Radial, pull: TermId, centre: TermId) -> Tried<(TermId, Option<TermId>)> {
        let t = &mut *self.ring.terms;
        let Radial { curvature: c, factor, norm, .. } = found;
        let (c, factor, power, two) = (*c, *factor, norm.power, t.num(2.0));
        let (moved, length) = if power == 1.0 {
            let length = self.length(pull, norm.axis)?;
            let t = &mut *self.ring.terms;
            let (one, zero, taken) = (t.num(1.0), t.num(0.0), t.div(factor, length)?);
            let kept = t.sub(one, taken)?;
            let (kept, free) = (t.fn2(Fn2::Max, kept, zero)?, t.div(pull, c)?);
            (t.mul(kept, free)?, None)
        } else if power == 3.0 {
            let (length, twelve) = (t.norm(pull, two)?, t.num(12.0));
            let (square, above) = (t.mul(c, c)?, t.mul(twelve, factor)?);
            let above = t.mul(above, length)?;
            let root = t.add(square, above)?;
            let root = t.fn1(Fn1::Sqrt, root)?;
            let (below, twice) = (t.add(c, root)?, t.mul(two, pull)?);
            (t.div(twice, below)?, None)
        } else {
            let length = t.norm(pull, two)?;
            let r = self.root_of(c, factor, power, length)?;
            let t = &mut *self.ring.terms;
            let (s, rest) = (t.num(power), t.num(power - 2.0));
            let (scaled, raised) = (t.mul(s, factor)?, t.fn2(Fn2::Pow, r, rest)?);
            let more = t.mul(scaled, raised)?;
            let below = t.add(c, more)?;
            (t.div(pull, below)?, Some(r))
        };
        let (t, shape) = (&mut *self.ring.terms, self.shape.clone());
        let weights = if t.as_num(centre) == Some(0.0) { moved } else { t.add(centre, moved)? };
        Ok((t.spread(weights, &shape)?, length))
    }

    /// The 2-norm of each slice, with a floor.
    fn length(&mut self, x: TermId, axis: Axis) -> Result<TermId, Mismatch> {
        let t = &mut *self.ring.terms;
        if axis == Axis::All {
            let (two, floor) = (t.num(2.0), t.num(FLOOR));
            let norm = t.norm(x, two)?;
            return t.fn2(Fn2::Max, norm, floor);
        }
        // Entries are divided by the largest before they are squared, so that no square leaves float32. Their squares sum
        // up to at least 1, unless all are below the floor.
        let (size, floor, least) = (t.fn1(Fn1::Abs, x)?, t.num(FLOOR), t.num(1.0));
        let largest = t.reduce(Reduce::Max, axis, size)?;
        let largest = t.fn2(Fn2::Max, largest, floor)?;
        let share = t.div(x, largest)?;
        let square = t.mul(share, share)?;
        let sum = t.reduce(Reduce::Sum, axis, square)?;
        let sum = t.fn2(Fn2::Max, sum, least)?;
        let root = t.fn1(Fn1::Sqrt, sum)?;
        t.mul(largest, root)
    }

    /// r >= 0 with c r + factor s r^(s - 1) = length: at most length / c.
    fn root_of(&mut self, c: TermId, factor: TermId, s: f64, length: TermId) -> Tried<TermId> {
        let unknown = self.ring.terms.add_var("r", Role::Bound, Shape::scalar(), None);
        let t = &mut *self.ring.terms;
        let (r, one, zero) = (t.use_var(unknown), t.num(1.0), t.num(0.0));
        let (power, less) = (t.num(s), t.num(s - 1.0));
        let (linear, raised) = (t.mul(c, r)?, t.fn2(Fn2::Pow, r, less)?);
        let scaled = t.mul(power, factor)?;
        let more = t.mul(scaled, raised)?;
        let sum = t.add(linear, more)?;
        let residual = t.sub(sum, length)?;
        let slope = vector_jacobian(t, &[(residual, one)], &[unknown])?;
        let [slope] = slope.as_slice() else { return refuse("the equation of the length has no derivative") };
        let (slope, t) = (*slope, &mut *self.ring.terms);
        let high = t.div(length, c)?;
        let high = t.add(high, one)?;
        Ok(t.solve_root(Root { unknown, residual, slope, low: zero, high, steps: STEPS })?)
    }

    /// The slope of the whole objective, for the derivation.
    fn slope_of_norm(&mut self, found: &Radial) -> Tried<Poly> {
        let slope = self.slope.clone();
        let away = self.var(self.unknown).sub(&found.centre);
        let (away, power) = (self.written(&away)?, found.norm.power);
        let length = match found.norm.axis {
            Axis::All => {
                let two = self.ring.terms.num(2.0);
                self.ring.terms.norm(away, two)?
            }
            axis => {
                let t = &mut *self.ring.terms;
                let square = t.mul(away, away)?;
                let sum = t.reduce(Reduce::Sum, axis, square)?;
                t.fn1(Fn1::Sqrt, sum)?
            }
        };
        let t = &mut *self.ring.terms;
        let less = t.num(power - 2.0);
        let (raised, s) = (t.fn2(Fn2::Pow, length, less)?, t.num(power));
        let scaled = t.mul(found.factor, s)?;
        let scaled = t.mul(scaled, raised)?;
        let pulled = t.mul(scaled, away)?;
        let pulled = self.ring.poly(pulled)?;
        Ok(slope.add(&pulled))
    }
}
