//! What the data supplies.

use miras_schedule::Plan;
use miras_spec::{Kind, Param, Source};
use miras_term::Shape;

/// A tensor that the data supplies.
#[derive(Clone, Debug)]
pub(crate) struct Needed {
    pub tensor: String,
    pub shape: String,
    pub values: &'static str,
    pub optional: bool,
    pub asked_by: String,
}

impl Needed {
    /// Its values in words.
    pub fn words(&self) -> String {
        let optional = if self.optional { "; may be left out" } else { "" };
        format!("{}{optional}", self.values)
    }
}

/// The tensors of a run, in the order in which they are asked for.
pub(super) fn needed(plan: &Plan) -> Vec<Needed> {
    let layer = &plan.rule.layer;
    let terms = plan.rule.terms();
    let repeats = layer.repeats();
    let tokens = |repeated: bool| if repeated && repeats > 1 { format!("T*{repeats}") } else { "T".into() };
    let mut rows = Vec::new();
    for (name, var, repeated) in [("q", layer.query, false), ("k", layer.key, true), ("v", layer.value, true)]
    {
        let shape = with_axes(&["B", "H", &tokens(repeated)], &terms.var(var).shape);
        rows.push(Needed {
            tensor: name.into(),
            shape,
            values: "real",
            optional: false,
            asked_by: String::new(),
        });
    }
    for param in &layer.params {
        let shape = &terms.var(param.var).shape;
        let shape = match param.source {
            Source::Learned(_) | Source::Input => with_axes(&["B", "H", &tokens(param.repeated)], shape),
            Source::Trained(_) | Source::Slow(_) => with_axes(&["H"], shape),
        };
        rows.push(Needed {
            tensor: param.tensor.clone(),
            shape,
            values: values(param),
            optional: matches!(param.source, Source::Slow(Some(_))),
            asked_by: param.asked_by.clone(),
        });
    }
    for weight in &layer.memory.weights {
        rows.push(Needed {
            tensor: format!("memory.{}", weight.name),
            shape: with_axes(&["H"], &weight.shape),
            values: "real",
            optional: weight.start.is_some(),
            asked_by: "initial weight".into(),
        });
    }
    rows
}

fn values(param: &Param) -> &'static str {
    match param.kind {
        Kind::Real => "real",
        Kind::Positive => "0 or more",
        Kind::Unit => "0 to 1",
    }
}

fn with_axes(outer: &[&str], shape: &Shape) -> String {
    let axes: Vec<String> =
        outer.iter().map(|a| (*a).to_string()).chain(shape.0.iter().map(|d| d.to_string())).collect();
    format!("[{}]", axes.join(", "))
}

/// Sizes behind the names of dimensions, e.g. `hidden = 4*dk`, and sizes that must be equal.
pub(super) fn sizes(plan: &Plan) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for weight in &plan.rule.layer.memory.weights {
        for dim in &weight.shape.0 {
            let line = format!("{dim} = {}", dim.formula());
            if dim.to_string() != dim.formula() && !found.contains(&line) {
                found.push(line);
            }
        }
    }
    let equal = plan.rule.layer.constraints.iter().map(|r| &r.constraint);
    found.extend(equal.map(|c| format!("{} must equal {}", c.left, c.right)));
    found
}
