//! Plans and how they are chosen.

use crate::blocks::{Blocks, Form, blocks};
use crate::cost::{Cost, StatePart, cost, state};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_rule::{ClassKind, UpdateRule};

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Request {
    /// Whatever is best among what is there.
    #[default]
    Default,
    /// Token by token.
    Recurrent,
    /// Chunks of this many tokens; None: the layer's own chunk length.
    Chunked(Option<u32>),
}

/// How tokens are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One token after the other, the definition itself.
    Recurrent,
    /// Chunks of so many tokens, by a form that equals the recurrent one.
    ChunkedExact(u32),
    /// Chunks of so many tokens inside which every gradient is taken at the chunk's starting weights.
    ChunkedFrozen(u32),
}

impl Schedule {
    /// Tokens in a chunk, where there are chunks.
    pub fn chunk(self) -> Option<u32> {
        match self {
            Schedule::Recurrent => None,
            Schedule::ChunkedExact(c) | Schedule::ChunkedFrozen(c) => Some(c),
        }
    }

    /// Whether it gives the recurrence's own numbers.
    pub fn exact(self) -> bool {
        match self {
            Schedule::Recurrent | Schedule::ChunkedExact(_) => true,
            Schedule::ChunkedFrozen(_) => false,
        }
    }
}

/// An update rule with its order in time.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rule.
    pub rule: UpdateRule,
    /// The order.
    pub schedule: Schedule,
    /// How many tokens are computed at a time, and in what form.
    pub blocks: Blocks,
    /// Why this order gives the rule's numbers, or what it neglects.
    pub certificate: String,
    /// What a stream carries from token to token.
    pub state: Vec<StatePart>,
    /// Operations per token.
    pub cost: Cost,
}

/// Plans a rule's order in time (docs/mathematics.md).
pub fn plan(mut rule: UpdateRule, request: Request) -> Result<Plan, Diagnostic> {
    let schedule = match request {
        Request::Recurrent => Schedule::Recurrent,
        Request::Default | Request::Chunked(None) => chunked(&rule, rule.layer.chunk),
        Request::Chunked(Some(0)) => {
            return Err(Diagnostic::new(code::BAD_OPTION, "a chunk of 0 tokens")
                .with_help("give a chunk length of at least 1"));
        }
        Request::Chunked(Some(c)) => chunked(&rule, c),
    };
    let blocks = blocks(&mut rule, schedule)?;
    let (state, cost) = (state(&rule, schedule), cost(&rule));
    let certificate = joined(&certificate(&rule, schedule), &together(&blocks, schedule));
    Ok(Plan { certificate, schedule, blocks, state, cost, rule })
}

fn chunked(rule: &UpdateRule, chunk: u32) -> Schedule {
    match rule.class.kind {
        ClassKind::Linear | ClassKind::Delta | ClassKind::NonParametric | ClassKind::TokenByToken => {
            Schedule::ChunkedExact(chunk)
        }
        ClassKind::DualLinear | ClassKind::General => Schedule::ChunkedFrozen(chunk),
    }
}

fn certificate(rule: &UpdateRule, schedule: Schedule) -> String {
    match schedule {
        Schedule::Recurrent => "token by token is the definition itself; nothing is neglected".into(),
        Schedule::ChunkedExact(_) => {
            format!("equal to the recurrence for any chunk length: {}", rule.class.reason)
        }
        Schedule::ChunkedFrozen(c) => format!(
            "inside a chunk of {c} tokens every gradient is taken at the chunk's starting weights W_0; what is \
             neglected is how the gradient changes as the weights move inside the chunk; the algorithm's own \
             recurrence and retention are followed exactly"
        ),
    }
}

/// A certificate with a clause after it.
fn joined(certificate: &str, clause: &str) -> String {
    if clause.is_empty() {
        certificate.to_string()
    } else {
        format!("{}{clause}", certificate.trim_end_matches('.'))
    }
}

/// What is computed at a time, as a clause after the certificate.
fn together(blocks: &Blocks, schedule: Schedule) -> String {
    match (&blocks.form, schedule) {
        (Form::TokenByToken(_), Schedule::Recurrent) => String::new(),
        (Form::TokenByToken(why), _) => format!("; the tokens are computed one after the other: {why}"),
        (Form::Affine(affine), _) => {
            let solved = affine.families.iter().any(|f| !f.corrections.is_empty());
            let how = if solved { "masked products and a unit-triangular system" } else { "masked products" };
            format!("; {} tokens are computed at a time, by {how}", blocks.tokens)
        }
        (Form::Frozen(frozen), _) if frozen.inner < blocks.tokens => format!(
            "; the chunk's gradients are computed at once, and its weights as sums of outer products that are \
             written out every {} tokens",
            frozen.inner
        ),
        (Form::Frozen(_), _) => {
            "; the chunk is computed at once, its weights as sums of outer products".to_string()
        }
        (Form::Gradients, _) => {
            "; the chunk's gradients are computed at once, retention and reads one token after the other"
                .to_string()
        }
    }
}
