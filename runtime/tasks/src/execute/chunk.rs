//! What chunks with frozen gradients need besides the layer's tensors: where they open and close, and what
//! each stream remembers of its chunk's start.

use miras_base::Diagnostic;
use miras_host as host;
use miras_host::{Data, Remembered};
use miras_tensor::lower::{CLOSES, FRESH};
use std::borrow::Cow;
use std::ops::Range;

/// The tokens at which a chunk closes, or what holds inside one is made anew, if the name is that of such marks: for
/// each stream one number for each token, 1 or 0.
pub(super) fn marks(name: &str, rule: &host::Rule, bound: &host::Bound) -> Option<Vec<Vec<f32>>> {
    let chunk = u64::from(bound.schedule.chunk());
    let marked = |test: &dyn Fn(u64, u64) -> bool| {
        let stream = |s: &host::Stream| {
            let mark = |i: u64| if test(s.position + i, i) { 1.0 } else { 0.0 };
            (0..s.len() as u64).map(mark).collect()
        };
        bound.streams.iter().map(stream).collect()
    };
    match name {
        CLOSES => Some(marked(&|position, _| (position + 1) % chunk == 0)),
        FRESH => {
            let first = !rule.remembers_start();
            Some(marked(&|position, i| (first && i == 0) || position % chunk == 0))
        }
        _ => None,
    }
}

/// The start of the open chunk to continue from, [N, H, ...], if the name is that of such a tensor. A stream at
/// a boundary has its carried value there, and 0 for what else is remembered.
pub(super) fn anchor<'a>(
    name: &str,
    rule: &host::Rule,
    bound: &'a host::Bound,
) -> Option<Result<Cow<'a, [f32]>, Diagnostic>> {
    name.strip_prefix("state.anchor.")?;
    let weights = rule.layer.memory.weights.iter().zip(&bound.weights);
    let found = weights.enumerate().find_map(|(l, (declared, weight))| {
        if name == format!("state.anchor.{}", declared.name) {
            return Some(start(weight, bound));
        }
        let part = rule.remembered(l).into_iter().find(|part| part.tensor(&declared.name) == name)?;
        let shape = if part == Remembered::Scale { &[][..] } else { &weight.shape };
        Some(remembered(weight.remembered.get(&part).map(|t| &**t), shape, bound))
    });
    Some(found.flatten().ok_or_else(|| Diagnostic::bug(format!("`{name}` is no tensor of this problem"))))
}

/// theta_0: as given in rows inside a chunk, what is carried in rows at a boundary.
fn start<'a>(weight: &'a host::BoundWeight, bound: &host::Bound) -> Option<Cow<'a, [f32]>> {
    let carried = floats(weight.carried.as_deref()?)?;
    let Some(given) = weight.anchor.as_deref() else { return Some(Cow::Borrowed(carried)) };
    let mut values = Cow::Borrowed(floats(given)?);
    for range in at_boundary(values.len(), bound, false) {
        values.to_mut()[range.clone()].copy_from_slice(&carried[range]);
    }
    Some(values)
}

/// What else is remembered: as given in rows inside a chunk, 0 in rows at a boundary.
fn remembered<'a>(
    given: Option<&'a host::Tensor>,
    shape: &[usize],
    bound: &host::Bound,
) -> Option<Cow<'a, [f32]>> {
    let Some(given) = given else {
        let size = shape.iter().product::<usize>();
        return Some(Cow::Owned(vec![0.0; bound.streams.len() * bound.heads * size]));
    };
    let mut values = Cow::Borrowed(floats(given)?);
    for range in at_boundary(values.len(), bound, false) {
        values.to_mut()[range].fill(0.0);
    }
    Some(values)
}

/// Gives streams that stop at a boundary the anchor that docs/mathematics.md wants there.
pub(crate) fn settle(results: &mut [(&str, Vec<f32>)], bound: &host::Bound) {
    let ended = |s: &host::Stream| !inside(s.position + s.len() as u64, bound);
    let rows: Vec<usize> =
        bound.streams.iter().enumerate().filter(|(_, s)| ended(s)).map(|(n, _)| n).collect();
    move_anchors(results, &rows, bound);
}

/// Sets the chunk's start of these streams to what they carry, and what else they remember to 0.
pub(super) fn move_anchors(results: &mut [(&str, Vec<f32>)], rows: &[usize], bound: &host::Bound) {
    for at in 0..results.len() {
        let Some(name) = results[at].0.strip_prefix("state.anchor.") else { continue };
        let carried = format!("state.memory.{name}");
        let carried = results.iter().position(|(n, _)| *n == carried);
        let row = row(results[at].1.len(), bound);
        for range in rows.iter().map(|n| n * row..(n + 1) * row) {
            match carried {
                Some(from) => {
                    let values = results[from].1[range.clone()].to_vec();
                    results[at].1[range].copy_from_slice(&values);
                }
                None => results[at].1[range].fill(0.0),
            }
        }
    }
}

/// Where the streams that begin at a boundary (or all) lie in a tensor [N, H, ...] of so many numbers.
pub(crate) fn at_boundary(numbers: usize, bound: &host::Bound, all: bool) -> Vec<Range<usize>> {
    let row = row(numbers, bound);
    let meant = |s: &host::Stream| all || !inside(s.position, bound);
    let rows = bound.streams.iter().enumerate().filter(|(_, s)| meant(s));
    rows.map(|(n, _)| n * row..(n + 1) * row).collect()
}

/// Whether a stream with so many tokens behind it is inside a chunk.
fn inside(position: u64, bound: &host::Bound) -> bool {
    !position.is_multiple_of(u64::from(bound.schedule.chunk()))
}

/// Numbers of one stream in [N, H, ...].
fn row(all: usize, bound: &host::Bound) -> usize {
    all / bound.streams.len().max(1)
}

fn floats(tensor: &host::Tensor) -> Option<&[f32]> {
    match &tensor.data {
        Data::F32(values) => Some(values),
        Data::F64(_) | Data::I64(_) => None,
    }
}
