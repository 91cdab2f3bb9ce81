//! Separable terms: F(W') = keep F(W) + u, with an invertible link F = f'.

use super::Solved;
use super::invert::{End, Inverse};
use super::problem::Problem;
use super::refuse::{Fail, Tried, refuse};
use super::tell::{step, with_rows};
use crate::algebra::Bounds;
use crate::algebra::poly::Poly;
use crate::rule::{Inside, Retained};
use miras_spec as spec;

/// outer * F(W') + inner * F(W) + rest = drive, where F holds neither gates nor W.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// F of the unknown.
    pub function: Poly,
    /// Factor of F(W').
    pub outer: Poly,
    /// Factor of F(W); 0 where W does not occur.
    pub inner: Poly,
    /// What else there is.
    pub rest: Poly,
}

/// Objectives made of Bregman divergences and sums of one function with an invertible slope.
pub(super) fn solve(p: &mut Problem<'_>) -> Tried<Solved> {
    p.no_norms()?;
    inside_interval(p)?;
    let slope = p.slope.clone();
    let drive = p.var(p.drive);
    let inverse = p.invert(&slope, &drive)?;
    p.require_onto(&inverse)?;
    match p.link() {
        Ok(link) => dual(p, link, &inverse.rows),
        Err(Fail::Refused(_)) => primal(p, inverse),
        Err(other) => Err(other),
    }
}

/// Carries theta = F(W): theta' = keep theta + u, W' = F^-1(theta').
fn dual(p: &mut Problem<'_>, link: Link, rows: &[&'static str]) -> Tried<Solved> {
    let constant = p.number_beside(&link)?;
    let known = p.recognised(&link.function)?;
    let carried = p.new_dual();
    let theta = p.var(carried);
    let inverse = p.invert(&link.function, &theta.sub(&Poly::number(constant)))?;
    let value = p.written(&inverse.map)?;
    let old = p.ring.terms.use_var(p.old);
    let start = p.replaced(&known, p.unknown, old)?.add(&Poly::number(constant));
    let start = p.written(&start)?;
    let next = p.link_recurrence(&link, carried, constant)?;
    let next = p.step_of(carried, &next)?;
    let later = p.value_after(value, carried, next.advance)?;
    let retained = p.at_rest(later, Some((carried, start)))?;
    let slope = p.slope.clone();
    let function = p.ring.write_factored(&known.add(&Poly::number(constant)))?;
    let name = p.name(carried);
    let told = vec![
        p.stationarity(&slope, None)?,
        step(
            "dual",
            vec![(format!("{name}'"), function)],
            "the slope is linear in this increasing function of the weights (the link), which takes all real \
             values: it is carried in the weights' place."
                .into(),
        ),
        step(
            "closed form",
            vec![(format!("{name}'"), next.advance), (p.name(p.old), value)],
            with_rows("the equation solved for the link, and the link inverted", rows),
        ),
    ];
    let solved = Retained {
        carried,
        update: p.update,
        start: Some(start),
        initial: p.initial(),
        advance: next.advance,
        linear: next.linear,
        value: Some(value),
        finish: None,
        retained: Some(retained),
        inside: Inside::Mapped,
    };
    Ok((solved, told))
}

/// Carries the weights themselves, where the link has gates or depends on the weights before the step.
fn primal(p: &mut Problem<'_>, inverse: Inverse) -> Tried<Solved> {
    let advance = p.written(&inverse.map)?;
    let retained = p.at_rest(advance, None)?;
    let slope = p.slope.clone();
    let told = vec![
        p.stationarity(&slope, None)?,
        step(
            "closed form",
            vec![(p.name(p.unknown), advance)],
            with_rows("the equation solved for the weights; no fixed dual makes it linear", &inverse.rows),
        ),
    ];
    let solved = Retained {
        carried: p.old,
        update: p.update,
        start: None,
        initial: p.initial(),
        advance,
        linear: None,
        value: None,
        finish: None,
        retained: Some(retained),
        inside: Inside::TokenByToken,
    };
    Ok((solved, told))
}

/// On an interval the link must keep the weights inside by itself.
pub(super) fn inside_interval(p: &mut Problem<'_>) -> Tried<()> {
    let spec::Domain::Interval { low, high } = p.domain else { return Ok(()) };
    let ends = (p.ring.terms.as_num(low), p.ring.terms.as_num(high));
    match ends {
        (Some(low), Some(high)) if p.natural.low >= low && p.natural.high <= high => Ok(()),
        _ => refuse("the slope does not keep the weights inside the interval by itself"),
    }
}

impl Problem<'_> {
    /// The slope must take every real value on its domain, or some u would have no solution.
    pub fn require_onto(&mut self, inverse: &Inverse) -> Tried<()> {
        if inverse.onto() {
            return Ok(());
        }
        if !inverse.rising {
            return refuse("the slope falls with the weights: the objective has no minimum there");
        }
        let mut shown = Vec::new();
        for end in &inverse.ends {
            shown.push(match end {
                End::Minus => "-inf".to_string(),
                End::Plus => "inf".to_string(),
                End::At(v) => self.text(v)?,
            });
        }
        refuse(format!(
            "the slope takes only values in ({}, {}) on {}, not all reals, and nothing says what to do beyond",
            shown[0],
            shown[1],
            interval_text(self.natural)
        ))
    }

    /// Reads the slope as outer * F(W') + inner * F(W) + rest.
    pub fn link(&mut self) -> Tried<Link> {
        let slope = self.slope.clone();
        let (unknown, old) = (self.unknown, self.old);
        let (with, rest) = self.with_and_without(&slope, unknown);
        let (outer, function) = self.factor_and_link(&with);
        if self.ring.poly_uses(&function, old) || self.varies(&function) {
            return refuse("the link depends on the weights before the step or on a gate");
        }
        let at_old = self.ring.terms.use_var(old);
        let image = self.replaced(&function, unknown, at_old)?;
        let inner = self.factor_of(&rest, &image)?;
        let known = self.ring.mul(&inner, &image)?;
        let rest = rest.sub(&known);
        if self.ring.poly_uses(&rest, old) {
            return refuse("the weights before the step enter by another function than those after it");
        }
        Ok(Link { function, outer, inner, rest })
    }

    /// A sum as factor * F(W'), numbers being part of F, so that u enters the recurrence as it is.
    fn factor_and_link(&mut self, p: &Poly) -> (Poly, Poly) {
        let (factor, rest) = self.without_factor(p, self.unknown);
        let c = factor.first().map_or(1.0, |(_, c)| c.value);
        (factor.scale(1.0 / c), rest.scale(c))
    }

    /// The factor of a sum over the weights before the step within another sum.
    fn factor_of(&mut self, whole: &Poly, image: &Poly) -> Tried<Poly> {
        let mut factor = Poly::zero();
        let lead = image.monomials.iter().map(|(m, c)| (m.clone(), *c));
        let lead = lead.into_iter().find(|(m, _)| self.ring.monomial_uses(m, self.old));
        let Some((lead, c)) = lead else { return Ok(factor) };
        for (m, d) in &whole.monomials {
            let (free, dependent) = self.parted(m, self.old);
            if dependent == lead {
                factor.put(free, d.scale(1.0 / c.value));
            }
        }
        Ok(factor)
    }

    /// The number that f' has beside F: the dual is theta = f'(W), as docs/guide.md says.
    fn number_beside(&mut self, link: &Link) -> Tried<f64> {
        let own = self.own_slope.clone();
        let (with, beside) = self.with_and_without(&own, self.unknown);
        let (factor, function) = self.factor_and_link(&with);
        if with.is_zero() || !function.same(&link.function) {
            return Ok(0.0);
        }
        let constant = self.over(&beside, &factor)?;
        Ok(constant.as_number().unwrap_or(0.0))
    }

    /// theta' = (drive - inner (theta - constant) - rest) / outer + constant.
    pub fn link_recurrence(&mut self, link: &Link, carried: miras_term::VarId, constant: f64) -> Tried<Poly> {
        let image = self.var(carried).sub(&Poly::number(constant));
        let pulled = self.ring.mul(&link.inner, &image)?;
        let drive = self.var(self.drive).sub(&pulled).sub(&link.rest);
        Ok(self.over(&drive, &link.outer)?.add(&Poly::number(constant)))
    }

    /// The value of the next carried one.
    pub fn value_after(
        &mut self,
        value: miras_term::TermId,
        carried: miras_term::VarId,
        advance: miras_term::TermId,
    ) -> Tried<miras_term::TermId> {
        let replace = std::collections::HashMap::from([(carried, advance)]);
        Ok(self.ring.terms.substitute_one(value, &replace)?)
    }
}

fn interval_text(b: Bounds) -> String {
    if b == Bounds::REALS { "the reals".into() } else { format!("({}, {})", b.low, b.high) }
}
