//! The past of a memory that keeps its keys and values: what came before the run, then the run's own.

use super::misfit;
use miras_base::Diagnostic;
use miras_host as host;
use miras_host::{Data, Tensor};
use miras_kernel::Array;
use miras_spec as spec;
use miras_tensor::lower::{PAST_KEYS, PAST_VALUES};

/// Tokens of a stream that the data gives from before the run.
pub(super) fn kept(bound: &host::Bound, stream: usize) -> usize {
    range(bound, stream).map_or(0, |(first, last)| last - first)
}

/// The array of the past, for each stream and head.
pub(super) fn past(array: &Array, bound: &host::Bound) -> Result<Vec<Vec<f32>>, Diagnostic> {
    let cache = bound.cache.as_ref();
    let (run, cached) = match array.name.as_str() {
        PAST_KEYS => (&bound.key, cache.map(|c| &c.keys)),
        PAST_VALUES => (&bound.value, cache.map(|c| &c.values)),
        _ => return Err(misfit(array, "is no past of this problem")),
    };
    let missing = || misfit(array, "is longer than its tensor");
    let part = |tensor: Option<&Tensor>, row: usize, head: usize, (first, last): (usize, usize)| {
        let Some(tensor) = tensor.filter(|_| first < last) else { return Some(Vec::new()) };
        let [_, heads, length, size] = *tensor.shape.as_slice() else { return None };
        let start = (row * heads + head) * length;
        floats(tensor)?.get((start + first) * size..(start + last) * size).map(<[f32]>::to_vec)
    };
    let mut all = Vec::new();
    for (n, stream) in bound.streams.iter().enumerate() {
        for head in 0..bound.heads {
            let before = range(bound, n).unwrap_or((0, 0));
            let mut values = part(cached.map(|t| &**t), stream.row, head, before).ok_or_else(missing)?;
            let own = (stream.first, stream.last);
            values.extend(part(Some(run), stream.row, head, own).ok_or_else(missing)?);
            all.push(values);
        }
    }
    Ok(all)
}

/// The name and the numbers of `state.cache.*` after the run: of each stream the last tokens of its past,
/// [B, H, L, d]; packed end to end.
pub(super) fn caches(
    array: &Array,
    pasts: &[Vec<f32>],
    layer: &spec::Layer,
    bound: &host::Bound,
) -> Result<(&'static str, Vec<f32>), Diagnostic> {
    let name = if array.name == PAST_KEYS { "state.cache.k" } else { "state.cache.v" };
    let short = || misfit(array, "is shorter than what is kept of it");
    let (size, lengths) =
        (array.part().ok_or_else(short)?, host::cache_lengths(layer, bound).ok_or_else(short)?);
    let tail = |stream: usize, head: usize| {
        let values = pasts.get(stream * bound.heads + head)?;
        values.get(values.len().checked_sub(lengths.get(stream)? * size)?..)
    };
    let (streams, heads) = (0..bound.streams.len(), 0..bound.heads);
    let order: Vec<(usize, usize)> = if bound.packed {
        heads.flat_map(|h| streams.clone().map(move |s| (s, h))).collect()
    } else {
        streams.flat_map(|s| heads.clone().map(move |h| (s, h))).collect()
    };
    let mut all = Vec::new();
    for (stream, head) in order {
        all.extend_from_slice(tail(stream, head).ok_or_else(short)?);
    }
    Ok((name, all))
}

fn range(bound: &host::Bound, stream: usize) -> Option<(usize, usize)> {
    bound.cache.as_ref()?.ranges.get(stream).copied()
}

fn floats(tensor: &Tensor) -> Option<&[f32]> {
    match &tensor.data {
        Data::F32(values) => Some(values),
        Data::F64(_) | Data::I64(_) => None,
    }
}
