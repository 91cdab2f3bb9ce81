//! Caches of past keys and values.

use super::bound::{BoundCache, Stream};
use super::desk::{Ask, Axis, Desk, Found};
use super::sizes::Sizes;
use super::state::{Frame, ask};
use super::streams::{RULE, ranges};
use crate::tensor::{Data, Tensor};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use std::sync::Arc;

/// The cache to start from: the given one, or an empty one. None where a problem was noted.
///
/// Where the data gives a cache without `state.position`, its length is the position.
pub(super) fn cache(desk: &mut Desk<'_>, frame: &Frame<'_>, streams: &mut [Stream]) -> Option<BoundCache> {
    let (dk, dv) = (size(frame.sizes, "dk"), size(frame.sizes, "dv"));
    if !frame.continued {
        desk.known.extend(["state.cache.k", "state.cache.v"].map(String::from));
        let empty = |d| {
            let shape = vec![frame.sizes.batch, frame.sizes.heads, 0, d];
            Arc::new(Tensor { shape, data: Data::zeros(desk.options.width, 0) })
        };
        return Some(BoundCache { keys: empty(dk), values: empty(dv), ranges: vec![(0, 0); streams.len()] });
    }
    let length = length(desk, frame)?;
    let request = |name: &str, last: &str, d| {
        let axes = vec![
            Axis::new("B", frame.sizes.batch),
            Axis::new("H", frame.sizes.heads),
            Axis::new("L", length),
            Axis::new(last, d),
        ];
        ask(name.into(), axes)
    };
    let keys = desk.required(&request("state.cache.k", "dk", dk));
    let values = desk.required(&request("state.cache.v", "dv", dv));
    let ranges = pasts(desk, frame, streams.len(), length)?;
    let positioned = desk.bundle.has("state.position");
    for (stream, (first, last)) in streams.iter_mut().zip(&ranges) {
        let past = (last - first) as u64;
        if positioned {
            past_fits(desk, stream.position, past);
        } else {
            stream.position = past;
        }
    }
    Some(BoundCache { keys: keys?, values: values?, ranges })
}

fn size(sizes: &Sizes, name: &str) -> usize {
    sizes.dims.get(name).map_or(0, |n| *n as usize)
}

/// The third axis of `state.cache.k`, which fixes L.
fn length(desk: &mut Desk<'_>, frame: &Frame<'_>) -> Option<usize> {
    let axes = ["B", "H", "L", "dk"].map(|s| Axis::new(s, 0));
    let unknown = Ask {
        name: "state.cache.k".into(),
        axes: axes.to_vec(),
        kind: spec::Kind::Real,
        who: "a continued stream".into(),
        span: None,
    };
    let problem = match desk.raw(&unknown.name, "[B, H, L, dk]", &unknown.who, None) {
        Found::Bad => return None,
        Found::Good(tensor) => match tensor.shape.as_slice() {
            [_, _, length, _] => return Some(*length),
            other => {
                let message = format!(
                    "`state.cache.k` has shape {other:?}, but a continued stream needs [B, H, L, dk]"
                );
                Diagnostic::new(code::TENSOR_SHAPE, message)
            }
        },
        Found::Missing => {
            let message = "`state.cache.k` is missing: a continued stream needs it, of shape [B, H, L, dk]";
            Diagnostic::new(code::MISSING_TENSOR, message)
        }
    };
    desk.known.insert("state.cache.v".into());
    if frame.packed {
        desk.known.insert("state.cache.segments".into());
    }
    desk.problems.push(problem.with_help("give all `state.*` tensors of the earlier run, or none of them"));
    None
}

/// Each stream's range of the cache.
fn pasts(
    desk: &mut Desk<'_>,
    frame: &Frame<'_>,
    streams: usize,
    length: usize,
) -> Option<Vec<(usize, usize)>> {
    if !frame.packed {
        return Some(vec![(0, length); streams]);
    }
    let name = "state.cache.segments";
    let there = desk.bundle.has(name);
    let Some(cuts) = desk.integers(name, "N+1", Some(streams + 1), "a packed cache") else {
        if !there {
            let message =
                format!("`{name}` is missing: a packed cache needs it, int64 [N+1] = [{}]", streams + 1);
            let help = "it says where each stream's past ends; give all `state.*` tensors of the earlier run";
            desk.problems.push(Diagnostic::new(code::MISSING_TENSOR, message).with_help(help));
        }
        return None;
    };
    match ranges(cuts, length) {
        Ok(ranges) => Some(ranges),
        Err(why) => {
            let message = format!("`{name}` does not cut the cache's {length} tokens: {why}");
            desk.problems.push(Diagnostic::new(code::SEGMENTS, message).with_help(RULE));
            None
        }
    }
}

/// How many past tokens a stream's cache holds after `tokens` tokens.
pub(crate) fn kept(layer: &spec::Layer, tokens: u64) -> u64 {
    match &layer.algo {
        spec::Algo::Weigh(weigh) => match weigh.window {
            Some(window) => tokens.min(u64::from(window.saturating_sub(1))),
            None => tokens,
        },
        spec::Algo::Step(_) => tokens,
    }
}

fn past_fits(desk: &mut Desk<'_>, position: u64, past: u64) {
    let kept = kept(&desk.rule.layer, position);
    if kept <= past && past <= position {
        return;
    }
    let message = format!(
        "the cache holds {past} tokens, but after `state.position` = {position} tokens it should hold {kept}"
    );
    desk.problems.push(
        Diagnostic::new(code::STREAM_STATE, message)
            .with_help("give all `state.*` tensors of the earlier run, or leave `state.position` out"),
    );
}
