//! Gradients of a bound problem: every stream forwards with checkpoints, then backwards stretch by stretch.

mod batch;
mod history;
mod pieces;
mod tensors;

use crate::task::Task;
use batch::Batch;
pub use history::{HistoryPrograms, history_gradients};
use miras_base::Diagnostic;
use miras_host as host;
use miras_kernel::Program;
use miras_schedule::stretch;
use tensors::{Collected, Tensors, arrays};

/// A compiled program that a device runs.
pub trait Runs {
    /// What it was compiled from.
    fn program(&self) -> &Program;

    /// Runs every task.
    ///
    /// # Errors
    /// Those of the device; E0901 where a task does not fit the program.
    fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic>;
}

/// The programs of a stream, compiled: those of [`miras_tensor::Backward`].
#[derive(Clone, Debug)]
pub struct Programs<R> {
    /// What comes before the first token.
    pub start: R,
    /// A stretch of tokens.
    pub advance: R,
    /// The carries before each token of a stretch; None where going back does not read them.
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
/// in their order. Stretches have the length that [`stretch`] gives for the longest stream; as many tasks go together as a fixed room for them holds.
///
/// # Errors
/// Those of the device; E0402 where memory does not suffice; E0901 where the programs and the problem do not
/// belong together.
pub fn gradients<R: Runs>(
    programs: &Programs<R>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    if bound.width != host::Width::F32 {
        return Err(Diagnostic::bug("tasks are made of problems bound in float32 only"));
    }
    let places = crate::execute::places(bound, 1);
    let tensors = Tensors::new(arrays(programs), rule, bound)?;
    let mut collected = Collected::new(arrays(programs), bound)?;
    let longest = places.iter().map(|p| p.tokens).max().unwrap_or(0);
    let stretch = stretch(longest);
    let room = together(programs, longest, stretch);
    for first in (0..places.len()).step_by(room) {
        let some = first..(first + room).min(places.len());
        let mut batch = Batch::new(programs, &tensors, &places, some, stretch);
        batch.forwards(&mut collected)?;
        batch.backwards(&mut collected)?;
    }
    collected.results(rule, bound)
}

/// Bytes that the tapes and checkpoints of tasks that go together may take.
const ROOM: usize = 256 << 20;

/// How many tasks go together; at least one.
fn together<R: Runs>(programs: &Programs<R>, longest: usize, stretch: usize) -> usize {
    let parts = |program: &Program, prefix: &str| -> usize {
        let arrays = program.arrays.iter().filter(|a| a.name.starts_with(prefix));
        arrays.filter_map(miras_kernel::Array::part).fold(0, usize::saturating_add)
    };
    let tape = programs.tape.as_ref().map_or(0, |t| parts(t.program(), miras_tensor::backward::name::TAPE));
    let carries = parts(programs.start.program(), miras_tensor::backward::name::CARRY);
    let numbers =
        tape.saturating_mul(stretch).saturating_add(carries.saturating_mul(longest.div_ceil(stretch)));
    (ROOM / numbers.saturating_mul(4).max(1)).max(1)
}
