//! Quadratic terms, with or without absolute values, on a ball or an interval: the minimum without the domain, then the
//! nearest point of it.

use super::Solved;
use super::problem::Problem;
use super::refuse::{Tried, refuse};
use super::tell::step;
use crate::rule::{InitialDomain, Inside, Retained};
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{Mismatch, TermId, Terms};

/// W' = Z * radius / max(radius, norm(Z, 2)), 0 where that is 0/0.
pub(super) fn ball(p: &mut Problem<'_>) -> Tried<Solved> {
    let spec::Domain::Ball { radius } = p.domain else { return refuse("the domain is no ball") };
    let (found, _) = p.soft_or_smooth()?;
    let curvature = p.ring.write(&found.curvature)?;
    if p.ring.terms.shape(curvature).rank() > 0 {
        return refuse("the curvature varies between entries: the nearest point of the ball is another one");
    }
    let why = "the curvature is the same in all directions, so the minimum in the ball is the point of the ball \
               nearest to Z; the norm is taken per weight tensor.";
    finished(p, InitialDomain::Any, why, move |t, z| {
        let two = t.num(2.0);
        let norm = t.norm(z, two)?;
        let (above, below) = (t.mul(z, radius)?, t.fn2(Fn2::Max, radius, norm)?);
        t.div(above, below)
    })
}

/// W' = max(min(Z, high), low).
pub(super) fn interval(p: &mut Problem<'_>) -> Tried<Solved> {
    let spec::Domain::Interval { low, high } = p.domain else { return refuse("the domain is no interval") };
    let initial = match (p.ring.terms.as_num(low), p.ring.terms.as_num(high)) {
        (Some(low), Some(high)) => InitialDomain::Open(low, high),
        _ => InitialDomain::Any,
    };
    let why = "entries do not interact, and the objective of each is convex: beyond an end the minimum is that end.";
    finished(p, initial, why, move |t, z| {
        let below = t.fn2(Fn2::Min, z, high)?;
        t.fn2(Fn2::Max, below, low)
    })
}

fn finished(
    p: &mut Problem<'_>,
    initial: InitialDomain,
    why: &str,
    nearest: impl Fn(&mut Terms, TermId) -> Result<TermId, Mismatch>,
) -> Tried<Solved> {
    p.no_norms()?;
    let (found, threshold) = p.soft_or_smooth()?;
    let minimum = p.minimum_of(&found)?;
    let next = p.step_of(p.old, &minimum)?;
    let (free, linear, told) = match threshold {
        None => (next.advance, next.linear, "the solution of that equation."),
        Some(threshold) => {
            let threshold = p.over(&threshold, &found.curvature)?;
            let threshold = p.ring.write_factored(&threshold)?;
            let why = "the solution of that equation: entries within the threshold become 0, where sign(W') stands for \
                       any value between -1 and 1.";
            (p.shrink(next.advance, threshold)?, None, why)
        }
    };
    let whole = nearest(p.ring.terms, free)?;
    let retained = p.at_rest(whole, None)?;
    let z = p.intermediate("Z");
    let (slope, projected) = (p.slope.clone(), nearest(p.ring.terms, z)?);
    let told = vec![
        p.stationarity(&slope, None)?,
        step("without the domain", vec![("Z".into(), free)], told.into()),
        step("nearest point of the domain", vec![(p.name(p.unknown), projected)], why.into()),
    ];
    // Linear inside a chunk, and projected at its end; else every token is a step with its projection.
    let carried = p.ring.terms.use_var(p.old);
    let (advance, finish, inside) = match linear {
        Some(_) => (next.advance, Some(nearest(p.ring.terms, carried)?), Inside::ProjectAtEnd),
        None => (whole, None, Inside::TokenByToken),
    };
    let solved = Retained {
        carried: p.old,
        update: p.update,
        start: None,
        initial,
        advance,
        linear,
        value: None,
        finish,
        retained: Some(retained),
        inside,
    };
    Ok((solved, told))
}
