//! JSON for programs; `docs/explain-json.md` describes every field.

use crate::document::{Document, Needed, Note, Part, Step};
use crate::math::Formula;
use serde_json::{Value, json};

/// Version of the schema: raised when a field changes its meaning or goes away.
pub const JSON_VERSION: u32 = 1;

/// Documents as one JSON object, indented; ends with a line break.
pub fn json(documents: &[Document]) -> String {
    let layers: Vec<Value> = documents.iter().map(layer).collect();
    pretty(&json!({ "version": JSON_VERSION, "layers": layers }))
}

pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn layer(document: &Document) -> Value {
    json!({
        "name": document.name,
        "about": document.about,
        "source": document.source,
        "choices": document.choices.iter().map(|c| json!({
            "clause": c.clause,
            "definition": c.definition,
            "text": c.text,
            "arguments": c.meant.0.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
            "about": c.about,
            "contributes": formulas(&c.contributes),
        })).collect::<Vec<_>>(),
        "inputs": document.needed.iter().map(input).collect::<Vec<_>>(),
        "sizes": document.sizes,
        "derivation": steps(&document.steps),
        "closed_form": formulas(&document.closed),
        "class": { "kind": document.class.kind, "title": document.class.title, "reason": document.class.reason },
        "schedule": {
            "kind": document.schedule.kind,
            "title": document.schedule.title,
            "chunk": document.schedule.chunk,
            "exact": document.schedule.exact,
            "certificate": document.schedule.certificate,
        },
        "chunk": part(&document.chunk),
        "outer_gradients": outer_gradients(document),
        "state": document.state.iter().map(|c| json!({
            "tensor": c.tensor, "shape": c.shape, "entries": c.entries, "what": c.what,
        })).collect::<Vec<_>>(),
        "cost": document.cost.iter().map(|c| json!({
            "what": c.what,
            "forward": c.forward,
            "forward_at_64": c.forward_at_64,
            "backward": c.backward,
            "backward_at_64": c.backward_at_64,
        })).collect::<Vec<_>>(),
        "block_cost": document.counted.as_ref().map(|c| {
            let [multiply_adds, element_wise] = c.each();
            json!({
                "tokens": c.tokens,
                "multiply_adds_at_64": multiply_adds,
                "element_wise_at_64": element_wise,
                "scratch_at_64": c.scratch,
            })
        }),
        "forms": steps(&document.forms),
        "notes": document.notes.iter().map(note).collect::<Vec<_>>(),
        "measured": document.measured.as_ref().map(|m| json!({
            "on": m.on,
            "errors": m.errors.iter().map(|(c, e)| json!({ "chunk": c, "error": e })).collect::<Vec<_>>(),
        })),
    })
}

/// A formula in its three forms.
pub(crate) fn formula(f: &Formula) -> Value {
    json!({ "text": f.text(), "latex": f.latex(), "mathml": f.mathml(), "remark": f.remark })
}

fn formulas(all: &[Formula]) -> Vec<Value> {
    all.iter().map(formula).collect()
}

fn input(n: &Needed) -> Value {
    json!({
        "tensor": n.tensor,
        "shape": n.shape,
        "values": n.values,
        "optional": n.optional,
        "asked_by": n.asked_by,
    })
}

fn steps(all: &[Step]) -> Vec<Value> {
    (all.iter())
        .map(|s| {
            json!({
                "title": s.title,
                "choice": if s.choice.is_empty() { Value::Null } else { s.choice.into() },
                "formulas": formulas(&s.formulas),
                "reason": s.reason,
            })
        })
        .collect()
}

fn part(part: &Part) -> Value {
    json!({ "summary": part.summary, "steps": steps(&part.steps) })
}

fn outer_gradients(document: &Document) -> Value {
    let backward = &document.backward;
    let memory = &document.memory;
    json!({
        "summary": backward.part.summary,
        "steps": steps(&backward.part.steps),
        "stopped": backward.stopped,
        "reaches": backward.reaches.iter().map(|r| json!({
            "tensor": format!("d.{}", r.tensor),
            "through": r.through,
            "summed_over": if r.summed.is_empty() { Value::Null } else { r.summed.into() },
        })).collect::<Vec<_>>(),
        "memory": {
            "carry": memory.carry,
            "carry_at_64": memory.carry_at_64,
            "every": memory.every,
            "text": memory.text,
        },
    })
}

fn note(n: &Note) -> Value {
    json!({ "code": n.code, "text": n.text, "help": n.help })
}
