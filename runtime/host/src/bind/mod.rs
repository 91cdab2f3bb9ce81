//! Binding: the tensors of a file against what an update rule asks for.

mod bound;
mod cache;
mod cotangents;
mod desk;
mod extra;
mod params;
mod ranges;
pub(crate) mod room;
mod sizes;
mod starts;
mod state;
mod streams;
mod weights;

pub use bound::{
    BindOptions, Bound, BoundCache, BoundParam, BoundState, BoundWeight, Cotangents, Layout, Schedule, Stream,
};
pub(crate) use cache::kept;
pub(crate) use desk::Desk;
pub(crate) use extra::shown;
pub(crate) use sizes::Sizes;
pub(crate) use starts::Scene;
pub(crate) use state::frozen;

use crate::bundle::Bundle;
use miras_base::Diagnostic;
use miras_rule as rule;

/// Checks every tensor that the rule needs and hands on a problem that a backend can run as it stands.
///
/// All errors are found at once (codes E0501 to E0511, E0602 for what no memory holds; docs/guide.md).
/// [`Bound::notes`] says what else the user should know.
pub fn bind(
    rule: &rule::UpdateRule,
    bundle: &Bundle,
    options: &BindOptions,
) -> Result<Bound, Vec<Diagnostic>> {
    let mut desk = Desk::new(rule, bundle, options);
    let bound = problem(&mut desk);
    extra::extras(&mut desk);
    match bound {
        Some(bound) if desk.problems.is_empty() => Ok(bound),
        Some(_) | None => Err(found(desk.problems)),
    }
}

fn found(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    match problems.is_empty() {
        true => vec![Diagnostic::bug("binding gave up without saying why")],
        false => problems,
    }
}

/// The problem, as far as it can be put together; problems are noted at the desk.
fn problem(desk: &mut Desk<'_>) -> Option<Bound> {
    let Some(sizes) = sizes::infer(desk) else {
        name_inputs(desk);
        return None;
    };
    // Before anything is allocated: with T = 0 even B and H are as large as the file likes.
    let cuts = desk.bundle.get("segments").map(|t| t.len().saturating_sub(1));
    let fits = room::fits(desk, &sizes, cuts.unwrap_or(sizes.batch));
    let cut = if fits { streams::streams(desk, &sizes) } else { None };
    let Some((mut streams, packed)) = cut else {
        name_inputs(desk);
        return None;
    };
    let continued = state::continued(desk);
    let [query, key, value] = sizes::take(desk, &sizes);
    let params = params::params(desk, &sizes);
    let number = (desk.options.layer, desk.options.layers);
    // Weights and states are asked for although some parameter is wrong, but their starts may need it.
    let known = params.as_deref().unwrap_or(&[]);
    let scene =
        Scene { layer: &desk.rule.layer, sizes: &sizes, number, params: known, complete: params.is_some() };
    ranges::check(desk, &scene);
    let mut weights = weights::weights(desk, &scene, &streams, continued).unwrap_or_default();
    let frame = state::Frame { sizes: &sizes, packed, continued };
    state::carried(desk, &frame, &mut streams, &mut weights);
    let states = state::algo(desk, &frame, &scene, streams.len());
    let cache = state::history(desk, &frame, &mut streams);
    let mut bound = Bound {
        width: desk.options.width,
        schedule: desk.options.schedule,
        batch: sizes.batch,
        heads: sizes.heads,
        tokens: sizes.tokens,
        repeats: sizes.repeats,
        dims: sizes.dims.clone(),
        layer: number,
        streams,
        packed,
        query: query?,
        key: key?,
        value: value?,
        params: params?,
        weights,
        states: states?,
        cache: cache?,
        continued,
        cotangents: None,
        given: std::mem::take(&mut desk.given),
        notes: Vec::new(),
    };
    bound.cotangents = cotangents::cotangents(desk, &bound);
    bound.notes = std::mem::take(&mut desk.notes);
    Some(bound)
}

/// Where sizes are not known: at least the names, so that unknown ones can be told and missing ones named.
fn name_inputs(desk: &mut Desk<'_>) {
    params::missing_by_name(desk);
    let rule = desk.rule;
    desk.known.extend(["q", "k", "v", "segments", "state.position", "state.chunk"].map(String::from));
    for weight in &rule.layer.memory.weights {
        for prefix in ["memory", "state.memory", "state.anchor"] {
            desk.known.insert(format!("{prefix}.{}", weight.name));
        }
        desk.known.extend(miras_rule::Remembered::ALL.map(|part| part.tensor(&weight.name)));
    }
    if rule.layer.memory.history {
        desk.known.extend(["state.cache.k", "state.cache.v", "state.cache.segments"].map(String::from));
    }
    if let miras_spec::Algo::Step(step) = &rule.layer.algo {
        desk.known.extend(step.states.iter().map(|s| format!("state.algo.{}", s.name)));
    }
    if desk.options.grad {
        let cotangents = desk.bundle.names().filter(|n| n.starts_with("grad.")).map(String::from);
        desk.known.extend(cotangents);
    }
}
