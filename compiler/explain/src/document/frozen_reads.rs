//! What is read inside a chunk with frozen gradients.

use super::Step;
use super::chunk_frozen::{Course, Moves, carried_at};
use super::low_rank::{Read, Reads, reads};
use super::product::{Along, at, up_to};
use crate::math::{Formula, Math, Scope, call, entries, matmul, named, of_vectors, scaled, sum};
use miras_rule::{Inside, Retained, UpdateRule};
use miras_spec::Algo;

/// What q reads at every token.
pub(super) fn answers(rule: &UpdateRule, scope: &Scope<'_>, courses: &[Option<Course>]) -> Option<Step> {
    let Reads { products, answer } = reads(rule)?;
    let mut formulas = inside(rule, scope);
    let mut here = scope.at("t", "t", "t");
    for Read { name, weight, term, input } in &products {
        let z = here.math(*input);
        let r = &rule.retention[*weight];
        let low = courses[*weight].as_ref().and_then(|c| low_rank(rule, scope, c, r, *weight, &z));
        let w = at(&rule.layer.memory.weights[*weight].display, "t");
        let right = low.unwrap_or_else(|| matmul(w, z));
        formulas.push(Formula::new(if *term == answer { at("o", "t") } else { at(name, "t") }, right));
        here = here.with(*term, name);
    }
    if products.iter().all(|r| r.term != answer) {
        formulas.push(Formula::new(at("o", "t"), here.math(answer)));
    }
    let mapped = rule.retention.iter().any(|r| matches!(r.inside, Inside::Mapped | Inside::Threshold(_)));
    let reason = if mapped {
        "The weights of a token are an entry-wise or slice-wise map of the carried value, so they are formed for each read."
    } else if rule.retention.iter().any(|r| matches!(r.inside, Inside::TokenByToken)) {
        "The weights of a token are formed one after the other."
    } else if rule.retention.iter().any(|r| matches!(r.inside, Inside::FrozenScale(_))) {
        "No weights per token are formed: a product with the chunk's start, and a masked product of the inputs of two \
         tokens times the frozen deltas. The scale of the map is frozen at the chunk's start (the scheme that is printed \
         for Moneta reads the raw dual inside a chunk, without its scale)."
    } else {
        "No weights per token are formed: a product with the chunk's start, and a masked product of the inputs of two \
         tokens times the frozen deltas."
    };
    let before = if rule.layer.read_before {
        " With `read: before`, token t reads what token t - 1 left."
    } else {
        ""
    };
    Some(Step {
        title: "What every token reads".into(),
        choice: "memory",
        formulas,
        reason: format!("{reason}{before}"),
    })
}

/// The weights inside a chunk, where they are not the carried value.
fn inside(rule: &UpdateRule, scope: &Scope<'_>) -> Vec<Formula> {
    let here = scope.at("t", "t", "t");
    let mut formulas = Vec::new();
    for (l, (r, weight)) in rule.retention.iter().zip(&rule.layer.memory.weights).enumerate() {
        let w = at(&weight.display, "t");
        match r.inside {
            Inside::Identity | Inside::TokenByToken => {}
            Inside::ProjectAtEnd => {}
            Inside::Mapped => formulas.extend(r.value.map(|v| Formula::new(w, here.math(v)))),
            Inside::Threshold(_) => {
                let index = if rule.retention.len() > 1 { format!("[{}]", l + 1) } else { String::new() };
                let arguments = vec![carried_at(rule, r, "t"), at(&format!("Gamma{index}"), "t")];
                let soft = Math::Call("soft".into(), "", arguments);
                formulas.push(Formula::new(w, soft).remarked("soft(z, g) = sign(z) * max(abs(z) - g, 0)"));
            }
            Inside::FrozenScale(scale) => {
                let value = scope.at("t", "0", "0").math(scale);
                formulas.push(
                    Formula::new(scale_of(rule, l), value).remarked("1 where the carried value is exactly 0"),
                );
                formulas.push(Formula::new(w, scaled(scale_of(rule, l), carried_at(rule, r, "t"))));
            }
        }
    }
    formulas
}

/// The scale of the l-th weight, frozen at the chunk's start.
fn scale_of(rule: &UpdateRule, l: usize) -> Math {
    named(&if rule.retention.len() > 1 { format!("scale[{}]", l + 1) } else { "scale".into() })
}

/// The read of a carried value as a masked product.
fn low_rank(
    rule: &UpdateRule,
    scope: &Scope<'_>,
    course: &Course,
    r: &Retained,
    l: usize,
    z: &Math,
) -> Option<Math> {
    let scale = match r.inside {
        Inside::Identity | Inside::ProjectAtEnd => None,
        Inside::FrozenScale(_) => Some(scale_of(rule, l)),
        Inside::Mapped | Inside::Threshold(_) | Inside::TokenByToken => return None,
    };
    if r.linear.as_ref().is_some_and(|l| l.shift.is_some()) {
        return None;
    }
    let keep = &course.keep;
    let mut parts = vec![keep.applied(keep.product("t", "0"), carried_at(rule, r, "0"), z.clone())];
    let products = &rule.gradients.first()?.by_weight.get(l)?.products;
    match &course.moves {
        Moves::Gradient(by, along) => {
            let token = scope.at("i", "0", "i-1");
            for (left, right) in products {
                let (mut left, mut right) = (token.math(*left), token.math(*right));
                let by = of_vectors(token.math(*by));
                match along {
                    Along::Rows => left = entries(by.clone(), left),
                    Along::Columns => right = entries(by.clone(), right),
                    Along::One | Along::Scalar | Along::Entries => {}
                }
                let met = keep.applied_outer(keep.product("t", "i"), left, right, z.clone());
                let body = if *along == Along::Scalar { scaled(by, met) } else { met };
                parts.push(up_to("i<=t", body));
            }
        }
        Moves::Momentum { state, by, .. } => {
            let Algo::Step(step) = &rule.layer.algo else { return None };
            let old = at(&rule.layer.terms.var(step.states[*state].old).name, "0");
            let begun = up_to("1<=i<=t", scaled(keep.product("t", "i"), call("M", &["i", "0"])));
            parts.push(scaled(begun, matmul(old, z.clone())));
            let token = scope.at("j", "0", "j");
            for (left, right) in products {
                let met = crate::math::inner(token.math(*right), z.clone());
                let weight = scaled(scaled(token.math(*by), call("c", &["t", "j"])), met);
                parts.push(up_to("j<=t", scaled(weight, token.math(*left))));
            }
        }
        Moves::Update => return None,
    }
    let low = sum(parts);
    Some(match scale {
        Some(scale) => scaled(scale, low),
        None => low,
    })
}
