//! W0304: a delta rule whose step grows without bound with its keys.

use crate::classify::DeltaForm;
use crate::rule::{ClassKind, UpdateRule};
use miras_base::diagnostic::code;
use miras_base::{Diagnostic, DimEnv};
use miras_spec as spec;
use miras_term::{Env, Role, Tensor, TermId, Terms};
use std::collections::HashMap;

/// Keys and inputs of the algorithm are this long in the trial.
const LONG: f64 = 1e3;

/// A warning where a correction of rank one turns W over (its factor leaves [-2, 0]) when keys are long.
///
/// W - s W a b^T multiplies W along b by 1 - s a.b. With unit keys and a rate of at most 2 that lies in
/// [-1, 1]; keys that are not normalised can make it anything, and the triangular system of a chunk then
/// loses digits. An implicit step, or keys that the program normalises itself, stay within.
pub(super) fn unbounded_keys(rule: &mut UpdateRule) -> Result<Option<Diagnostic>, Diagnostic> {
    if rule.class.kind != ClassKind::Delta {
        return Ok(None);
    }
    let Some(form) = rule.delta_form()? else { return Ok(None) };
    let env = trial(&rule.layer);
    let unbounded = factors(&mut rule.layer.terms, &form)
        .into_iter()
        .filter_map(|f| rule.layer.terms.eval_one(f, &env).ok())
        .any(|f| f.data.iter().any(|x| x.abs() > 2.0));
    Ok(unbounded.then(|| warning(&rule.layer)))
}

fn warning(layer: &spec::Layer) -> Diagnostic {
    let algo = &layer.choices[3];
    let message = "the exact chunked form of this delta rule wants keys of unit length";
    Diagnostic::new(code::UNIT_KEYS, message)
        .at_opt(
            algo.span,
            "each step removes what is stored under the key, in proportion to its squared length",
        )
        .with_help("normalise the keys before the layer, or run with `--schedule recurrent`")
        .with_note("with long keys the triangular system of a chunk grows, and float32 loses its digits")
}

/// scale * sum(entry's largest * input * right) of each correction, up to sign.
fn factors(terms: &mut Terms, form: &DeltaForm) -> Vec<TermId> {
    let mut found = Vec::new();
    for c in &form.corrections {
        let Ok(overlap) = terms.dot(c.input, c.right) else { continue };
        let factor = match c.scale {
            Some(scale) => terms.mul(scale, overlap),
            None => Ok(overlap),
        };
        found.extend(factor);
    }
    found
}

/// Long keys and inputs, gates at 1/2, weights at 0, at dk = dv = 3.
fn trial(layer: &spec::Layer) -> Env {
    let mut env = Env {
        dims: DimEnv::from([("dk".into(), 3), ("dv".into(), 3)]),
        heads: 1,
        layers: 1,
        ..Env::default()
    };
    let mut vars = HashMap::new();
    for (id, var) in layer.terms.vars() {
        let Ok(shape) = layer.terms.sizes(&var.shape, &env) else { continue };
        let count = shape.iter().product();
        let is_input =
            layer.param_of(id).is_some_and(|p| matches!(p.source, spec::Source::Input) && count > 1);
        let value = match var.role {
            Role::Key => LONG,
            _ if is_input => LONG,
            _ => 0.5,
        };
        vars.insert(id, Tensor { shape, data: vec![value; count] });
    }
    env.vars = vars;
    env
}
