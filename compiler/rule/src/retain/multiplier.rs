//! Separable terms on a simplex: one multiplier per slice, found as the root of the slice's sum.
//!
//! W' solves slope(W') = drive - zeta entry by entry, held at 0 where the slope at 0 is larger than that.
//! The sum over a slice falls with zeta. For any point x of the simplex, zeta lies between the smallest and
//! the largest drive - slope(x) of the slice: below all of them every entry is at least x, above all at most.

use super::Solved;
use super::invert::{End, Inverse};
use super::link::Link;
use super::problem::Problem;
use super::refuse::{Fail, Tried, refuse};
use super::summands::constant_along;
use super::tell::{step, with_rows};
use crate::algebra::poly::Poly;
use crate::calculus::vector_jacobian;
use crate::rule::{DerivationStep, InitialDomain, Inside, Retained};
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{Axis, Reduce, Role, Root, Shape, TermId};

/// Safeguarded steps that a backend takes for the multiplier: bisection alone would leave 1e-18 of the
/// bracket.
const STEPS: u32 = 60;

/// Objectives on a simplex with an invertible slope: f-divergences, Bregman divergences, squared distances.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    let simplex = p.simplex()?;
    let slope = p.slope.clone();
    let drive = p.ring.terms.use_var(p.drive);
    let inverse = p.rising(&slope)?;
    if matches!(inverse.ends[0], End::Minus) {
        match p.link() {
            Ok(link) if p.slice_constant(&link, simplex.axis)? => return dual(p, &simplex, &link),
            Ok(_) | Err(Fail::Refused(_)) => {}
            Err(other) => return Err(other),
        }
    }
    let old = p.ring.terms.use_var(p.old);
    let (sum, mass) = (p.ring.terms.reduce(Reduce::Sum, simplex.axis, old)?, simplex.mass);
    let (whole, shape) = (p.ring.terms.mul(old, mass)?, p.shape.clone());
    let feasible = p.ring.terms.div(whole, sum)?;
    let feasible = p.ring.terms.spread(feasible, &shape)?;
    let found = p.by_multiplier(&simplex, &slope, drive, feasible)?;
    let told = p.told_multiplier(&slope, &inverse, &found, p.unknown)?;
    let initial = InitialDomain::Simplex(simplex.axis, mass);
    let solved = Retained { initial, ..p.stepping(found.weights)? };
    Ok((solved, told))
}

/// A link that keeps the weights off the boundary by itself: theta = F(W) up to one number per slice.
fn dual(p: &mut Problem<'_>, simplex: &Simplex, link: &Link) -> Tried<Solved> {
    let carried = p.new_dual();
    let next = p.link_recurrence(link, carried, 0.0)?;
    let next = p.without_slice_constants(&next, simplex.axis)?;
    let next = p.step_of(carried, &next)?;
    let theta = p.ring.terms.use_var(carried);
    let inverse = p.rising(&link.function)?;
    let even = p.even(simplex)?;
    let found = p.by_multiplier(simplex, &link.function, theta, even)?;
    let old = p.ring.terms.use_var(p.old);
    let start = p.replaced(&link.function, p.unknown, old)?;
    let start = p.written(&start)?;
    let later = p.value_after(found.weights, carried, next.advance)?;
    let retained = p.at_rest(later, Some((carried, start)))?;
    let slope = p.slope.clone();
    let mut told = p.told_multiplier(&slope, &inverse, &found, p.old)?;
    let name = p.name(carried);
    told.insert(
        1,
        step(
            "dual",
            vec![(name.clone(), start), (format!("{name}'"), next.advance)],
            "the slope is linear in this function of the weights, which is carried in their place; what is the \
             same for a whole slice is absorbed by the multiplier."
                .into(),
        ),
    );
    let solved = Retained {
        carried,
        update: p.update,
        start: Some(start),
        initial: InitialDomain::Simplex(simplex.axis, simplex.mass),
        advance: next.advance,
        linear: next.linear,
        value: Some(found.weights),
        finish: None,
        retained: Some(retained),
        inside: Inside::Mapped,
    };
    Ok((solved, told))
}

/// Slices and their sum.
pub(super) struct Simplex {
    pub axis: Axis,
    pub mass: TermId,
}

/// The weights by the multiplier, and the multiplier.
pub(super) struct Multiplied {
    pub weights: TermId,
    /// The entries in terms of zeta as a variable.
    pub entries: TermId,
    pub zeta: TermId,
}

impl Problem<'_> {
    /// The simplex, where the objective is a sum over entries.
    pub fn simplex(&mut self) -> Tried<Simplex> {
        self.no_norms()?;
        let spec::Domain::Simplex { axis, mass } = self.domain else {
            return refuse("the domain is no simplex");
        };
        Ok(Simplex { axis, mass })
    }

    /// The inverse of a slope that rises on (0, inf).
    pub fn rising(&mut self, slope: &Poly) -> Tried<Inverse> {
        let drive = self.var(self.drive);
        let inverse = self.invert(slope, &drive)?;
        if !inverse.rising {
            return refuse("the slope falls with the weights: the objective has no minimum there");
        }
        if self.natural.high.is_finite() && !matches!(inverse.ends[1], End::Plus) {
            return refuse("the slope does not keep the weights below the upper end of its domain");
        }
        Ok(inverse)
    }

    /// Whether what multiplies the link has one value per slice, before and after the step.
    fn slice_constant(&mut self, link: &Link, axis: Axis) -> Tried<bool> {
        let (outer, inner) = (self.ring.write(&link.outer)?, self.ring.write(&link.inner)?);
        Ok(constant_along(self.ring.terms, outer, axis) && constant_along(self.ring.terms, inner, axis))
    }

    /// The point of the simplex with equal entries.
    pub fn even(&mut self, s: &Simplex) -> Tried<TermId> {
        let (t, shape) = (&mut *self.ring.terms, self.shape.clone());
        let like = t.fill(0.0, shape.clone());
        let count = t.count(s.axis, like)?;
        let entry = t.div(s.mass, count)?;
        Ok(t.spread(entry, &shape)?)
    }

    /// slope(W') = drive - zeta with zeta from the sums of the slices. `feasible` lies on the simplex.
    pub fn by_multiplier(
        &mut self,
        s: &Simplex,
        slope: &Poly,
        drive: TermId,
        feasible: TermId,
    ) -> Tried<Multiplied> {
        let shape = slice_shape(&self.shape, s.axis);
        let unknown = self.ring.terms.add_var("zeta", Role::Bound, shape.clone(), None);
        let zeta = self.ring.terms.use_var(unknown);
        let [low_end, high_end] = self.rising(slope)?.ends;
        let pulled = self.ring.terms.sub(drive, zeta)?;
        let entries = self.held_above(slope, pulled, &low_end)?;
        let (low, high) = self.bracket(s, slope, drive, feasible, &high_end)?;
        let t = &mut *self.ring.terms;
        let sum = t.reduce(Reduce::Sum, s.axis, entries)?;
        let residual = t.sub(sum, s.mass)?;
        let residual = t.spread(residual, &shape)?;
        let one = t.fill(1.0, shape);
        let by_zeta = vector_jacobian(t, &[(residual, one)], &[unknown])?;
        let [by_zeta] = by_zeta.as_slice() else { return refuse("the sum has no derivative by zeta") };
        let root = Root { unknown, residual, slope: *by_zeta, low, high, steps: STEPS };
        let root = t.solve_root(root)?;
        let replace = std::collections::HashMap::from([(unknown, root)]);
        let weights = t.substitute_one(entries, &replace)?;
        Ok(Multiplied { weights, entries, zeta: root })
    }

    /// The solution of slope(W') = side, or 0 where the slope at 0 is larger than that already.
    fn held_above(&mut self, slope: &Poly, side: TermId, low_end: &End) -> Tried<TermId> {
        let End::At(at_zero) = low_end else {
            let side = (*self.ring.poly(side)?).clone();
            let map = self.invert(slope, &side)?.map;
            return Ok(self.written(&map)?);
        };
        let plain = self.invert(slope, &Poly::atom(side))?.map;
        let linear = self.ring.linear_in_atom(&plain, side).is_some();
        let number = at_zero.as_number().is_some();
        let zero = self.ring.terms.num(0.0);
        if linear && !number {
            let map = self.written(&plain)?;
            return Ok(self.ring.terms.fn2(Fn2::Max, map, zero)?);
        }
        let at_zero = self.ring.write(at_zero)?;
        let held = self.ring.terms.fn2(Fn2::Max, side, at_zero)?;
        let map = self.invert(slope, &Poly::atom(held))?.map;
        let map = self.written(&map)?;
        // Where the slope at 0 is computed, rounding must not leave an entry below 0.
        if number { Ok(map) } else { Ok(self.ring.terms.fn2(Fn2::Max, map, zero)?) }
    }

    /// Numbers below and above zeta, with room for rounding.
    fn bracket(
        &mut self,
        s: &Simplex,
        slope: &Poly,
        drive: TermId,
        feasible: TermId,
        high_end: &End,
    ) -> Tried<(TermId, TermId)> {
        let one = self.ring.terms.num(1.0);
        let gap = self.gap(slope, drive, feasible)?;
        let high = self.ring.terms.reduce(Reduce::Max, s.axis, gap)?;
        let high = self.ring.terms.add(high, one)?;
        let low = match high_end {
            End::At(_) => {
                // Lower still, an entry would leave the slope's range: one entry with all the mass.
                let (mass, shape) = (s.mass, self.shape.clone());
                let all = self.ring.terms.spread(mass, &shape)?;
                let gap = self.gap(slope, drive, all)?;
                self.ring.terms.reduce(Reduce::Max, s.axis, gap)?
            }
            End::Plus | End::Minus => {
                let low = self.ring.terms.reduce(Reduce::Min, s.axis, gap)?;
                self.ring.terms.sub(low, one)?
            }
        };
        Ok((low, high))
    }

    /// drive - slope(at), in the weight's shape.
    fn gap(&mut self, slope: &Poly, drive: TermId, at: TermId) -> Tried<TermId> {
        let there = self.replaced(slope, self.unknown, at)?;
        let there = self.written(&there)?;
        let gap = self.ring.terms.sub(drive, there)?;
        Ok(self.ring.terms.spread(gap, &self.shape.clone())?)
    }

    pub fn told_multiplier(
        &mut self,
        slope: &Poly,
        inverse: &Inverse,
        found: &Multiplied,
        weights: miras_term::VarId,
    ) -> Tried<Vec<DerivationStep>> {
        let stationarity = self.stationarity(slope, Some("zeta"))?;
        let held = match inverse.ends[0] {
            End::At(_) => "the equation solved for the weights, which stay 0 where they would fall below",
            End::Minus | End::Plus => "the equation solved for the weights",
        };
        let solution = step(
            "closed form",
            vec![(self.name(weights), found.entries), ("zeta".into(), found.zeta)],
            format!(
                "{} The multiplier zeta is the root of the sum of each slice minus its mass, which falls with zeta.",
                with_rows(held, &inverse.rows)
            ),
        );
        Ok(vec![stationarity, solution])
    }
}

/// The shape of one number per slice.
fn slice_shape(shape: &Shape, axis: Axis) -> Shape {
    match (axis, shape.0.as_slice()) {
        (Axis::Row, [rows, _]) => Shape::matrix(rows.clone(), Dim::one()),
        (Axis::Column, [_, cols]) => Shape::matrix(Dim::one(), cols.clone()),
        _ => Shape::scalar(),
    }
}
