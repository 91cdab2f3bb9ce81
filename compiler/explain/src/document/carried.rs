//! What a stream carries.

use super::Carried;
use miras_schedule::Plan;

/// The tensors of the state, each with what it is.
pub(super) fn carried(plan: &Plan) -> Vec<Carried> {
    (plan.state.iter())
        .map(|part| Carried {
            tensor: part.tensor.clone(),
            shape: part.shape.to_string(),
            entries: part
                .entries
                .as_ref()
                .map_or("grows with T".into(), |e| format!("{} entries", e.formula())),
            what: what(plan, &part.tensor),
        })
        .collect()
}

fn what(plan: &Plan, tensor: &str) -> String {
    let layer = &plan.rule.layer;
    if tensor.starts_with("state.anchor.threshold.") {
        return "threshold gathered since the chunk began".into();
    }
    if tensor.starts_with("state.anchor.") {
        return "the carried value at the chunk's start".into();
    }
    if tensor.starts_with("state.cache.") {
        return "the tokens so far".into();
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
