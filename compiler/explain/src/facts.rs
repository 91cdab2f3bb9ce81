//! What both formats show, put into words once.

use miras_base::DimEnv;
use miras_schedule::{Cost, Plan, Schedule};
use miras_spec::{Kind, Param, Source};
use miras_term::Shape;

/// A tensor that the data supplies.
pub(crate) struct Needed {
    pub tensor: String,
    pub shape: String,
    pub values: &'static str,
    pub asked_by: String,
}

/// The schedule in a phrase.
pub(crate) fn schedule(plan: &Plan) -> String {
    match plan.schedule {
        Schedule::Recurrent => "recurrent: token by token".into(),
        Schedule::ChunkedExact(c) => format!("chunked({c}), exact"),
        Schedule::ChunkedFrozen(c) => {
            format!("chunked({c}), gradients frozen inside a chunk: an approximation")
        }
    }
}

/// The tensors of a run, in the order in which they are asked for.
pub(crate) fn needed(plan: &Plan) -> Vec<Needed> {
    let layer = &plan.rule.layer;
    let terms = plan.rule.terms();
    let repeats = layer.repeats();
    let tokens = |repeated: bool| if repeated && repeats > 1 { format!("T*{repeats}") } else { "T".into() };
    let row = |tensor: &str, shape: String, values, asked_by: &str| Needed {
        tensor: tensor.into(),
        shape,
        values,
        asked_by: asked_by.into(),
    };
    let mut rows = Vec::new();
    for (name, var, repeated) in [("q", layer.query, false), ("k", layer.key, true), ("v", layer.value, true)]
    {
        let shape = &terms.var(var).shape;
        rows.push(row(name, with_axes(&["B", "H", &tokens(repeated)], shape), "real", ""));
    }
    for param in &layer.params {
        let shape = &terms.var(param.var).shape;
        let shape = match param.source {
            Source::Learned(_) | Source::Input => with_axes(&["B", "H", &tokens(param.repeated)], shape),
            Source::Trained(_) | Source::Slow(_) => with_axes(&["H"], shape),
        };
        rows.push(row(&param.tensor, shape, values(param), &param.asked_by));
    }
    for weight in &layer.memory.weights {
        let optional = if weight.start.is_some() { "real; may be left out" } else { "real" };
        let tensor = format!("memory.{}", weight.name);
        rows.push(row(&tensor, with_axes(&["H"], &weight.shape), optional, "initial weight"));
    }
    rows
}

fn values(param: &Param) -> &'static str {
    let optional = matches!(param.source, Source::Slow(Some(_)));
    match (param.kind, optional) {
        (Kind::Real, false) => "real",
        (Kind::Positive, false) => "0 or more",
        (Kind::Unit, false) => "0 to 1",
        (Kind::Real, true) => "real; may be left out",
        (Kind::Positive, true) => "0 or more; may be left out",
        (Kind::Unit, true) => "0 to 1; may be left out",
    }
}

fn with_axes(outer: &[&str], shape: &Shape) -> String {
    let axes: Vec<String> =
        outer.iter().map(|a| (*a).to_string()).chain(shape.0.iter().map(|d| d.to_string())).collect();
    format!("[{}]", axes.join(", "))
}

/// Sizes behind the names of dimensions, e.g. `hidden = 4*dk`.
pub(crate) fn named_sizes(plan: &Plan) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for weight in &plan.rule.layer.memory.weights {
        for dim in &weight.shape.0 {
            let line = format!("{dim} = {}", dim.formula());
            if dim.to_string() != dim.formula() && !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found
}

/// Costs as formulas, and as numbers at a size that users know.
pub(crate) fn cost(cost: &Cost) -> [(&'static str, String); 2] {
    let example = DimEnv::from([("dk".into(), 64), ("dv".into(), 64)]);
    let both = |dim: &miras_base::Dim| match dim.eval(&example) {
        Some(n) => format!("{}  ({n} at dk = dv = 64)", dim.formula()),
        None => dim.formula(),
    };
    [("multiply-adds", both(&cost.multiply_adds)), ("element-wise", both(&cost.element_wise))]
}
