//! A stream in pieces: tokens up to the next chunk's border one by one, whole blocks together, and the rest one by
//! one again. Every piece goes on from the states that the one before handed on.

use super::{Supply, stage, written};
use crate::gradient::Runs;
use miras_base::Diagnostic;
use miras_host as host;
use miras_host::{Remembered, Tensor};
use std::sync::Arc;

/// What a layer is computed by, in whatever form a device has it.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    /// Token by token from where the streams begin in this run; makes the first states too.
    pub start: T,
    /// Whole blocks, from states.
    pub blocks: T,
    /// Tokens in a block.
    pub tokens: usize,
    /// Whether blocks begin at borders of chunks only.
    pub at_borders: bool,
    /// Token by token from states, for what is left after the blocks; None where nothing is ([`leaves_rest`]).
    pub rest: Option<T>,
}

/// Whether some stream is long enough for a block.
pub fn has_blocks(bound: &host::Bound, tokens: usize, at_borders: bool) -> bool {
    bound.streams.iter().any(|s| cut(s, tokens, at_borders).blocks > 0)
}

/// Whether some stream has tokens left after its blocks.
pub fn leaves_rest(bound: &host::Bound, tokens: usize, at_borders: bool) -> bool {
    bound.streams.iter().any(|s| {
        let cut = cut(s, tokens, at_borders);
        cut.head + cut.blocks < s.len()
    })
}

/// Tokens of the first two pieces.
struct Cut {
    head: usize,
    blocks: usize,
}

/// A stream without a whole block is one piece.
fn cut(stream: &host::Stream, tokens: usize, at_borders: bool) -> Cut {
    let tokens = tokens.max(1);
    let inside = if at_borders { (stream.position % tokens as u64) as usize } else { 0 };
    let head = ((tokens - inside) % tokens).min(stream.len());
    match (stream.len() - head) / tokens * tokens {
        0 => Cut { head: stream.len(), blocks: 0 },
        blocks => Cut { head, blocks },
    }
}

/// A problem cut into the tokens before whole blocks, the blocks, and the tokens after them. What the last two start
/// from is still to come.
pub(crate) fn cuts(bound: &host::Bound, tokens: usize, at_borders: bool) -> [host::Bound; 3] {
    let narrowed = |range: &dyn Fn(&Cut, &host::Stream) -> (usize, usize)| {
        let mut bound = bound.clone();
        for stream in &mut bound.streams {
            let (first, last) = range(&cut(stream, tokens, at_borders), stream);
            stream.position += (first - stream.first) as u64;
            (stream.first, stream.last) = (first, last);
        }
        bound
    };
    [
        narrowed(&|cut, s| (s.first, s.first + cut.head)),
        narrowed(&|cut, s| (s.first + cut.head, s.first + cut.head + cut.blocks)),
        narrowed(&|cut, s| (s.first + cut.head + cut.blocks, s.last)),
    ]
}

/// [`super::execute`] by pieces.
///
/// # Errors
/// As [`super::execute`].
pub fn execute_pieces<R: Runs>(
    programs: &Pieces<R>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    let [first, middle, last] = cuts(bound, programs.tokens, programs.at_borders);
    let supplies = stage(programs.start.program(), 1, rule, &first, |tasks| programs.start.run(tasks))?;
    let mut carried = written(&programs.start.program().arrays, supplies);
    super::chunk::settle(&mut carried, &first);

    let middle = continued(middle, rule, &carried)?;
    let unit = programs.tokens;
    let supplies = stage(programs.blocks.program(), unit, rule, &middle, |tasks| programs.blocks.run(tasks))?;
    let more = written(&programs.blocks.program().arrays, supplies);
    merge(&mut carried, more, &middle);
    anchors(&mut carried, &middle);

    if let Some(rest) = &programs.rest {
        let last = continued(last, rule, &carried)?;
        let supplies = stage(rest.program(), 1, rule, &last, |tasks| rest.run(tasks))?;
        let more = written(&rest.program().arrays, supplies);
        merge(&mut carried, more, &last);
        super::chunk::settle(&mut carried, &last);
    }
    super::finished(carried, rule, bound)
}

/// The problem with the states that a piece handed on.
fn continued(
    mut bound: host::Bound,
    rule: &host::Rule,
    carried: &[(&str, Vec<f32>)],
) -> Result<host::Bound, Diagnostic> {
    let rows = [bound.streams.len(), bound.heads];
    let state = |name: &str, shape: &[usize]| {
        let (_, values) = carried.iter().find(|(n, _)| *n == name)?;
        Some(Arc::new(Tensor::f32([&rows[..], shape].concat(), values.clone())))
    };
    let missing = |name: &str| Diagnostic::bug(format!("`{name}` was not handed on from piece to piece"));
    for (l, (weight, own)) in rule.layer.memory.weights.iter().zip(&mut bound.weights).enumerate() {
        let name = format!("state.memory.{}", weight.name);
        own.carried = Some(state(&name, &own.shape).ok_or_else(|| missing(&name))?);
        own.anchor = state(&format!("state.anchor.{}", weight.name), &own.shape);
        let part = |part: Remembered| {
            let shape = if part == Remembered::Scale { &[][..] } else { &own.shape };
            Some((part, state(&part.tensor(&weight.name), shape)?))
        };
        own.remembered = rule.remembered(l).into_iter().filter_map(part).collect();
    }
    if let miras_spec::Algo::Step(step) = &rule.layer.algo {
        for (s, own) in step.states.iter().zip(&mut bound.states) {
            let name = format!("state.algo.{}", s.name);
            own.carried = Some(state(&name, &own.shape).ok_or_else(|| missing(&name))?);
        }
    }
    bound.continued = true;
    Ok(bound)
}

/// Puts a piece's results in place of those before it: states whole, answers where its tokens lie.
fn merge<'a>(carried: &mut [(&'a str, Vec<f32>)], more: Vec<(&'a str, Vec<f32>)>, bound: &host::Bound) {
    for (name, values) in more {
        let Some((_, old)) = carried.iter_mut().find(|(n, _)| *n == name) else { continue };
        if name.starts_with("state.") {
            *old = values;
            continue;
        }
        let size = old.len() / (bound.batch * bound.heads * bound.tokens).max(1);
        for stream in &bound.streams {
            for head in 0..bound.heads {
                let start = (stream.row * bound.heads + head) * bound.tokens;
                let range = (start + stream.first) * size..(start + stream.last) * size;
                old[range.clone()].copy_from_slice(&values[range]);
            }
        }
    }
}

/// After blocks a stream is at a border: its chunk's start is what it carries now.
fn anchors(carried: &mut [(&str, Vec<f32>)], bound: &host::Bound) {
    let moved: Vec<usize> =
        bound.streams.iter().enumerate().filter(|(_, s)| !s.is_empty()).map(|(n, _)| n).collect();
    super::chunk::move_anchors(carried, &moved, bound);
}

/// The supplies that a program has written, by name.
pub(super) type Written<'a> = Vec<(&'a str, Vec<f32>)>;

/// Whether a supply holds results.
pub(super) fn results(supply: Supply<'_>) -> Option<Vec<f32>> {
    match supply {
        Supply::Answers(values) | Supply::States(values) => Some(values),
        Supply::PerToken(_)
        | Supply::PerHead(_)
        | Supply::PerTask(_)
        | Supply::PerStream(_)
        | Supply::Past(_)
        | Supply::Nothing => None,
    }
}
