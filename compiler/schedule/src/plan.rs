//! Plans and how they are chosen.

use crate::cost::{Cost, StatePart, cost, state};
use miras_base::Diagnostic;
use miras_rule::UpdateRule;

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
}

/// An update rule with its order in time.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rule.
    pub rule: UpdateRule,
    /// The order.
    pub schedule: Schedule,
    /// Why this order gives the rule's numbers.
    pub certificate: String,
    /// What the user should know about the choice, if anything.
    pub remark: Option<String>,
    /// What a stream carries from token to token.
    pub state: Vec<StatePart>,
    /// Operations per token.
    pub cost: Cost,
}

/// Plans a rule's order in time.
///
/// Only the recurrent schedule exists so far. Asking for chunks is refused; asking for nothing gives the
/// recurrent one with a remark that says so.
pub fn plan(rule: UpdateRule, request: Request) -> Result<Plan, Diagnostic> {
    let remark = match request {
        Request::Recurrent => None,
        Request::Default => Some("the chunked schedule is not there yet; tokens are processed one by one".to_string()),
        Request::Chunked(_) => {
            return Err(Diagnostic::new(
                miras_base::diagnostic::code::NO_CHUNKS,
                "the chunked schedule is not available on this backend yet",
            )
            .with_help("use `--schedule recurrent`, or `--backend reference` for the chunked semantics in float64"));
        }
    };
    let (state, cost) = (state(&rule), cost(&rule));
    Ok(Plan {
        certificate: "token by token is the definition itself; nothing is neglected".into(),
        schedule: Schedule::Recurrent,
        remark,
        state,
        cost,
        rule,
    })
}
