//! Chunks whose gradients are taken at their starting weights: what is frozen, what runs exactly, what is read, and
//! what waits for the chunk's end.

use super::low_rank::with_query;
use super::product::{Along, Keep, at, factor, up_to};
use super::steps::scope;
use super::{Part, Step, frozen_reads};
use crate::math::{Big, Formula, Math, Scope, call, named, scaled, sum, word};
use miras_rule::algebra::{self, Facts};
use miras_rule::calculus::fold;
use miras_rule::{Inside, Retained, UpdateRule};
use miras_spec::{Algo, Step as Algorithm};
use miras_term::{Op, TermId};
use std::collections::HashMap;

/// How the carried value of one weight follows from its gradients.
pub(super) struct Course {
    pub keep: Keep,
    keep_term: TermId,
    pub moves: Moves,
}

/// What is added to the carried value.
pub(super) enum Moves {
    /// `by * g`, the factor and how it varies.
    Gradient(TermId, Along),
    /// A state `S' = fade * S + by * g` that is itself added.
    Momentum { state: usize, fade: TermId, by: TermId },
    /// u as the algorithm gives it.
    Update,
}

/// The form of a chunk with frozen gradients.
pub(super) fn frozen(rule: &UpdateRule) -> Part {
    let mut rule = with_query(rule);
    let Algo::Step(step) = rule.layer.algo.clone() else {
        return Part { summary: String::new(), steps: Vec::new() };
    };
    let courses: Vec<Option<Course>> =
        (0..rule.retention.len()).map(|l| course(&mut rule, &step, l)).collect();
    let mut scope = scope(&rule);
    scope.stand_for = starting_weights(&rule, &step);
    let mut steps = vec![gradients(&rule, &scope, &step)];
    steps.extend(algorithm(&rule, &scope, &step));
    steps.extend(carried(&rule, &scope, &courses));
    steps.extend(frozen_reads::answers(&rule, &scope, &courses));
    steps.extend(end(&rule, &scope));
    let summary = "Every gradient of the chunk is taken at its starting weights W_0, for all tokens i = 1..C at once; what \
                   the algorithm and retention make of the gradients then runs exactly. Gradients stay sums of outer \
                   products, so that reads need no weights per token wherever the carried value is read as it is.";
    Part { summary: summary.into(), steps }
}

/// Variables of points other than the weights as they are stand for the starting weights too.
fn starting_weights(rule: &UpdateRule, step: &Algorithm) -> HashMap<miras_term::VarId, miras_term::VarId> {
    let weights = &rule.layer.memory.weights;
    let at_points = rule.gradients.iter().flat_map(|g| g.at_vars.iter().zip(weights));
    let retained = step.retained.iter().zip(weights);
    at_points.chain(retained).map(|(v, w)| (*v, w.var)).collect()
}

/// Keep and step of one weight; None where it has no linear recurrence.
fn course(rule: &mut UpdateRule, step: &Algorithm, l: usize) -> Option<Course> {
    let several = rule.retention.len() > 1;
    let linear = rule.retention.get(l)?.linear.clone()?;
    let moves = moves(rule, step, l, linear.write);
    let (keep_term, along) = factor(&rule.layer.terms, linear.keep);
    Some(Course { keep: Keep::of(l, several, along), keep_term, moves })
}

fn moves(rule: &mut UpdateRule, step: &Algorithm, l: usize, write: Option<TermId>) -> Moves {
    let outer = rule.gradients.iter().all(|g| g.by_weight.get(l).is_some_and(|s| s.rest.is_none()));
    let (Some(direction), 1, true) = (step.direction.get(l), step.points.len(), outer) else {
        return Moves::Update;
    };
    let gradient = step.points[0].gradients[l];
    let facts = Facts::of_params(&rule.layer.params);
    let terms = &mut rule.layer.terms;
    let is_zero = |terms: &miras_term::Terms, id| terms.as_num(id) == Some(0.0);
    let mut linear = |expr, var| algebra::collect_linear(terms, expr, var, &facts);
    let direct = linear(*direction, gradient);
    let state = match rule.layer.terms.op(*direction) {
        Op::Var(v) => step.states.iter().position(|s| s.new == *v),
        _ => None,
    };
    if let (Some(state), None) = (state, write) {
        let (next, old) = (step.states[state].next, step.states[state].old);
        let terms = &mut rule.layer.terms;
        if let Some((by, rest)) = algebra::collect_linear(terms, next, gradient, &facts)
            && let Some((fade, rest)) = algebra::collect_linear(terms, rest, old, &facts)
            && terms.as_num(rest).is_none_or(|n| n == 0.0)
            && factor(terms, rest).1 != Along::Entries
        {
            let (by, along) = factor(terms, by);
            let (fade, fading) = factor(terms, fade);
            if along == Along::Scalar && fading == Along::Scalar {
                return Moves::Momentum { state, fade, by };
            }
        }
        return Moves::Update;
    }
    let Some((by, rest)) = direct else { return Moves::Update };
    let terms = &mut rule.layer.terms;
    let (rest, _) = factor(terms, rest);
    let by = match write {
        Some(write) => fold::times(terms, write, by).ok(),
        None => Some(by),
    };
    match by.map(|by| factor(terms, by)) {
        Some((by, along)) if is_zero(terms, rest) && along != Along::Entries => Moves::Gradient(by, along),
        _ => Moves::Update,
    }
}

fn gradients(rule: &UpdateRule, scope: &Scope<'_>, step: &Algorithm) -> Step {
    let here = scope.at("i", "0", "i-1");
    let mut formulas = Vec::new();
    for (gradient, point) in rule.gradients.iter().zip(&step.points) {
        for n in &gradient.named {
            let left = at(&n.name, "i");
            formulas.push(Formula::new(left, here.without(n.term).math(n.term)));
        }
        for (sum, var) in gradient.by_weight.iter().zip(&point.gradients) {
            formulas.extend(sum.whole.map(|whole| Formula::new(here.var(*var), here.math(whole))));
        }
    }
    let retained = "The gradient belongs at what retention leaves of the weights; inside a chunk it is taken at the starting \
                    weights as they are.";
    let own: Vec<_> = rule.layer.memory.weights.iter().map(|w| w.var).collect();
    let moved = rule.gradients.iter().flat_map(|g| &g.at_vars).any(|v| !own.contains(v));
    Step {
        title: "Gradients at the chunk's start".into(),
        choice: "",
        formulas,
        reason: format!(
            "Frozen: no token waits for another, so that each line is one product over the chunk.{}",
            if moved { format!(" {retained}") } else { String::new() }
        ),
    }
}

fn algorithm(rule: &UpdateRule, scope: &Scope<'_>, step: &Algorithm) -> Option<Step> {
    let here = scope.at("i", "0", "i-1");
    let mut formulas: Vec<Formula> = step
        .states
        .iter()
        .map(|s| Formula::new(here.var(s.new).unprimed(), here.math(s.next).unprimed()))
        .collect();
    for (retention, direction) in rule.layer.retention.iter().zip(&step.direction) {
        formulas.push(Formula::new(here.var(retention.update), here.math(*direction).unprimed()));
    }
    (!formulas.is_empty()).then(|| Step {
        title: "The algorithm's own recurrence".into(),
        choice: "algo",
        formulas,
        reason: "Exact, token after token, from the frozen gradients and from the state that the chunk before left.".into(),
    })
}

fn carried(rule: &UpdateRule, scope: &Scope<'_>, courses: &[Option<Course>]) -> Vec<Step> {
    let mut kept: Vec<Formula> = Vec::new();
    let mut formulas = Vec::new();
    for ((l, r), course) in rule.retention.iter().enumerate().zip(courses) {
        match course {
            Some(course) => {
                for f in course.keep.formulas(scope, course.keep_term, "t") {
                    if !kept.contains(&f) {
                        kept.push(f);
                    }
                }
                for f in mixing(course, scope) {
                    if !kept.contains(&f) {
                        kept.push(f);
                    }
                }
                formulas.push(Formula::new(carried_at(rule, r, "t"), followed(rule, scope, course, r, l)));
            }
            None => {
                let here = scope.at("t", "t-1", "t-1");
                formulas.push(Formula::new(carried_at(rule, r, "t"), here.math(r.advance)));
            }
        }
        if let Inside::Threshold(gamma) = r.inside {
            formulas.extend(threshold(rule, scope, r, gamma, l));
        }
    }
    let by_token = courses.iter().any(Option::is_none);
    let reason = if by_token {
        "No linear recurrence: retention runs token by token inside the chunk, only the gradients are frozen."
    } else {
        "Exact: retention's own recurrence in the frozen steps, written as a sum over the tokens of the chunk."
    };
    let mut steps = Vec::new();
    if !kept.is_empty() {
        steps.push(Step {
            title: "What is left of a step after some tokens".into(),
            choice: "retention",
            formulas: kept,
            reason: "The product of the keeps between two tokens and of nothing else; never a quotient, so that a keep of \
                     0 (a hard reset) is exact."
                .into(),
        });
    }
    steps.push(Step {
        title: "The carried value at any token".into(),
        choice: "retention",
        formulas,
        reason: reason.into(),
    });
    steps
}

/// The carried value at a token. Beside a threshold it is not yet the weight, and has a name of its own.
pub(super) fn carried_at(rule: &UpdateRule, r: &Retained, time: &str) -> Math {
    let name = &rule.layer.terms.var(r.carried).name;
    match (&r.inside, name.find('[')) {
        (Inside::Threshold(_), Some(index)) => at(&format!("theta{}", &name[index..]), time),
        (Inside::Threshold(_), None) => at("theta", time),
        _ => at(name, time),
    }
}

/// With momentum: how much of a gradient has arrived after some tokens.
fn mixing(course: &Course, scope: &Scope<'_>) -> Vec<Formula> {
    let Moves::Momentum { fade, .. } = &course.moves else { return Vec::new() };
    let fades =
        Math::Over(Big::Product, Box::new(word("j<n<=i")), Box::new(scope.at("n", "n", "n").math(*fade)));
    let arrived = up_to("j<=i<=t", scaled(course.keep.product("t", "i"), call("M", &["i", "j"])));
    vec![
        Formula::new(call("M", &["i", "j"]), fades),
        Formula::new(call("c", &["t", "j"]), arrived)
            .remarked("the product of two triangular matrices, of the keeps and of the momenta"),
    ]
}

/// The carried value as its start and what was added to it.
fn followed(rule: &UpdateRule, scope: &Scope<'_>, course: &Course, r: &Retained, l: usize) -> Math {
    let keep = &course.keep;
    let first = keep.times(keep.product("t", "0"), carried_at(rule, r, "0"));
    let inside = scope.at("i", "0", "i-1");
    let gradient = |time: &'static str| match &rule.layer.algo {
        Algo::Step(step) => scope.at(time, "0", "0").var(step.points[0].gradients[l]),
        Algo::Weigh(_) => named("g"),
    };
    let shift = r.linear.as_ref().and_then(|l| l.shift);
    let mut parts = vec![first];
    match &course.moves {
        Moves::Gradient(by, along) => {
            let by = inside.math(*by);
            let step = if *along == Along::Scalar && keep.along != Along::One {
                Keep::any(*along).times(keep.times(keep.product("t", "i"), by), gradient("i"))
            } else {
                keep.times(keep.product("t", "i"), Keep::any(*along).times(by, gradient("i")))
            };
            parts.push(up_to("i<=t", step));
        }
        Moves::Momentum { state, by, .. } => {
            let old = match &rule.layer.algo {
                Algo::Step(step) => at(&rule.layer.terms.var(step.states[*state].old).name, "0"),
                Algo::Weigh(_) => named("S"),
            };
            let begun = up_to("1<=i<=t", scaled(keep.product("t", "i"), call("M", &["i", "0"])));
            parts.push(scaled(begun, old));
            let by = scope.at("j", "0", "j").math(*by);
            parts.push(up_to("j<=t", scaled(scaled(by, call("c", &["t", "j"])), gradient("j"))));
        }
        Moves::Update => {
            let u = inside.var(rule.layer.retention[l].update);
            let write = r.linear.as_ref().and_then(|l| l.write).map(|w| factor(&rule.layer.terms, w));
            let u = match write {
                Some((w, along)) => Keep::any(along).times(inside.math(w), u),
                None => u,
            };
            parts.push(up_to("i<=t", keep.times(keep.product("t", "i"), u)));
        }
    }
    if let Some(shift) = shift {
        parts.push(up_to("i<=t", keep.times(keep.product("t", "i"), inside.math(shift))));
    }
    sum(parts)
}

/// The threshold that a chunk gathers.
fn threshold(rule: &UpdateRule, scope: &Scope<'_>, r: &Retained, gamma: TermId, l: usize) -> Vec<Formula> {
    let index = if rule.retention.len() > 1 { format!("[{}]", l + 1) } else { String::new() };
    let name = |time: &str| at(&format!("Gamma{index}"), time);
    let here = scope.at("t", "t-1", "t-1");
    let (gamma, _) = factor(&rule.layer.terms, gamma);
    let kept = r.linear.as_ref().map(|l| factor(&rule.layer.terms, l.keep));
    let before = match kept {
        Some((k, along)) => Keep::any(along).times(here.math(k), name("t-1")),
        None => name("t-1"),
    };
    vec![Formula::new(name("t"), sum([before, here.math(gamma)])).remarked("from 0 at the chunk's start")]
}

/// What waits for the chunk's end.
fn end(rule: &UpdateRule, scope: &Scope<'_>) -> Option<Step> {
    let here = scope.at("C", "C", "C");
    let mut formulas = Vec::new();
    for (r, weight) in rule.retention.iter().zip(&rule.layer.memory.weights) {
        let carried = carried_at(rule, r, "C");
        match r.inside {
            Inside::Identity | Inside::Mapped | Inside::TokenByToken => {}
            Inside::FrozenScale(_) => {
                formulas.extend(r.value.map(|v| Formula::new(at(&weight.display, "C"), here.math(v))));
            }
            Inside::Threshold(_) => {
                let w = at(&weight.display, "C");
                formulas.push(
                    Formula::new(
                        Math::Prefixed("next chunk's".into(), Box::new(carried_at(rule, r, "0"))),
                        w,
                    )
                    .remarked("and its threshold begins at 0"),
                );
            }
            Inside::ProjectAtEnd => {
                let then = Math::Prefixed("then".into(), Box::new(carried));
                formulas.extend(r.finish.map(|f| Formula::new(then, here.math(f))));
            }
        }
    }
    (!formulas.is_empty()).then(|| Step {
        title: "What waits for the chunk's end".into(),
        choice: "retention",
        formulas,
        reason: "Applied once, when the chunk is full, never when a stream stops inside it; the token that completes the \
                 chunk reads its result."
            .into(),
    })
}
