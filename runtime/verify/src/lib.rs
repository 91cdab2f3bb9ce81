//! # miras-verify: a layer's promises, checked with figures
//!
//! **Purpose.** What `miras verify` does: the inner gradient against differences of the loss, the closed form of
//! retention or of a history's answer against its own objective, every schedule against the recurrence, every
//! backend against the reference, outer gradients against differences, and streams cut, packed and repeated against
//! the whole.
//!
//! **Takes** a rule, data for it, and backends behind [`Runner`]. **Gives** a [`Report`]: figures, the bounds
//! that were promised, and whether they hold. **May touch** base, term, spec, rule, host, reference.
//! **Must not** know a device, nor how a schedule is lowered.
//!
//! **Invariants.** A figure that is not a number breaks its promise. How far an approximate schedule is from
//! the recurrence is reported and never judged. What could not be checked is a row that says why.

mod backends;
mod closed;
pub mod cut;
mod history;
mod inner;
mod measure;
mod outer;
mod point;
mod report;
mod schedules;
mod streams;

pub use measure::{calm, error};
pub use report::{Report, Row, Section, Verdict};
pub use schedules::{ChunkError, chunk_lengths, curve};

use miras_base::Diagnostic;
use miras_host as host;
use miras_reference as reference;
use miras_rule as rule;

/// Diagnostics of a run that did not come about.
pub type Failure = Vec<Diagnostic>;

/// A way to run the layer that is verified.
pub trait Runner {
    /// Its name for the report, with the adapter where there is one.
    fn name(&self) -> String;

    /// The results of a run, with `d.*` where gradients are asked for and `grad.o` is among the data.
    ///
    /// # Errors
    /// The diagnostics of binding, compiling and running.
    fn run(
        &mut self,
        data: &host::Bundle,
        schedule: host::Schedule,
        grad: bool,
    ) -> Result<host::Bundle, Failure>;
}

/// The reference as a [`Runner`].
pub struct Reference<'a> {
    /// What it runs.
    pub rule: &'a rule::UpdateRule,
    /// How its operations are rounded.
    pub arithmetic: reference::Arithmetic,
}

impl<'a> Reference<'a> {
    /// The float64 reference.
    pub fn new(rule: &'a rule::UpdateRule) -> Reference<'a> {
        Reference { rule, arithmetic: reference::Arithmetic::Float64 }
    }
}

impl Runner for Reference<'_> {
    fn name(&self) -> String {
        "reference".into()
    }

    fn run(
        &mut self,
        data: &host::Bundle,
        schedule: host::Schedule,
        grad: bool,
    ) -> Result<host::Bundle, Failure> {
        let options = host::BindOptions { schedule, grad, allow_extra: true, ..Default::default() };
        reference::run_in(self.rule, &host::bind(self.rule, data, &options)?, self.arithmetic)
    }
}

/// A layer and the data on which it is verified.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The rule.
    pub rule: &'a rule::UpdateRule,
    /// Inputs of the layer, without `grad.*`, beginning streams (no `state.*`).
    pub data: &'a host::Bundle,
    /// Chunk length of the chunked schedule.
    pub chunk: u32,
    /// Whether its chunks give the recurrence's own numbers (docs/mathematics.md).
    pub exact: bool,
}

/// Checks everything. Backends that are not there are handed over as `absent`, by name and reason.
///
/// # Errors
/// The diagnostics of a data set that cannot be bound to the rule.
pub fn verify(
    case: &Case<'_>,
    backends: &mut [Box<dyn Runner + '_>],
    absent: &[(String, String)],
) -> Result<Report, Failure> {
    let bound = host::bind(case.rule, case.data, &host::BindOptions::default())?;
    let sizes = [bound.batch, bound.heads, bound.tokens];
    let curve = schedules::curve(case, bound.tokens)?;
    let mut sections = vec![
        inner::section(case, &bound),
        closed::section(case, &bound),
        outer::section(case)?,
        schedules::section(case, &curve),
        backends::section(case, backends, absent)?,
    ];
    sections.push(streams::section(case, sizes, &mut Reference::new(case.rule), true));
    for backend in backends {
        sections.push(streams::section(case, sizes, backend.as_mut(), false));
    }
    Ok(Report { layer: case.rule.layer.name.clone(), sizes, dims: dims(&bound), sections, curve })
}

fn dims(bound: &host::Bound) -> Vec<(String, u64)> {
    bound.dims.iter().map(|(name, n)| (name.to_string(), *n)).collect()
}
