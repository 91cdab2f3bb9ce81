//! A bound problem as tasks: every array of the program is a part of a tensor that is there already, or of
//! the result that it becomes.

mod chunk;
mod past;
mod pieces;
mod supply;

use crate::task::{Buffer, Task};
pub(crate) use chunk::{at_boundary, settle};
use miras_base::Diagnostic;
use miras_host as host;
use miras_kernel::interpret::Scalars;
use miras_kernel::{Array, Program};
pub(crate) use supply::{Supply, room, supply};

pub(crate) use pieces::cuts;
pub use pieces::{Pieces, execute_pieces, has_blocks, leaves_rest};

/// Runs a program on a problem bound in float32: one task per stream and head, all given to `run` at once.
///
/// Arrays of the program are tensors by name (docs/guide.md). Gives `o` [B, H, T, dv], `state.*` [N, H, ...]
/// and the integers that belong to them.
///
/// # Errors
/// Those of `run`; E0402 where memory does not suffice; E0901 where the program and the problem do not belong
/// together.
pub fn execute(
    program: &Program,
    rule: &host::Rule,
    bound: &host::Bound,
    run: impl FnOnce(&mut [Task<'_>]) -> Result<(), Diagnostic>,
) -> Result<host::Bundle, Diagnostic> {
    let supplies = stage(program, 1, rule, bound, run)?;
    results(&program.arrays, supplies, rule, bound)
}

/// Runs a program one of whose tokens is `unit` of the problem's; gives its arrays with what was written.
fn stage<'a>(
    program: &Program,
    unit: usize,
    rule: &host::Rule,
    bound: &'a host::Bound,
    run: impl FnOnce(&mut [Task<'_>]) -> Result<(), Diagnostic>,
) -> Result<Vec<Supply<'a>>, Diagnostic> {
    if bound.width != host::Width::F32 {
        return Err(Diagnostic::bug("tasks are made of problems bound in float32 only"));
    }
    let places = places(bound, unit);
    let arrays = &program.arrays;
    let mut supplies = arrays.iter().map(|a| supply(a, unit, rule, bound)).collect::<Result<Vec<_>, _>>()?;
    let mut tasks: Vec<Task<'_>> =
        places.iter().map(|p| Task { scalars: p.scalars, buffers: Vec::new() }).collect();
    for (array, supply) in arrays.iter().zip(&mut supplies) {
        let buffers = buffers(array, supply, &places)?;
        tasks.iter_mut().zip(buffers).for_each(|(task, buffer)| task.buffers.push(buffer));
    }
    run(&mut tasks)?;
    drop(tasks);
    Ok(supplies)
}

/// The results among a program's arrays, by name.
fn written<'a>(arrays: &'a [Array], supplies: Vec<Supply<'_>>) -> pieces::Written<'a> {
    let named = arrays.iter().zip(supplies);
    named.filter_map(|(array, supply)| Some((array.name.as_str(), pieces::results(supply)?))).collect()
}

/// Where a task's stream and head lie.
pub(crate) struct Place {
    pub stream: usize,
    pub head: usize,
    /// Of its first token among B * H * T.
    pub token: usize,
    /// Tokens of the program, `unit` tokens of the stream each.
    pub tokens: usize,
    /// Tokens of the stream in one of the program's.
    pub unit: usize,
    pub scalars: Scalars,
}

/// One place for each stream and head, in the order of the rows of `state.*`.
pub(crate) fn places(bound: &host::Bound, unit: usize) -> Vec<Place> {
    let place = |(stream, s): (usize, &host::Stream), head: usize| Place {
        stream,
        head,
        token: (s.row * bound.heads + head) * bound.tokens + s.first,
        tokens: s.len() / unit,
        unit,
        scalars: Scalars {
            tokens: s.len() / unit,
            kept: past::kept(bound, stream),
            first: s.position,
            head: head as u64,
            heads: bound.heads as u64,
            layer: bound.layer.0,
            layers: bound.layer.1,
        },
    };
    bound.streams.iter().enumerate().flat_map(|s| (0..bound.heads).map(move |h| place(s, h))).collect()
}

/// The array's part for every task.
fn buffers<'a>(
    array: &Array,
    supply: &'a mut Supply<'_>,
    places: &[Place],
) -> Result<Vec<Buffer<'a>>, Diagnostic> {
    let size = array.part().ok_or_else(|| misfit(array, "is too large to count"))?;
    let of_tokens = |p: &Place| (p.token.checked_mul(size / p.unit), p.tokens.checked_mul(size));
    match supply {
        Supply::PerToken(values) => cut(array, values, places, |_, p| of_tokens(p)),
        Supply::PerHead(values) => cut(array, values, places, |_, p| (p.head.checked_mul(size), Some(size))),
        Supply::PerTask(values) => cut(array, values, places, |row, _| (row.checked_mul(size), Some(size))),
        Supply::PerStream(values) => places
            .iter()
            .map(|p| {
                values.get(p.stream).map(|v| Buffer::Given(v)).ok_or_else(|| misfit(array, "lacks a stream"))
            })
            .collect(),
        Supply::Past(values) => {
            let missing = || misfit(array, "lacks a task");
            (0..places.len()).map(|n| values.get(n).map(|v| Buffer::Given(v)).ok_or_else(missing)).collect()
        }
        Supply::Answers(values) => {
            let mut order: Vec<usize> = (0..places.len()).collect();
            // Tasks without tokens come before the one that begins where they lie.
            order.sort_by_key(|i| (places[*i].token, places[*i].tokens));
            split(array, values, order.iter().map(|i| (*i, of_tokens(&places[*i]))), places.len())
        }
        Supply::States(values) => {
            let rows = (0..places.len()).map(|row| (row, (row.checked_mul(size), Some(size))));
            split(array, values, rows, places.len())
        }
        Supply::Nothing => Ok(places.iter().map(|_| Buffer::Scratch).collect()),
    }
}

/// Start and length of a part; None where they cannot be counted.
type Range = (Option<usize>, Option<usize>);

fn cut<'a>(
    array: &Array,
    values: &'a [f32],
    places: &[Place],
    range: impl Fn(usize, &Place) -> Range,
) -> Result<Vec<Buffer<'a>>, Diagnostic> {
    let part = |(row, place): (usize, &Place)| {
        let (start, length) = range(row, place);
        let end = start?.checked_add(length?)?;
        values.get(start?..end).map(Buffer::Given)
    };
    let short = || misfit(array, "is longer than its tensor");
    places.iter().enumerate().map(|p| part(p).ok_or_else(short)).collect()
}

/// Cuts a result into parts that do not meet, given in the order of their starts.
fn split<'a>(
    array: &Array,
    values: &'a mut [f32],
    ranges: impl Iterator<Item = (usize, Range)>,
    count: usize,
) -> Result<Vec<Buffer<'a>>, Diagnostic> {
    let mut buffers: Vec<Buffer<'a>> = (0..count).map(|_| Buffer::Scratch).collect();
    let (mut rest, mut behind) = (values, 0_usize);
    for (task, (start, length)) in ranges {
        let taken = (|| {
            let skipped = start?.checked_sub(behind)?;
            let (_, from) = std::mem::take(&mut rest).split_at_mut_checked(skipped)?;
            let (own, after) = from.split_at_mut_checked(length?)?;
            rest = after;
            behind = behind.checked_add(skipped)?.checked_add(own.len())?;
            Some(own)
        })();
        let own = taken.ok_or_else(|| misfit(array, "has parts that meet or do not fit"))?;
        buffers[task] = Buffer::Written(own);
    }
    Ok(buffers)
}

/// The results by name.
fn results(
    arrays: &[Array],
    supplies: Vec<Supply<'_>>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    let mut carried: Vec<(&str, Vec<f32>)> = Vec::new();
    let mut caches = Vec::new();
    for (array, supply) in arrays.iter().zip(supplies) {
        match supply {
            Supply::Answers(values) | Supply::States(values) => carried.push((&array.name, values)),
            Supply::PerToken(_)
            | Supply::PerHead(_)
            | Supply::PerTask(_)
            | Supply::PerStream(_)
            | Supply::Nothing => {}
            Supply::Past(values) => {
                let (name, kept) = past::caches(array, &values, &rule.layer, bound)?;
                caches.push((name, kept));
            }
        }
    }
    chunk::settle(&mut carried, bound);
    carried.extend(caches);
    finished(carried, rule, bound)
}

/// What was written as the results that are expected.
fn finished(
    carried: Vec<(&str, Vec<f32>)>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    let mut outputs = host::Outputs::new(rule, bound);
    for (name, values) in carried {
        // A chunk's start is carried always, and handed on only where some stream stops inside a chunk.
        if outputs.expected().iter().any(|o| o.name == name) {
            outputs.set(name, host::Data::F32(values))?;
        }
    }
    outputs.finish()
}

/// A disagreement between the program and the problem.
pub(crate) fn misfit(array: &Array, what: &str) -> Diagnostic {
    Diagnostic::bug(format!("`{}` {what}", array.name))
}
