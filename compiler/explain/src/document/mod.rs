//! A plan as a document: what every form of an explanation shows, put together once.

mod backward;
mod carried;
mod chunk;
mod chunk_exact;
mod chunk_frozen;
mod chunk_history;
mod cost;
mod data;
mod forms;
mod frozen_reads;
mod low_rank;
mod product;
mod steps;

pub use cost::Counted;
pub(crate) use cost::{Count, Memory};
pub(crate) use data::Needed;
#[cfg(test)]
pub(crate) use steps::scope;

use crate::chart::Chart;
use crate::math::Formula;
use miras_rule::ClassKind;
use miras_schedule::{Plan, Schedule};

/// What a plan does not hold about its layer: how it was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The layer's source, well set.
    pub source: String,
    /// The comment that stands above it.
    pub about: Vec<String>,
}

/// A layer told to people.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) about: String,
    pub(crate) choices: Vec<Choice>,
    pub(crate) needed: Vec<Needed>,
    pub(crate) sizes: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) closed: Vec<Formula>,
    pub(crate) class: Class,
    pub(crate) schedule: Timed,
    pub(crate) chunk: Part,
    pub(crate) backward: Backward,
    pub(crate) state: Vec<Carried>,
    pub(crate) cost: Vec<Count>,
    /// What the counts are of, and how the backward ones come about.
    pub(crate) cost_remark: String,
    /// What runs in place of the recurrence, where that is another program.
    pub(crate) counted: Option<Counted>,
    pub(crate) memory: Memory,
    pub(crate) forms: Vec<Step>,
    pub(crate) notes: Vec<Note>,
    pub(crate) measured: Option<Measured>,
}

/// One of the four choices.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub clause: &'static str,
    pub definition: String,
    pub text: String,
    /// With all its arguments.
    pub spelled_out: String,
    /// What must be equal for two choices to be the same: arguments, and the definition's text.
    pub meant: (Vec<(String, String)>, String),
    pub about: String,
    /// What it puts into the rule.
    pub contributes: Vec<Formula>,
}

/// Formulas with a title and why they hold.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub title: String,
    /// The choice it comes from; empty where it comes from several.
    pub choice: &'static str,
    pub formulas: Vec<Formula>,
    pub reason: String,
}

/// Steps with something said before them.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub summary: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub kind: &'static str,
    pub title: String,
    pub reason: String,
}

/// The order in time.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub kind: &'static str,
    pub title: String,
    pub chunk: Option<u32>,
    /// None: there are no chunks.
    pub exact: Option<bool>,
    pub certificate: String,
}

/// The structure of the outer gradients.
#[derive(Clone, Debug)]
pub(crate) struct Backward {
    pub part: Part,
    /// What every input's gradient comes through.
    pub reaches: Vec<Reach>,
    /// What is stopped, or that nothing is.
    pub stopped: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub tensor: String,
    pub through: Vec<&'static str>,
    /// Over what it is summed; empty for one value per token.
    pub summed: &'static str,
}

/// A tensor that a stream carries.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub tensor: String,
    pub shape: String,
    pub entries: String,
    pub what: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// The code of a warning; None for a note.
    pub code: Option<String>,
    pub text: String,
    pub help: Option<String>,
}

/// How far chunks are from the recurrence, as measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// On what and how it was measured.
    pub on: String,
    /// Chunk lengths with the largest error of `o`, relative to its largest entry.
    pub errors: Vec<(u32, f64)>,
}

impl Measured {
    /// The errors over the chunk length as a chart.
    pub fn chart(&self) -> Chart {
        let points = self.errors.iter().map(|(c, e)| (f64::from(*c), *e)).collect();
        Chart {
            title: "Error of chunks against the recurrence".into(),
            across: "tokens in a chunk".into(),
            up: "relative error of o".into(),
            series: vec![crate::chart::Series { name: String::new(), points }],
        }
    }
}

impl Document {
    /// The document of a plan.
    pub fn new(plan: &Plan, written: &Written) -> Document {
        let rule = &plan.rule;
        let steps = steps::derivation(rule);
        Document {
            name: rule.layer.name.clone(),
            source: written.source.clone(),
            about: written.about.join(" "),
            choices: steps::choices(rule, &steps),
            needed: data::needed(plan),
            sizes: data::sizes(plan),
            closed: steps::closed(&steps),
            steps,
            class: class(plan),
            schedule: timed(plan),
            chunk: chunk::chunk(plan),
            backward: backward::backward(plan),
            state: carried::carried(plan),
            cost: cost::counts(plan),
            cost_remark: cost::remark(plan),
            counted: None,
            memory: cost::memory(plan),
            forms: forms::forms(rule),
            notes: notes(plan),
            measured: None,
        }
    }

    /// The same with what the program of a chunk takes.
    #[must_use]
    pub fn counted(mut self, counted: Option<Counted>) -> Document {
        self.counted = counted;
        self
    }

    /// The same with a measurement.
    #[must_use]
    pub fn measured(mut self, measured: Measured) -> Document {
        self.measured = Some(measured);
        self
    }
}

fn class(plan: &Plan) -> Class {
    let delta = match plan.rule.class.corrections {
        0 => "delta family: affine entry by entry".to_string(),
        1 => "delta family: affine with a rank-one correction".to_string(),
        n => format!("delta family: affine with {n} rank-one corrections"),
    };
    let (kind, title) = match plan.rule.class.kind {
        ClassKind::Linear => ("linear", "linear"),
        ClassKind::Delta => ("delta", delta.as_str()),
        ClassKind::DualLinear => {
            ("dual-linear", "dual-linear: linear in what is carried, gradients depend on the weights")
        }
        ClassKind::General => ("general", "general"),
        ClassKind::NonParametric => ("nonparametric", "non-parametric: a weighted history"),
        ClassKind::TokenByToken => ("token-by-token", "token by token"),
    };
    Class { kind, title: title.into(), reason: steps::sentence(&plan.rule.class.reason) }
}

fn timed(plan: &Plan) -> Timed {
    let (kind, title, chunk, exact) = match plan.schedule {
        Schedule::Recurrent => ("recurrent", "recurrent: token by token".to_string(), None, None),
        Schedule::ChunkedExact(c) => ("chunked", format!("chunked({c}), exact"), Some(c), Some(true)),
        Schedule::ChunkedFrozen(c) => {
            let title = format!("chunked({c}), gradients frozen inside a chunk: an approximation");
            ("chunked", title, Some(c), Some(false))
        }
    };
    Timed { kind, title, chunk, exact, certificate: steps::sentence(&plan.certificate) }
}

fn notes(plan: &Plan) -> Vec<Note> {
    let derived = plan.rule.derivation.notes.iter();
    let notes = derived.map(|text| Note { code: None, text: text.clone(), help: None });
    let warnings = plan.rule.warnings.iter().map(|w| Note {
        code: Some(w.code.to_string()),
        text: std::iter::once(&w.message).chain(&w.notes).cloned().collect::<Vec<_>>().join("; "),
        help: w.help.clone(),
    });
    notes.chain(warnings).collect()
}
