//! What is the same for all streams and heads: the rule's terms, made ready to perform.

use crate::inputs::Inputs;
use crate::interpret::Program;
use crate::ops::Arithmetic;
use crate::trouble::{Made, Trouble};
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use miras_term::{TermId, VarId};

/// A run.
pub(crate) struct Plan<'a> {
    pub rule: &'a rule::UpdateRule,
    pub layer: &'a spec::Layer,
    pub bound: &'a host::Bound,
    pub inputs: Inputs<'a>,
    pub dk: usize,
    pub dv: usize,
    pub work: Work<'a>,
}

/// The memory's kind.
pub(crate) enum Work<'a> {
    Weights(Box<Weights<'a>>),
    History(Box<History<'a>>),
}

/// A memory with weights.
pub(crate) struct Weights<'a> {
    pub step: &'a spec::Step,
    /// C, where the gradients of a chunk are frozen; None where the recurrence itself is followed.
    pub frozen: Option<u64>,
    pub read: Program,
    /// The declared slope, or the loss.
    pub bias: Bias,
    pub points: Vec<Program>,
    pub states: Vec<StatePrograms>,
    pub direction: Program,
    /// Whether a term asks for what retention makes of a weight when u = 0.
    pub asks_retained: bool,
    pub maps: Vec<Maps<'a>>,
    /// Sizes of each weight and each state.
    pub weight_sizes: Vec<Vec<usize>>,
    pub state_sizes: Vec<Vec<usize>>,
}

impl Weights<'_> {
    /// Sizes of what is remembered of each weight.
    pub fn remembered_sizes(&self, part: host::Remembered) -> Vec<Vec<usize>> {
        match part {
            host::Remembered::Threshold | host::Remembered::Start => self.weight_sizes.clone(),
            host::Remembered::Scale => vec![Vec::new(); self.weight_sizes.len()],
        }
    }
}

/// The bias.
pub(crate) enum Bias {
    /// Differentiated.
    Loss(Program),
    /// Taken as it is.
    Slope(Program),
}

/// A state's start and step.
pub(crate) struct StatePrograms {
    pub start: Program,
    pub next: Program,
}

/// Retention of one weight.
pub(crate) struct Maps<'a> {
    pub rule: &'a rule::Retained,
    pub declared_start: Option<Program>,
    pub start: Option<Program>,
    pub advance: Program,
    pub value: Option<Program>,
    pub finish: Option<Program>,
    pub inside: Inside,
}

/// How a frozen chunk reads a weight; see [`rule::Inside`].
pub(crate) enum Inside {
    Identity,
    Mapped,
    Threshold { keep: Program, threshold: Program },
    FrozenScale(Program),
    ProjectAtEnd,
    TokenByToken,
}

/// A memory that keeps its past.
pub(crate) struct History<'a> {
    pub weigh: &'a spec::Weigh,
    pub log_kernel: Program,
    pub averaged: Program,
    /// Whether `averaged` depends on the past token alone.
    pub averaged_alone: bool,
}

impl<'a> Plan<'a> {
    pub fn new(rule: &'a rule::UpdateRule, bound: &'a host::Bound, arithmetic: Arithmetic) -> Made<Plan<'a>> {
        let layer = &rule.layer;
        let size = |symbol: &str| {
            let n = bound.dims.get(symbol).and_then(|n| usize::try_from(*n).ok());
            n.ok_or_else(|| Trouble::bug(format!("`{symbol}` was not bound")))
        };
        let work = match &layer.algo {
            spec::Algo::Step(step) => Work::Weights(Box::new(weights(rule, step, bound)?)),
            spec::Algo::Weigh(weigh) => Work::History(Box::new(history(rule, weigh)?)),
        };
        Ok(Plan {
            rule,
            layer,
            bound,
            inputs: Inputs::new(layer, bound, arithmetic)?,
            dk: size("dk")?,
            dv: size("dv")?,
            work,
        })
    }
}

fn weights<'a>(rule: &'a rule::UpdateRule, step: &'a spec::Step, bound: &host::Bound) -> Made<Weights<'a>> {
    let layer = &rule.layer;
    let program = |targets: &[TermId]| Program::new(&layer.terms, targets);
    let read = layer.memory.read.ok_or_else(|| Trouble::bug("a memory with weights has no read"))?;
    let states =
        step.states.iter().map(|s| StatePrograms { start: program(&[s.start]), next: program(&[s.next]) });
    let asked: Vec<TermId> =
        step.points.iter().flat_map(|p| p.at.iter()).chain(&step.direction).copied().collect();
    let asked = layer.terms.vars_of(&[asked, step.states.iter().map(|s| s.next).collect()].concat());
    Ok(Weights {
        step,
        frozen: frozen(rule, bound),
        read: program(&[read]),
        bias: match layer.bias.slope {
            Some(slope) => Bias::Slope(program(&[slope])),
            None => Bias::Loss(program(&[layer.bias.loss])),
        },
        points: step.points.iter().map(|p| program(&p.at)).collect(),
        states: states.collect(),
        direction: program(&step.direction),
        asks_retained: step.retained.iter().any(|v| asked.contains(v)),
        maps: maps(rule)?,
        weight_sizes: bound.weights.iter().map(|w| w.shape.clone()).collect(),
        state_sizes: bound.states.iter().map(|s| s.shape.clone()).collect(),
    })
}

/// The chunk length, for classes that have no exact chunked form.
fn frozen(rule: &rule::UpdateRule, bound: &host::Bound) -> Option<u64> {
    match (rule.class.kind, bound.schedule) {
        (_, host::Schedule::Recurrent) => None,
        (rule::ClassKind::DualLinear | rule::ClassKind::General, host::Schedule::Chunked(c)) => {
            Some(u64::from(c.max(1)))
        }
        (
            rule::ClassKind::Linear
            | rule::ClassKind::Delta
            | rule::ClassKind::NonParametric
            | rule::ClassKind::TokenByToken,
            host::Schedule::Chunked(_),
        ) => None,
    }
}

fn maps(rule: &rule::UpdateRule) -> Made<Vec<Maps<'_>>> {
    let layer = &rule.layer;
    if layer.memory.weights.len() != rule.retention.len() {
        return Err(Trouble::bug("not every weight has a retention"));
    }
    layer
        .memory
        .weights
        .iter()
        .zip(&rule.retention)
        .map(|(weight, retained)| map(layer, weight, retained))
        .collect()
}

fn map<'a>(layer: &'a spec::Layer, weight: &spec::Weight, retained: &'a rule::Retained) -> Made<Maps<'a>> {
    let program = |term: TermId| Program::new(&layer.terms, &[term]);
    let inside = match &retained.inside {
        rule::Inside::Identity => Inside::Identity,
        rule::Inside::Mapped => Inside::Mapped,
        rule::Inside::Threshold(threshold) => {
            let linear = retained.linear.as_ref();
            let linear = linear.ok_or_else(|| Trouble::bug("a threshold without a linear recurrence"))?;
            Inside::Threshold { keep: program(linear.keep), threshold: program(*threshold) }
        }
        rule::Inside::FrozenScale(scale) => Inside::FrozenScale(program(*scale)),
        rule::Inside::ProjectAtEnd => Inside::ProjectAtEnd,
        rule::Inside::TokenByToken => Inside::TokenByToken,
    };
    Ok(Maps {
        rule: retained,
        declared_start: weight.start.map(program),
        start: retained.start.map(program),
        advance: program(retained.advance),
        value: retained.value.map(program),
        finish: retained.finish.map(program),
        inside,
    })
}

fn history<'a>(rule: &'a rule::UpdateRule, weigh: &'a spec::Weigh) -> Made<History<'a>> {
    let terms = &rule.layer.terms;
    let answer = rule.answer.as_ref().ok_or_else(|| Trouble::bug("a history without an answer"))?;
    let alone = |v: &VarId| *v == rule.layer.value;
    Ok(History {
        weigh,
        log_kernel: Program::new(terms, &[answer.log_kernel]),
        averaged: Program::new(terms, &[answer.averaged]),
        averaged_alone: terms.vars_of(&[answer.averaged]).iter().all(alone),
    })
}
