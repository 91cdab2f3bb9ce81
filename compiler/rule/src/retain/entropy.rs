//! Entropy on a simplex: the multiplier of the mass drops out, and the weights are a softmax.

use super::Solved;
use super::affine::Step;
use super::link::Link;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::summands::constant_along;
use super::tell::step;
use crate::algebra::poly::Poly;
use crate::rule::{InitialDomain, Inside, Retained};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::Fn1;
use miras_spec as spec;
use miras_term::{Axis, TermId};

/// Objectives on a simplex whose slope is outer * log(W') + inner * log(W) + rest.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    let (axis, mass, link) = p.logarithmic()?;
    let carried = p.new_dual();
    let next = p.link_recurrence(&link, carried, 0.0)?;
    p.keep_is_constant(carried, &next, axis)?;
    let next = p.without_slice_constants(&next, axis)?;
    let Step { advance, linear } = p.step_of(carried, &next)?;
    let theta = p.ring.terms.use_var(carried);
    let value = p.simplex_map(axis, mass, theta)?;
    let old = p.ring.terms.use_var(p.old);
    let start = p.ring.terms.fn1(Fn1::Log, old)?;
    let later = p.value_after(value, carried, advance)?;
    let retained = p.at_rest(later, Some((carried, start)))?;
    let slope = p.slope.clone();
    let (name, weight) = (p.name(carried), p.name(p.old));
    let told = vec![
        p.stationarity(&slope, Some("zeta"))?,
        step(
            "logits",
            vec![(name.clone(), start)],
            format!(
                "the slope is linear in log {weight}: with {name} = log {weight} up to one number per slice the \
                 recurrence is linear, and no logarithm of a small number is ever taken."
            ),
        ),
        step(
            "closed form",
            vec![(format!("{name}'"), advance), (weight, value)],
            "what is the same for a whole slice is absorbed by the multiplier, which the given sum of the slice \
             fixes: exp, normalised."
                .into(),
        ),
    ];
    let solved = Retained {
        carried,
        update: p.update,
        start: Some(start),
        initial: InitialDomain::Simplex(axis, mass),
        advance,
        linear,
        value: Some(value),
        finish: None,
        retained: Some(retained),
        inside: Inside::Mapped,
    };
    Ok((solved, told))
}

impl Problem<'_> {
    /// The simplex, and the slope read with the link log.
    pub fn logarithmic(&mut self) -> Tried<(Axis, TermId, Link)> {
        let spec::Domain::Simplex { axis, mass } = self.domain else {
            return refuse("the domain is no simplex");
        };
        self.no_norms()?;
        let mut link = self.link()?;
        let unknown = self.ring.terms.use_var(self.unknown);
        let log = Poly::atom(self.ring.terms.fn1(Fn1::Log, unknown)?);
        let c = link.function.single().map_or(1.0, |(_, c)| c.value);
        if !link.function.same(&log.scale(c)) {
            let text = self.text(&link.function)?;
            return refuse(format!("the slope is linear in `{text}`, not in the logarithm"));
        }
        link = Link { function: log, outer: link.outer.scale(c), inner: link.inner.scale(c), ..link };
        self.require_positive(&link.outer, "the factor of the logarithm")?;
        let outer = self.ring.write(&link.outer)?;
        if !constant_along(self.ring.terms, outer, axis) {
            return refuse("the factor of the logarithm varies within a slice");
        }
        Ok((axis, mass, link))
    }

    /// mass * softmax(theta).
    pub fn simplex_map(&mut self, axis: Axis, mass: TermId, theta: TermId) -> Tried<TermId> {
        let softmax = self.ring.terms.softmax(axis, theta)?;
        let scaled = self.ring.terms.mul(mass, softmax)?;
        Ok(self.ring.terms.spread(scaled, &self.shape.clone())?)
    }

    /// Logits solve the objective only where what is kept of them is one number per slice: they hold
    /// log W up to such a number, and a keep that varies would make that number count.
    fn keep_is_constant(&mut self, carried: miras_term::VarId, next: &Poly, axis: Axis) -> Tried<()> {
        let Some((keep, _)) = self.ring.linear_in(next, carried)? else {
            return refuse("the recurrence of the logits is not linear");
        };
        let keep = self.ring.write_factored(&keep)?;
        if constant_along(self.ring.terms, keep, axis) {
            return Ok(());
        }
        let text = miras_term::print_within(self.ring.terms, keep, &Default::default(), 80);
        let slice = match axis {
            Axis::Row => "row",
            Axis::Column => "column",
            Axis::All => "weight",
        };
        let d = Diagnostic::new(
            code::SIMPLEX_GATE,
            format!("the fraction `{text}` that is kept varies within a {slice} of the simplex"),
        )
        .with_help(format!(
            "use a gate with one value for each {slice}, e.g. `learned(per = token)`{}",
            if axis == Axis::Row { " or `learned(per = value)`" } else { "" }
        ));
        Err(d.into())
    }

    /// A sum without the parts that have one value in a slice.
    pub fn without_slice_constants(&mut self, p: &Poly, axis: Axis) -> Tried<Poly> {
        let mut left = Poly::zero();
        for (m, c) in &p.monomials {
            let constant = m.0.iter().all(|(t, _)| constant_along(self.ring.terms, *t, axis));
            if !constant {
                left.put(m.clone(), *c);
            }
        }
        Ok(left)
    }
}
