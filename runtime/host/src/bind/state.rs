//! Continued streams: `state.*`.

use super::bound::{BoundCache, BoundState, BoundWeight, Stream};
use super::cache;
use super::desk::{Ask, Axis, Desk, Found};
use super::params::declared;
use super::sizes::Sizes;
use super::starts::Scene;
use crate::tensor::Tensor;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_rule as rule;
use miras_spec as spec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether the data gives a state of this layer to continue from.
pub(super) fn continued(desk: &Desk<'_>) -> bool {
    let layer = &desk.rule.layer;
    let weights = layer.memory.weights.iter().flat_map(|w| {
        let name = &w.name;
        let parts = rule::Remembered::ALL.map(|part| part.tensor(name));
        let anchors = parts.into_iter().chain([format!("state.anchor.{name}")]);
        anchors.filter(|_| frozen(desk.rule)).chain([format!("state.memory.{name}")])
    });
    let states = match &layer.algo {
        spec::Algo::Step(step) => step.states.as_slice(),
        spec::Algo::Weigh(_) => &[],
    };
    let states = states.iter().map(|s| format!("state.algo.{}", s.name));
    let cache =
        ["state.cache.k", "state.cache.v"].into_iter().filter(|_| layer.memory.history).map(String::from);
    weights.chain(states).chain(cache).any(|name| desk.bundle.has(&name))
}

/// The axes [N, H, ...] of a state tensor, N being B where nothing is packed.
pub(super) fn axes(sizes: &Sizes, streams: usize, packed: bool, own: &[Axis]) -> Vec<Axis> {
    let mut axes = vec![Axis::new(if packed { "N" } else { "B" }, streams), Axis::new("H", sizes.heads)];
    axes.extend_from_slice(own);
    axes
}

/// Asks for one state tensor of shape [N, H, ...].
pub(super) fn ask(name: String, axes: Vec<Axis>) -> Ask {
    Ask { name, axes, kind: spec::Kind::Real, who: "a continued stream".into(), span: None }
}

/// What a continued stream needs to know of the whole.
pub(super) struct Frame<'a> {
    pub sizes: &'a Sizes,
    pub packed: bool,
    pub continued: bool,
}

/// Positions, carried weights and anchors; fills `streams` and `weights`.
pub(super) fn carried(
    desk: &mut Desk<'_>,
    frame: &Frame<'_>,
    streams: &mut [Stream],
    weights: &mut [BoundWeight],
) {
    let rule = desk.rule;
    let given = position(desk, frame, streams);
    let inside = frozen(rule) && chunks_fit(desk, streams, given);
    for (index, declared) in rule.layer.memory.weights.iter().enumerate() {
        // A shape that has no sizes was noted where the initial weights were asked for.
        let Some(own) = frame.sizes.axes(&rule.layer.terms.var(declared.var).shape) else { continue };
        let axes = axes(frame.sizes, streams.len(), frame.packed, &own);
        let name = format!("state.memory.{}", declared.name);
        desk.known.insert(name.clone());
        let carried = if frame.continued { desk.required(&ask(name, axes.clone())) } else { None };
        let (mut anchor, mut remembered) = (None, BTreeMap::new());
        if frozen(rule) {
            anchor = anchored(desk, ask(format!("state.anchor.{}", declared.name), axes), inside, streams);
            for part in rule.remembered(index) {
                let shape = part.shape(&rule.layer.terms.var(declared.var).shape);
                let Some(own) = frame.sizes.axes(&shape) else { continue };
                let axes = self::axes(frame.sizes, streams.len(), frame.packed, &own);
                let given = anchored(desk, ask(part.tensor(&declared.name), axes), inside, streams);
                remembered.extend(given.map(|tensor| (part, tensor)));
            }
        }
        // There is no such weight where its initial value was wrong.
        if let Some(weight) = weights.get_mut(index) {
            (weight.carried, weight.anchor, weight.remembered) = (carried, anchor, remembered);
        }
    }
}

/// Whether the gradients of a chunk are taken at its start (docs/mathematics.md), so that a stream that
/// stops inside a chunk must remember that start.
pub(crate) fn frozen(rule: &rule::UpdateRule) -> bool {
    match rule.class.kind {
        rule::ClassKind::DualLinear | rule::ClassKind::General => true,
        rule::ClassKind::Linear
        | rule::ClassKind::Delta
        | rule::ClassKind::NonParametric
        | rule::ClassKind::TokenByToken => false,
    }
}

/// An anchor: needed inside a chunk, checked but not used at a boundary.
fn anchored(desk: &mut Desk<'_>, ask: Ask, inside: bool, streams: &[Stream]) -> Option<Arc<Tensor>> {
    match (desk.optional(&ask), inside) {
        (Found::Good(tensor), true) => Some(tensor),
        (Found::Missing, true) => {
            let chunk = desk.options.schedule.chunk();
            let at =
                streams.iter().map(|s| s.position).find(|p| !p.is_multiple_of(u64::from(chunk))).unwrap_or(0);
            let message = format!(
                "`{}` is missing: `state.position` says that {at} tokens are behind, which is inside a chunk of {chunk}",
                ask.name
            );
            desk.problems.push(
                Diagnostic::new(code::STREAM_STATE, message)
                    .with_help("give all `state.*` tensors of the earlier run, or leave `state.position` out to begin a new chunk")
                    .with_note(format!("its shape is {}", ask.shape())),
            );
            None
        }
        (Found::Good(_) | Found::Missing, false) | (Found::Bad, _) => None,
    }
}

/// Reads `state.position` into the streams, and gives `state.chunk`.
fn position(desk: &mut Desk<'_>, frame: &Frame<'_>, streams: &mut [Stream]) -> Option<u64> {
    let symbol = if frame.packed { "N" } else { "B" };
    let why = "a continued stream";
    let chunk = desk.integers("state.chunk", "1", Some(1), why).and_then(|c| c.first().copied());
    let positions = desk.integers("state.position", symbol, Some(streams.len()), why);
    if let Some(c) = chunk.filter(|c| *c < 1) {
        let problem = Diagnostic::new(code::STREAM_STATE, format!("`state.chunk` is {c}"));
        desk.problems
            .push(problem.with_help("a chunk holds at least 1 token; give it as the earlier run wrote it"));
    }
    let positions = positions?;
    if !frame.continued {
        let message = "`state.position` is given without the state that it belongs to";
        desk.problems.push(
            Diagnostic::new(code::STREAM_STATE, message)
                .with_help("give all `state.*` tensors of the earlier run, or none of them"),
        );
        return None;
    }
    for (index, (stream, position)) in streams.iter_mut().zip(positions).enumerate() {
        match u64::try_from(*position) {
            Ok(p) if i64::try_from(stream.len()).is_ok_and(|n| position.checked_add(n).is_some()) => {
                stream.position = p
            }
            Ok(_) | Err(_) => {
                let message =
                    format!("`state.position` holds {position} at [{index}], which is no number of tokens");
                let help = "give it as the earlier run wrote it: tokens since the stream's start";
                desk.problems.push(Diagnostic::new(code::STREAM_STATE, message).with_help(help));
            }
        }
    }
    chunk.and_then(|c| u64::try_from(c).ok()).filter(|c| *c > 0)
}

/// Whether some stream is inside a chunk; a problem is noted where the earlier run's chunks are others.
fn chunks_fit(desk: &mut Desk<'_>, streams: &[Stream], given: Option<u64>) -> bool {
    let chunk = u64::from(desk.options.schedule.chunk());
    let earlier = given.unwrap_or(chunk);
    let inside = |s: &&Stream| !(s.position.is_multiple_of(chunk) && s.position.is_multiple_of(earlier));
    let Some(stream) = streams.iter().find(inside) else { return false };
    if earlier == chunk {
        return true;
    }
    let name = |chunk: u64| match chunk {
        1 => "the recurrent schedule (chunks of 1 token)".to_string(),
        c => format!("chunks of {c} tokens"),
    };
    let message = format!(
        "the state was left by {} after {} tokens and cannot go on with {}: that is inside a chunk",
        name(earlier),
        stream.position,
        name(chunk)
    );
    desk.problems.push(
        Diagnostic::new(code::STREAM_STATE, message)
            .with_help(format!(
                "go on with {}, stop the earlier run at a multiple of both, or leave `state.position` and `state.chunk` out to begin a new chunk here",
                if earlier == 1 { "`--schedule recurrent`".to_string() } else { format!("`--schedule chunked --chunk {earlier}`") }
            ))
            .with_note("gradients are frozen at a chunk's start in this layer's class, so another chunking is another stream"),
    );
    false
}

/// The states of the algorithm.
pub(super) fn algo(
    desk: &mut Desk<'_>,
    frame: &Frame<'_>,
    scene: &Scene<'_>,
    streams: usize,
) -> Option<Vec<BoundState>> {
    let rule = desk.rule;
    let step = match &rule.layer.algo {
        spec::Algo::Step(step) => step,
        spec::Algo::Weigh(_) => return Some(Vec::new()),
    };
    let mut bound = Vec::new();
    for state in &step.states {
        let name = format!("state.algo.{}", state.name);
        desk.known.insert(name.clone());
        let shape = &rule.layer.terms.var(state.old).shape;
        let Some(own) = frame.sizes.axes_of(desk, &name, shape, state.span) else { continue };
        let one: Vec<usize> = own.iter().map(|a| a.size).collect();
        let ask = ask(name, axes(frame.sizes, streams, frame.packed, &own));
        let (initial, carried) = match frame.continued {
            true => (None, desk.required(&ask)),
            false if !scene.complete => continue,
            false => (declared(desk, &ask, scene.per_head(state.start, &one, desk.options.width)), None),
        };
        if initial.is_some() || carried.is_some() {
            bound.push(BoundState { shape: one, initial, carried });
        }
    }
    (bound.len() == step.states.len()).then_some(bound)
}

/// Past keys and values, for a memory that keeps them. Outer None: a problem was noted.
pub(super) fn history(
    desk: &mut Desk<'_>,
    frame: &Frame<'_>,
    streams: &mut [Stream],
) -> Option<Option<BoundCache>> {
    if !desk.rule.layer.memory.history {
        return Some(None);
    }
    cache::cache(desk, frame, streams).map(Some)
}
