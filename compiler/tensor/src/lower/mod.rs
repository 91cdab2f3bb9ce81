//! Plan -> graph.

mod chunk;
mod compound;
mod frozen;
mod history;
mod history_back;
mod operator;
mod root;
mod stream;
mod term;
mod token;

use crate::ir::Graph;
use miras_base::{Diagnostic, DimEnv};
use miras_schedule::{Plan, Schedule};
use miras_spec::Algo;

/// The numbers of a run that a graph is built for.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// dk and dv.
    pub dims: DimEnv,
}

/// Where the carried values come from at a stream's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// From initial weights (`memory.*`) and the states' initial terms.
    Weights,
    /// From what an earlier run handed on (`state.*`).
    State,
}

/// A lowering that cannot go on: a diagnostic.
#[derive(Debug)]
pub(crate) struct Failure(Diagnostic);

impl Failure {
    pub(crate) fn bug(message: impl Into<String>) -> Failure {
        Failure(Diagnostic::bug(message))
    }
}

/// Token inputs that the runtime makes itself, for chunks with frozen gradients: 1 where a token completes a
/// chunk, else 0.
pub const CLOSES: &str = "@closes";

/// The same: 1 where a token opens a chunk, else 0; also 1 at the first token of a run, unless the stream remembers
/// what a chunk starts from (`miras_rule::UpdateRule::remembers_start`).
pub const FRESH: &str = "@fresh";

/// Past inputs that the runtime makes itself: the keys kept from before the run, then those of the run.
pub const PAST_KEYS: &str = "@past.k";

/// The same of values.
pub const PAST_VALUES: &str = "@past.v";

pub use history_back::{Graphs as HistoryBack, INDEX};

/// Lowers a plan for the sizes of one run. Inputs and outputs have the names of docs/guide.md, and those of
/// [`CLOSES`] and [`FRESH`]. A stream that continues inside a chunk takes `state.anchor.*`; one that continues
/// at a boundary takes its `state.memory.*` for them, and thresholds of 0.
pub fn lower(plan: &Plan, sizes: &Sizes, start: Start) -> Result<Graph, Diagnostic> {
    if let (Algo::Weigh(weigh), Some(answer)) = (&plan.rule.layer.algo, &plan.rule.answer) {
        return history::lower(&plan.rule, weigh, answer, sizes).map_err(|f| f.0);
    }
    by_token(plan, sizes, start, &[])
}

/// The programs that go back through a memory that keeps its past.
///
/// # Errors
/// E0901 for a memory that keeps none.
pub fn history_back(plan: &Plan, sizes: &Sizes) -> Result<history_back::Graphs, Diagnostic> {
    match (&plan.rule.layer.algo, &plan.rule.answer) {
        (Algo::Weigh(weigh), Some(answer)) => {
            history_back::lower(&plan.rule, weigh, answer, sizes).map_err(|f| f.0)
        }
        _ => Err(Diagnostic::bug("a memory that keeps no past is gone back through as a stream")),
    }
}

/// Lowers a plan as one scan over the tokens of a stream, whatever its order in time: what reverse mode starts
/// from. Names are those of [`lower`]. `declared`: for each weight whether the data leaves it to its declared
/// start; where that depends on trained tensors it is computed, and the weight is no input.
///
/// # Errors
/// E0901 for a memory that keeps its past, and where the plan and the sizes do not belong together.
pub fn by_token(plan: &Plan, sizes: &Sizes, start: Start, declared: &[bool]) -> Result<Graph, Diagnostic> {
    let frozen = match plan.schedule {
        Schedule::Recurrent | Schedule::ChunkedExact(_) => false,
        Schedule::ChunkedFrozen(_) => true,
    };
    stream::lower(plan, sizes, start, frozen, declared).map_err(|f| f.0)
}

/// Lowers a plan by blocks of tokens, where it has such a form: its tokens are blocks of `plan.blocks.tokens`
/// tokens, and every stream continues from what was handed on, at a chunk's boundary where gradients are frozen.
/// None where tokens are computed one after the other.
pub fn lower_blocks(plan: &Plan, sizes: &Sizes) -> Result<Option<Graph>, Diagnostic> {
    chunk::lower(plan, sizes).map_err(|f| f.0)
}
