//! `solve: newton(n)`: entry-wise equations without an invertible slope, by n safeguarded Newton steps.
//!
//! The slope is split as F + G, both rising, F invertible and onto. For any point x of the domain let z be
//! F^-1(drive - G(x)): where z >= x the root lies between x and z, and where z <= x between z and x. That
//! bracket is widened by its own length (so that its ends have strictly opposite signs) within the domain.

use super::Solved;
use super::problem::Problem;
use super::refuse::{Fail, Tried, refuse};
use super::tell::step;
use crate::algebra::Bounds;
use crate::algebra::poly::Poly;
use crate::calculus::vector_jacobian;
use crate::rule::{DerivationStep, Retained};
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{Role, Root, TermId};

/// The weights after the step by Newton's method; the weights themselves are carried.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    let old = p.ring.terms.use_var(p.old);
    let (root, mut told) = p.by_newton(old)?;
    let advance = p.clamped(root)?;
    if advance != root {
        told.push(step(
            "nearest point of the interval",
            vec![(p.name(p.unknown), advance)],
            "entries do not interact, and the objective of each is convex: beyond an end the minimum is that end."
                .into(),
        ));
    }
    let solved = Retained { initial: p.initial(), ..p.stepping(advance)? };
    Ok((solved, told))
}

/// Domains that tie entries together: Newton steps go entry by entry.
pub(super) fn not_apart<T>(p: &mut Problem<'_>) -> Tried<T> {
    refuse(match p.domain {
        spec::Domain::Simplex { .. } => {
            "entries of a simplex are tied by the sum of their slice, and each trial of its multiplier would need Newton \
             steps of its own; write the objective with a slope that the table inverts, such as a Bregman divergence"
        }
        spec::Domain::Ball { .. } => {
            "the entries of a ball are tied by their norm, and Newton steps go entry by entry"
        }
        spec::Domain::All | spec::Domain::Interval { .. } => "the entries are not tied together",
    })
}

/// The map of a lazy retention by Newton's method.
pub(super) fn lazy(p: &mut Problem<'_>) -> Tried<(TermId, Vec<DerivationStep>)> {
    let middle = match (p.natural.low.is_finite(), p.natural.high.is_finite()) {
        (true, true) => (p.natural.low + p.natural.high) / 2.0,
        (true, false) => p.natural.low + 1.0,
        (false, true) => p.natural.high - 1.0,
        (false, false) => 0.0,
    };
    let shape = p.shape.clone();
    let inside = p.ring.terms.fill(middle, shape);
    let (root, told) = p.by_newton(inside)?;
    Ok((p.clamped(root)?, told))
}

/// How a part of the slope is known to rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// By the intervals in which its derivative lies.
    Intervals,
    /// By its derivative at many points; evidence only.
    Points,
}

impl Problem<'_> {
    /// slope(W') = drive from a point of the domain.
    fn by_newton(&mut self, from: TermId) -> Tried<(TermId, Vec<DerivationStep>)> {
        self.no_norms()?;
        let Some(steps) = self.newton else { return refuse("the retention asks for no Newton steps") };
        let slope = self.slope.clone();
        let (low, high, proof) = self.newton_bracket(&slope, from)?;
        let name = self.name(self.unknown);
        let unknown = self.ring.terms.add_var(name.clone(), Role::Bound, self.shape.clone(), None);
        let (at, shape) = (self.ring.terms.use_var(unknown), self.shape.clone());
        let slope_term = self.replaced(&slope, self.unknown, at)?;
        let slope_term = self.written(&slope_term)?;
        let drive = self.ring.terms.use_var(self.drive);
        let t = &mut *self.ring.terms;
        let residual = t.sub(slope_term, drive)?;
        let one = t.fill(1.0, shape);
        let second = vector_jacobian(t, &[(residual, one)], &[unknown])?;
        let [second] = second.as_slice() else { return refuse("the slope has no derivative") };
        let second = {
            let p = self.ring.poly(*second)?;
            self.written(&p)?
        };
        let root = Root { unknown, residual, slope: second, low, high, steps };
        let root = self.ring.terms.solve_root(root)?;
        let rises = match proof {
            Proof::Intervals => "the slope rises with every entry",
            Proof::Points => {
                "the slope rose with every entry wherever it was looked at (many points, no proof)"
            }
        };
        let why = format!(
            "{rises} and is not inverted by the table: {steps} safeguarded Newton steps from the middle of a bracket."
        );
        let told = vec![self.stationarity(&slope, None)?, step("Newton steps", vec![(name, root)], why)];
        Ok((root, told))
    }

    /// A bracket of the root, and how it is known to be one.
    fn newton_bracket(&mut self, slope: &Poly, from: TermId) -> Tried<(TermId, TermId, Proof)> {
        let parts: Vec<Poly> = self.rising_parts(slope)?;
        let mut reasons = Vec::new();
        for proof in [Proof::Intervals, Proof::Points] {
            for part in &parts {
                let rest = slope.sub(part);
                match self.bracket_by(part, &rest, from, proof) {
                    Ok((low, high)) => return Ok((low, high, proof)),
                    Err(Fail::Refused(reason)) if proof == Proof::Intervals => reasons.push(reason),
                    Err(Fail::Refused(_)) => {}
                    Err(other) => return Err(other),
                }
            }
        }
        refuse(format!(
            "no rising part of the slope bounds the root ({})",
            if reasons.is_empty() { "it has none".to_string() } else { reasons.join("; ") }
        ))
    }

    /// Candidates for F: the part linear in the unknown, that of it without the weights before the step, each
    /// part by itself, those without gates, the whole.
    fn rising_parts(&mut self, slope: &Poly) -> Tried<Vec<Poly>> {
        let unknown = self.ring.terms.use_var(self.unknown);
        let mut parts = Vec::new();
        let (mut linear, mut plain, mut steady) = (Poly::zero(), Poly::zero(), Poly::zero());
        for (m, c) in &slope.monomials {
            let (free, dependent) = self.parted(m, self.unknown);
            if free.0.is_empty() && !dependent.0.is_empty() {
                plain.put(m.clone(), *c);
            }
            if dependent
                == crate::algebra::poly::Monomial::power(unknown, crate::algebra::poly::Exponent::one())
            {
                linear.put(m.clone(), *c);
                if !self.ring.monomial_uses(&free, self.old) {
                    steady.put(m.clone(), *c);
                }
            } else if !dependent.0.is_empty() {
                parts.push(Poly::monomial(*c, m.clone()));
            }
        }
        let linear = [linear, steady].into_iter().filter(|p| !p.is_zero());
        parts.splice(0..0, linear);
        parts.extend([plain, slope.clone()].into_iter().filter(|p| p.len() > 1));
        Ok(parts)
    }

    fn bracket_by(
        &mut self,
        part: &Poly,
        rest: &Poly,
        from: TermId,
        proof: Proof,
    ) -> Tried<(TermId, TermId)> {
        let text = self.text(part)?;
        let rises = match proof {
            Proof::Intervals => self.rises(rest)?,
            Proof::Points => self.seems_to_rise(rest)?,
        };
        if !rises {
            return refuse(format!("what is left beside `{text}` is not known to rise"));
        }
        let there = self.replaced(rest, self.unknown, from)?;
        let drive = self.var(self.drive);
        let inverse = self.invert(part, &drive.sub(&there))?;
        if !inverse.onto() {
            return refuse(format!("`{text}` does not take all real values"));
        }
        let other = self.written(&inverse.map)?;
        let t = &mut *self.ring.terms;
        let (low, high) = (t.fn2(Fn2::Min, from, other)?, t.fn2(Fn2::Max, from, other)?);
        self.widened(low, high)
    }

    /// Whether a sum is known not to fall with the unknown.
    fn rises(&mut self, p: &Poly) -> Tried<bool> {
        if !self.ring.poly_uses(p, self.unknown) {
            return Ok(true);
        }
        let p = self.recognised(p)?;
        let (term, shape) = (self.written(&p)?, self.shape.clone());
        let one = self.ring.terms.fill(1.0, shape);
        let slope = vector_jacobian(self.ring.terms, &[(term, one)], &[self.unknown])?;
        let Some(slope) = slope.first() else { return Ok(false) };
        let slope = self.ring.poly(*slope)?;
        let slope = self.recognised(&slope)?;
        Ok(self.ring.poly_bounds(&slope)?.not_negative())
    }

    /// A bracket widened by its own length, in the measure of the domain.
    fn widened(&mut self, low: TermId, high: TermId) -> Tried<(TermId, TermId)> {
        let Bounds { low: a, high: b, .. } = self.natural;
        let t = &mut *self.ring.terms;
        // Distances to an end of the domain grow or shrink by the ratio of the two.
        let mut beyond = |near: TermId, far: TermId, end: f64| {
            let end = t.num(end);
            let (near, far) = (t.sub(near, end)?, t.sub(far, end)?);
            let square = t.mul(near, near)?;
            let moved = t.div(square, far)?;
            t.add(end, moved)
        };
        Ok(match (a.is_finite(), b.is_finite()) {
            (true, true) => (beyond(low, high, a)?, beyond(high, low, b)?),
            (true, false) => (beyond(low, high, a)?, beyond(high, low, a)?),
            (false, true) => (beyond(low, high, b)?, beyond(high, low, b)?),
            (false, false) => {
                let length = t.sub(high, low)?;
                (t.sub(low, length)?, t.add(high, length)?)
            }
        })
    }

    /// Held in the interval, where that is the domain.
    fn clamped(&mut self, z: TermId) -> Tried<TermId> {
        let spec::Domain::Interval { low, high } = self.domain else { return Ok(z) };
        let below = self.ring.terms.fn2(Fn2::Min, z, high)?;
        Ok(self.ring.terms.fn2(Fn2::Max, below, low)?)
    }
}
