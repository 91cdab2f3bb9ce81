//! Gradients of a bound problem: every stream forwards with checkpoints, then backwards stretch by stretch.

mod batch;
mod history;
mod pieces;
mod span;
mod tensors;

use crate::execute::{Pieces, cuts};
use crate::task::Task;
use batch::Batch;
pub use history::{HistoryPrograms, history_gradients};
use miras_base::Diagnostic;
use miras_host as host;
use miras_kernel::Program;
use span::Span;
use tensors::{Collected, arrays};

/// A compiled program that a device runs.
pub trait Runs {
    /// What it was compiled from.
    fn program(&self) -> &Program;

    /// Runs every task.
    ///
    /// # Errors
    /// Those of the device; E0901 where a task does not fit the program.
    fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic>;

    /// How many tasks it works on at a time: where tasks go forwards and back, no more go together, so that what one
    /// wrote is still near when it is read.
    fn at_a_time(&self) -> usize {
        usize::MAX
    }
}

/// The programs of a stream, compiled: those of [`miras_tensor::Backward`].
#[derive(Clone, Debug)]
pub struct Programs<R> {
    /// What comes before the first token.
    pub start: R,
    /// A stretch of tokens; of blocks also the carries before each.
    pub advance: R,
    /// The carries before each token of a stretch; None where going back does not read them, and of blocks.
    pub tape: Option<R>,
    /// A stretch backwards.
    pub back: R,
    /// Back through what comes before the first token.
    pub before: R,
    /// Which carry each state handed on is.
    pub states: Vec<(String, usize)>,
}

/// Runs a problem bound in float32 with cotangents: all results of a forward run and `d.*` of every given
/// floating input.
///
/// Streams and heads are independent until the end, where gradients of per-head tensors are summed over the streams
/// in their order. As many tasks go together as a fixed room for what they keep holds.
///
/// # Errors
/// Those of the device; E0402 where memory does not suffice; E0901 where the programs and the problem do not
/// belong together.
pub fn gradients<R: Runs>(
    programs: &Programs<R>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    through(&[Span::new(programs, 1, rule, bound, false)?], rule, bound)
}

/// [`gradients`] by pieces: those of the tokens after whole blocks, of the blocks, and of the tokens before them,
/// each from the cotangents of what it hands on.
///
/// # Errors
/// As [`gradients`].
pub fn gradients_in_pieces<R: Runs>(
    pieces: &Pieces<Programs<R>>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    let [first, blocks, last] = cuts(bound, pieces.tokens, pieces.at_borders);
    let mut spans = vec![
        Span::new(&pieces.start, 1, rule, &first, false)?,
        Span::new(&pieces.blocks, pieces.tokens, rule, &blocks, true)?,
    ];
    if let Some(rest) = &pieces.rest {
        spans.push(Span::new(rest, 1, rule, &last, true)?);
    }
    through(&spans, rule, bound)
}

fn through<R: Runs>(
    spans: &[Span<'_, R>],
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    if bound.width != host::Width::F32 {
        return Err(Diagnostic::bug("tasks are made of problems bound in float32 only"));
    }
    let unit = |span: &Span<'_, R>| span.places.first().map_or(1, |p| p.unit);
    let written = spans.iter().flat_map(|s| arrays(s.programs).map(move |a| (a, unit(s))));
    let mut collected = Collected::new(written, bound)?;
    let tasks = bound.streams.len() * bound.heads;
    let room = together(spans);
    for first in (0..tasks).step_by(room) {
        let mut batch = Batch::new(spans, first..(first + room).min(tasks));
        batch.forwards(&mut collected)?;
        batch.backwards(&mut collected)?;
    }
    collected.results(rule, bound)
}

/// Bytes that the tapes and checkpoints of tasks that go together may take.
const ROOM: usize = 256 << 20;

/// How many tasks go together; at least one.
fn together<R: Runs>(spans: &[Span<'_, R>]) -> usize {
    let numbers = spans.iter().map(Span::kept).fold(0, usize::saturating_add);
    let most = spans.iter().map(|s| s.programs.back.at_a_time()).min().unwrap_or(1);
    (ROOM / numbers.saturating_mul(4).max(1)).min(most).max(1)
}
