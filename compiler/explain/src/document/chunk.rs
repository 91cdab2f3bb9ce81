//! The parallel form of a chunk, from the structure of the rule.

use super::{Part, chunk_exact, chunk_frozen, chunk_history};
use miras_rule::ClassKind;
use miras_schedule::{Plan, Schedule};

/// How the tokens of a chunk are computed together.
pub(super) fn chunk(plan: &Plan) -> Part {
    let class = plan.rule.class.kind;
    match (plan.schedule, class) {
        (Schedule::Recurrent, _) => alone(
            "The schedule is token by token: every token is one step of the closed form, from the weights that the \
             token before it left.",
        ),
        (_, ClassKind::NonParametric) => chunk_history::history(&plan.rule),
        (_, ClassKind::TokenByToken) => alone(
            "A chunk has no parallel form of its own: every token is one step of the closed form. Chunks only say where \
             a stream may be cut.",
        ),
        (_, ClassKind::Linear | ClassKind::Delta) => chunk_exact::exact(&plan.rule).unwrap_or_else(|| {
            alone("The class is exact in chunks; its parallel form has no short formula for this memory.")
        }),
        (_, ClassKind::DualLinear | ClassKind::General) => chunk_frozen::frozen(&plan.rule),
    }
}

fn alone(summary: &str) -> Part {
    Part { summary: summary.into(), steps: Vec::new() }
}
