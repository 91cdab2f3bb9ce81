//! Plan -> graph.

mod recurrent;
mod root;
mod term;

use crate::ir::Graph;
use miras_base::{Diagnostic, DimEnv};
use miras_schedule::{Plan, Schedule};

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

    pub(crate) fn limit(message: impl Into<String>, help: &str) -> Failure {
        Failure(Diagnostic::new(miras_base::diagnostic::code::UNSUPPORTED, message).with_help(help))
    }
}

/// Lowers a plan for the sizes of one run. Inputs and outputs have the names of SPEC section 6.
pub fn lower(plan: &Plan, sizes: &Sizes, start: Start) -> Result<Graph, Diagnostic> {
    match plan.schedule {
        Schedule::Recurrent => recurrent::lower(plan, sizes, start).map_err(|f| f.0),
    }
}
