//! What a stream carries.

use super::Carried;
use miras_schedule::{Plan, StatePart};
use miras_spec::{Algo, Layer};

/// The tensors of the state, each with what it is.
pub(super) fn carried(plan: &Plan) -> Vec<Carried> {
    (plan.state.iter())
        .map(|part| Carried {
            tensor: part.tensor.clone(),
            shape: part.shape.to_string(),
            entries: entries(plan, part),
            what: what(plan, &part.tensor),
        })
        .collect()
}

/// How many entries, in words; a window's history is full after its first tokens.
fn entries(plan: &Plan, part: &StatePart) -> String {
    match &part.entries {
        None => "grows with T".into(),
        Some(most) if plan.rule.layer.memory.history => format!("at most {} entries", most.formula()),
        Some(entries) => format!("{} entries", entries.formula()),
    }
}

/// How many tokens a token sees at most, itself among them; None: all before it, or there is no history.
pub(super) fn window(layer: &Layer) -> Option<u32> {
    match &layer.algo {
        Algo::Weigh(weigh) => weigh.window,
        Algo::Step(_) => None,
    }
}

/// The tokens that a window keeps, in words.
pub(super) fn last(window: u32) -> String {
    match window.saturating_sub(1) {
        0 => "nothing, as each token sees itself alone".into(),
        1 => "the last token".into(),
        kept => format!("the last {kept} tokens"),
    }
}

fn what(plan: &Plan, tensor: &str) -> String {
    let layer = &plan.rule.layer;
    if tensor.starts_with("state.anchor.threshold.") {
        return "threshold gathered since the chunk began".into();
    }
    if tensor.starts_with("state.anchor.start.") {
        return "the weights that the chunk starts from, with its first token's gates".into();
    }
    if tensor.starts_with("state.anchor.scale.") {
        return "the scale of the chunk's start, with its first token's gates".into();
    }
    if tensor.starts_with("state.anchor.") {
        return "the carried value at the chunk's start".into();
    }
    if tensor.starts_with("state.cache.") {
        return window(layer).map_or("the tokens so far".into(), last);
    }
    if tensor.starts_with("state.algo.") {
        return "the algorithm's own state".into();
    }
    let at = layer.memory.weights.iter().position(|w| tensor == format!("state.memory.{}", w.name));
    match at.and_then(|l| plan.rule.retention.get(l)) {
        Some(r) => {
            let name = &layer.terms.var(r.carried).name;
            let is_weight = layer.memory.weights.iter().any(|w| w.var == r.carried);
            if is_weight { format!("the weight {name}") } else { format!("the dual {name}") }
        }
        None => String::new(),
    }
}
