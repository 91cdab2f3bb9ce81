//! Lazy retentions: a dual by its own recurrence, and the weights that minimise a potential minus <A', W'>.

use super::declared::{Dual, accumulated};
use super::link;
use super::problem::Problem;
use super::refuse::{Fail, Refusal, Tried, refuse};
use super::summands::constant_along;
use super::tell::{step, with_rows};
use super::{Solved, Unsolved, newton, one, power_norm, radial};
use crate::rule::{DerivationStep, Inside};
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{TermId, VarId};

type Mapped = (TermId, Vec<DerivationStep>);

/// One way to minimise a potential: W' in terms of A'.
struct Strategy {
    name: &'static str,
    solve: fn(&mut Problem<'_>) -> Tried<Mapped>,
}

const QUADRATIC: Strategy = Strategy { name: "a quadratic potential", solve: quadratic };
const PROXIMAL: Strategy = Strategy { name: "a quadratic potential with absolute values", solve: proximal };
const NORM: Strategy = Strategy { name: "a power of a norm", solve: power_norm::lazy };
const RADIAL: Strategy = Strategy { name: "a quadratic potential with a norm", solve: radial::lazy };
const LINK: Strategy = Strategy { name: "a separable potential with an invertible slope", solve: linked };
const ENTROPY: Strategy = Strategy { name: "entropy on a simplex", solve: entropy };
const MULTIPLIER: Strategy = Strategy { name: "a separable potential on a simplex", solve: multiplier };
const NEWTON: Strategy = Strategy { name: "Newton steps", solve: newton::lazy };
const APART: Strategy = Strategy { name: "Newton steps", solve: newton::not_apart };

fn strategies(domain: &spec::Domain, newton: bool) -> &'static [Strategy] {
    match (domain, newton) {
        (spec::Domain::All | spec::Domain::Interval { .. }, true) => &[NEWTON],
        (spec::Domain::All, false) => &[QUADRATIC, PROXIMAL, RADIAL, NORM, LINK],
        (spec::Domain::Simplex { .. }, false) => &[ENTROPY, MULTIPLIER],
        (spec::Domain::Simplex { .. }, true) => &[ENTROPY, MULTIPLIER, APART],
        (spec::Domain::Ball { .. }, false) => &[QUADRATIC],
        (spec::Domain::Ball { .. }, true) => &[QUADRATIC, APART],
        (spec::Domain::Interval { .. }, false) => &[QUADRATIC, LINK],
    }
}

/// Carries A; W = argmin potential(W) - <A, W>.
pub(super) fn solve(
    layer: &mut spec::Layer,
    index: usize,
    dual: [VarId; 2],
    next: TermId,
    potential: TermId,
    domain: &spec::Domain,
) -> Result<Solved, Unsolved> {
    let newton = layer.retention[index].newton.is_some();
    let mut tried = Vec::new();
    for strategy in strategies(domain, newton) {
        let attempt = Problem::new(layer, index, &[potential], dual[1], domain.clone())
            .and_then(|mut problem| (strategy.solve)(&mut problem));
        match attempt {
            Ok((map, told)) => {
                let found = Dual { vars: dual, next, map, told, inside: Inside::Mapped };
                return one(accumulated(layer, index, found));
            }
            Err(Fail::Refused(reason)) => tried.push(Refusal { strategy: strategy.name, reason }),
            Err(Fail::Final(d)) => return Err(Unsolved::Final(d)),
        }
    }
    Err(Unsolved::Tried(tried))
}

fn told(p: &mut Problem<'_>, map: TermId, why: String) -> Tried<Mapped> {
    let slope = p.slope.clone();
    let stationarity = p.stationarity(&slope, None)?;
    Ok((map, vec![stationarity, step("closed form", vec![(p.name(p.unknown), map)], why)]))
}

fn quadratic(p: &mut Problem<'_>) -> Tried<Mapped> {
    p.no_norms()?;
    let (found, threshold) = match p.domain {
        spec::Domain::All | spec::Domain::Simplex { .. } => (p.affine(&p.slope.clone())?, None),
        spec::Domain::Ball { .. } | spec::Domain::Interval { .. } => p.soft_or_smooth()?,
    };
    let minimum = p.minimum_of(&found)?;
    let mut minimum = p.written(&minimum)?;
    if let Some(threshold) = threshold {
        let threshold = p.over(&threshold, &found.curvature)?;
        let threshold = p.ring.write_factored(&threshold)?;
        minimum = p.shrink(minimum, threshold)?;
    }
    match p.domain {
        spec::Domain::All | spec::Domain::Simplex { .. } => {
            told(p, minimum, "the equation is linear in W', and the potential is strictly convex.".into())
        }
        spec::Domain::Ball { radius } => {
            let curvature = p.ring.write(&found.curvature)?;
            if p.ring.terms.shape(curvature).rank() > 0 {
                return refuse("the curvature varies between entries: the nearest point is another one");
            }
            let t = &mut *p.ring.terms;
            let two = t.num(2.0);
            let norm = t.norm(minimum, two)?;
            let (above, below) = (t.mul(minimum, radius)?, t.fn2(Fn2::Max, radius, norm)?);
            let map = t.div(above, below)?;
            told(p, map, "the point of the ball nearest to the minimum without it.".into())
        }
        spec::Domain::Interval { low, high } => {
            let below = p.ring.terms.fn2(Fn2::Min, minimum, high)?;
            let map = p.ring.terms.fn2(Fn2::Max, below, low)?;
            told(p, map, "beyond an end of the interval the minimum is that end.".into())
        }
    }
}

fn proximal(p: &mut Problem<'_>) -> Tried<Mapped> {
    p.no_norms()?;
    let soft = p.soft()?;
    let minimum = p.minimum_of(&soft.smooth)?;
    let minimum = p.written(&minimum)?;
    let threshold = p.over(&soft.threshold, &soft.smooth.curvature)?;
    let threshold = p.ring.write_factored(&threshold)?;
    let map = p.shrink_to(minimum, threshold, soft.centre)?;
    told(p, map, "sign(W') stands for any value between -1 and 1 where W' = 0: a soft threshold.".into())
}

fn linked(p: &mut Problem<'_>) -> Tried<Mapped> {
    p.no_norms()?;
    link::inside_interval(p)?;
    let (slope, drive) = (p.slope.clone(), p.var(p.drive));
    let inverse = p.invert(&slope, &drive)?;
    p.require_onto(&inverse)?;
    let map = p.written(&inverse.map)?;
    told(p, map, with_rows("the slope inverted", &inverse.rows))
}

fn entropy(p: &mut Problem<'_>) -> Tried<Mapped> {
    let (axis, mass, found) = p.logarithmic()?;
    let drive = p.var(p.drive);
    let logits = p.over(&drive.sub(&found.rest), &found.outer)?;
    let logits = p.without_slice_constants(&logits, axis)?;
    let logits = p.written(&logits)?;
    let map = p.simplex_map(axis, mass, logits)?;
    let slope = p.slope.clone();
    let stationarity = p.stationarity(&slope, Some("zeta"))?;
    let why =
        "what is the same for a whole slice is absorbed by the multiplier, which the sum of the slice fixes.";
    Ok((map, vec![stationarity, step("closed form", vec![(p.name(p.unknown), map)], why.into())]))
}

fn multiplier(p: &mut Problem<'_>) -> Tried<Mapped> {
    let simplex = p.simplex()?;
    let (slope, drive) = (p.slope.clone(), p.ring.terms.use_var(p.drive));
    let inverse = p.rising(&slope)?;
    let even = p.even(&simplex)?;
    debug_assert!(constant_along(p.ring.terms, simplex.mass, simplex.axis));
    let found = p.by_multiplier(&simplex, &slope, drive, even)?;
    let told = p.told_multiplier(&slope, &inverse, &found, p.unknown)?;
    Ok((found.weights, told))
}
