//! The structure of the outer gradients: what flows back through which carry, what is stopped, what every input's
//! gradient comes through.

use super::low_rank::with_query;
use super::product::{Keep, at, factor, up_to};
use super::steps::scope;
use super::{Backward, Part, Reach, Step};
use crate::math::{Formula, Math, Scope, entries, matmul, named, outer, scaled, sum};
use miras_rule::classify::DeltaForm;
use miras_rule::{ClassKind, Inside, Retained, UpdateRule};
use miras_schedule::{Plan, Schedule};
use miras_spec::{Algo, Form, Source};
use miras_term::{Op, Role, TermId, VarId};

/// What flows back, stopped parts, and the reach of every input.
pub(super) fn backward(plan: &Plan) -> Backward {
    let rule = with_query(&plan.rule);
    let frozen = matches!(plan.schedule, Schedule::ChunkedFrozen(_));
    let mut steps = Vec::new();
    if !rule.layer.memory.history {
        steps.push(reads(&rule, frozen));
        steps.push(carries(&rule, frozen));
        steps.extend(states(&rule));
    }
    let summary = if rule.layer.memory.history {
        "The history is the only carry: a query's cotangent goes to the scores and the values it met, through the \
         normalised weights."
    } else {
        "Write d.X for the derivative of the outer scalar by X. Tokens are gone through backwards, and each carry hands \
         its cotangent to the token before."
    };
    Backward {
        part: Part { summary: summary.into(), steps },
        reaches: reaches(&rule),
        stopped: stopped(&rule),
    }
}

fn cotangent(math: Math) -> Math {
    Math::Cotangent(Box::new(math))
}

/// A vector-Jacobian product: the cotangent of `of`, carried back to `to`.
fn pulled(of: Math, to: Math) -> Math {
    let jacobian = Math::Slope(Box::new(of.clone()), Box::new(to));
    matmul(Math::Transpose(Box::new(jacobian)), cotangent(of))
}

/// How the read's cotangent enters.
fn reads(rule: &UpdateRule, frozen: bool) -> Step {
    let time = if rule.layer.read_before { "t-1" } else { "t" };
    let scope = scope(rule).at("t", time, "t");
    let mut formulas = Vec::new();
    for weight in &rule.layer.memory.weights {
        let w = at(&weight.display, time);
        let direct = rule.layer.memory.read.and_then(|read| match rule.layer.terms.op(read) {
            Op::MatMul(a, z) => {
                let own = matches!(rule.layer.terms.op(*a), Op::Var(v) if *v == weight.var);
                own.then(|| outer(cotangent(at("o", "t")), scope.math(*z)))
            }
            _ => None,
        });
        let more = direct.unwrap_or_else(|| pulled(at("o", "t"), w.clone()));
        let later = if frozen { None } else { Some(named("later")) };
        formulas.push(Formula::new(cotangent(w), sum(later.into_iter().chain([more]))));
    }
    let reason = if frozen {
        "What the token's answer asks for; at the chunk's last token also what the next chunk hands back (behind the last \
         one: the cotangent of the final state, or 0)."
    } else {
        "What later tokens hand back (behind the last one: the cotangent of the final state, or 0), and what this token's \
         answer asks for."
    };
    Step { title: "From the reads".into(), choice: "memory", formulas, reason: reason.into() }
}

/// How the weights' cotangents go back.
fn carries(rule: &UpdateRule, frozen: bool) -> Step {
    let mut formulas = Vec::new();
    for (l, r) in rule.retention.iter().enumerate() {
        let name = rule.layer.terms.var(r.carried).name.clone();
        if r.value.is_some() {
            let w = at(&rule.layer.memory.weights[l].display, "t");
            formulas.push(Formula::new(cotangent(at(&name, "t")), pulled(w, at(&name, "t"))));
        }
        if let (false, Some(exact)) = (frozen, exact_form(rule, r)) {
            formulas.extend(exact);
            continue;
        }
        let right = if frozen { to_the_start(rule, r, l) } else { to_the_token_before(rule, r, l) };
        let before = if frozen { "0" } else { "t-1" };
        formulas.push(Formula::new(cotangent(at(&name, before)), right));
    }
    Step {
        title: "Through the carried weights".into(),
        choice: "retention",
        formulas,
        reason: format!("{} Where a keep is 0 nothing passes through the retained term.", why(rule, frozen)),
    }
}

/// What the weights' cotangents pass.
fn why(rule: &UpdateRule, frozen: bool) -> String {
    if frozen {
        let scale = match rule.retention.iter().any(|r| matches!(r.inside, Inside::FrozenScale(_))) {
            true => " The frozen scale hands its own cotangent to the chunk's start as well.",
            false => "",
        };
        return format!(
            "Inside a chunk the retained part goes straight to the chunk's start. The gradients g of all weights were \
             taken there too, so that their own dependence on the weights (second derivatives of the loss) arrives once \
             for the whole chunk, and not from token to token.{scale}"
        );
    }
    match rule.class.kind {
        ClassKind::Linear => "Only the keep stands between two tokens: what is written does not depend on the weights.",
        ClassKind::Delta
        | ClassKind::DualLinear
        | ClassKind::General
        | ClassKind::NonParametric
        | ClassKind::TokenByToken => {
            "The keep, and the step's own dependence on the weights (second derivatives of the loss, never dropped)."
        }
    }
    .into()
}

/// Kept parts of all tokens, and the gradients that were taken at the start.
fn to_the_start(rule: &UpdateRule, r: &Retained, l: usize) -> Math {
    let name = &rule.layer.terms.var(r.carried).name;
    let weight = at(&rule.layer.memory.weights[l].display, "0");
    let kept = match r.linear.as_ref().map(|linear| factor(&rule.layer.terms, linear.keep)) {
        Some((_, along)) if !matches!(r.inside, Inside::TokenByToken) => {
            let keep = Keep::of(l, rule.retention.len() > 1, along);
            keep.times(keep.product("t", "0"), cotangent(at(name, "t")))
        }
        _ => pulled(at(name, "t"), at(name, "0")),
    };
    let gradients = up_to("i<=C", pulled(at("g", "i"), weight.clone()));
    let gradients = if r.value.is_some() {
        let map = Math::Slope(Box::new(weight), Box::new(at(name, "0")));
        matmul(Math::Transpose(Box::new(map)), gradients)
    } else {
        gradients
    };
    sum([up_to("t<=C", kept), gradients])
}

fn to_the_token_before(rule: &UpdateRule, r: &Retained, l: usize) -> Math {
    let name = &rule.layer.terms.var(r.carried).name;
    let cot = || cotangent(at(name, "t"));
    let kept = match r.linear.as_ref().map(|linear| factor(&rule.layer.terms, linear.keep)) {
        Some((keep, along)) => {
            let scope = scope(rule).at("t", "t-1", "t-1");
            Keep::any(along).times(scope.math(keep), cot())
        }
        None => pulled(at(name, "t"), at(name, "t-1")),
    };
    let update = at(&rule.layer.terms.var(rule.layer.retention[l].update).name, "t");
    sum([kept, pulled(update, at(&rule.layer.memory.weights[l].display, "t-1"))])
}

/// Of a rule that is affine in one weight: the transposed step, written out.
fn exact_form(rule: &UpdateRule, r: &Retained) -> Option<Vec<Formula>> {
    let mut copy = rule.clone();
    let form = copy.delta_form().ok()??;
    let name = copy.layer.terms.var(r.carried).name.clone();
    let (keep, along) = factor(&copy.layer.terms, r.linear.as_ref()?.keep);
    let scope = scope(&copy);
    let kept = |cot: Math| Keep::any(along).times(scope.at("t", "t-1", "t-1").math(keep), cot);
    let cot = |time: &str| cotangent(at(&name, time));
    if copy.layer.repeats() == 1 {
        let parts = [kept(cot("t"))].into_iter().chain(transposed(&form, &scope, "t", "t-1", cot("t")));
        return Some(vec![Formula::new(cot("t-1"), sum(parts))]);
    }
    // The first of a token's steps starts from what retention left.
    let step = [cot("s")].into_iter().chain(transposed(&form, &scope, "s", "s-1", cot("s")));
    Some(vec![
        Formula::new(cot("s-1"), sum(step)).remarked("for each step s of the token, the last one first"),
        Formula::new(cot("t-1"), kept(cotangent(named(&name))))
            .remarked("once, from before the token's first step"),
    ])
}

/// The transposed step without what is kept, applied to a cotangent.
fn transposed(
    form: &DeltaForm,
    scope: &Scope<'_>,
    token: &'static str,
    last: &'static str,
    cot: Math,
) -> Vec<Math> {
    let scope = scope.at(token, last, last);
    let terms = &scope.layer.terms;
    let any = |id: TermId, x: Math| {
        let (id, along) = factor(terms, id);
        Keep::any(along).times(scope.math(id), x)
    };
    let mut parts: Vec<Math> = form.diagonal.map(|d| any(d, cot.clone())).into_iter().collect();
    for c in &form.corrections {
        let met = matmul(cot.clone(), scope.math(c.right));
        let met = match c.scale {
            Some(s) if terms.shape(s).rank() == 0 => scaled(scope.math(s), met),
            Some(s) => entries(scope.math(s), met),
            None => met,
        };
        let back = outer(met, scope.math(c.input));
        parts.push(match (c.entry, back) {
            (Some(e), Math::Neg(back)) => Math::Neg(Box::new(any(e, *back))),
            (Some(e), back) => any(e, back),
            (None, back) => back,
        });
    }
    parts
}

/// How the algorithm's own states go back.
fn states(rule: &UpdateRule) -> Option<Step> {
    let Algo::Step(step) = &rule.layer.algo else { return None };
    let mut rule = rule.clone();
    let facts = miras_rule::algebra::Facts::of_params(&rule.layer.params);
    let mut formulas = Vec::new();
    for s in &step.states {
        let name = rule.layer.terms.var(s.old).name.clone();
        let linear = miras_rule::algebra::collect_linear(&mut rule.layer.terms, s.next, s.old, &facts);
        let free = |rule: &UpdateRule, id: TermId| {
            let roles = rule.layer.terms.vars_of(&[id]).into_iter().map(|v| rule.layer.terms.var(v).role);
            roles.into_iter().all(|r| matches!(r, Role::Parameter(_)))
        };
        let right = match linear {
            Some((fade, _)) if free(&rule, fade) => {
                let (fade, along) = factor(&rule.layer.terms, fade);
                let scope = scope(&rule).at("t", "t-1", "t-1");
                Keep::any(along).times(scope.math(fade), cotangent(at(&name, "t")))
            }
            _ => pulled(at(&name, "t"), at(&name, "t-1")),
        };
        formulas.push(Formula::new(cotangent(at(&name, "t-1")), right));
    }
    (!formulas.is_empty()).then(|| Step {
        title: "Through the algorithm's state".into(),
        choice: "algo",
        formulas,
        reason: "From token to token, also inside a chunk: the algorithm's recurrence is never frozen."
            .into(),
    })
}

/// Through what the gradient of every input comes.
fn reaches(rule: &UpdateRule) -> Vec<Reach> {
    let layer = &rule.layer;
    let parts = parts(rule);
    let through = |var: VarId| -> Vec<&'static str> {
        let used = parts.iter().filter(|(_, terms)| layer.terms.vars_of(terms).contains(&var));
        used.map(|(name, _)| *name).collect()
    };
    let tokens = [("q", layer.query), ("k", layer.key), ("v", layer.value)];
    let mut rows: Vec<Reach> = (tokens.iter())
        .map(|(name, var)| Reach { tensor: (*name).into(), through: through(*var), summed: "" })
        .collect();
    for p in &layer.params {
        let summed = match p.source {
            Source::Learned(_) | Source::Input => "",
            Source::Trained(_) | Source::Slow(_) => "tokens and rows",
        };
        rows.push(Reach { tensor: p.tensor.clone(), through: through(p.var), summed });
    }
    for w in &layer.memory.weights {
        rows.push(Reach {
            tensor: format!("memory.{}", w.name),
            through: vec!["the first carried value"],
            summed: "rows",
        });
    }
    rows
}

/// The parts of a rule by name, each with its terms.
fn parts(rule: &UpdateRule) -> Vec<(&'static str, Vec<TermId>)> {
    let layer = &rule.layer;
    let mut gradient: Vec<TermId> = Vec::new();
    for g in &rule.gradients {
        for s in &g.by_weight {
            gradient.extend(s.products.iter().flat_map(|(a, b)| [*a, *b]));
            gradient.extend(s.rest);
        }
    }
    let (mut algo, mut used) = (Vec::new(), false);
    match &layer.algo {
        Algo::Step(step) => {
            algo.extend(step.direction.iter().copied());
            algo.extend(step.states.iter().flat_map(|s| [s.next, s.start]));
            let roles = layer.terms.vars_of(&algo).into_iter().map(|v| layer.terms.var(v).role);
            used = roles.into_iter().any(|r| matches!(r, Role::Gradient { .. }));
        }
        // Its kernel is part of the answer.
        Algo::Weigh(_) => {}
    }
    if !used {
        gradient.clear();
    }
    let mut retention = Vec::new();
    for r in &rule.retention {
        retention.push(r.advance);
        retention.extend([r.value, r.finish, r.start, r.retained].into_iter().flatten());
    }
    let answer = rule.answer.iter().flat_map(|a| [a.log_kernel, a.averaged]).collect();
    vec![
        ("the read", layer.memory.read.into_iter().collect()),
        ("the inner gradient", gradient),
        ("the algorithm", algo),
        ("retention", retention),
        ("the answer over the history", answer),
    ]
}

/// What no outer gradient passes.
fn stopped(rule: &UpdateRule) -> Vec<String> {
    let layer = &rule.layer;
    let scope: Scope<'_> = scope(rule);
    let mut lines = Vec::new();
    for (name, terms) in parts(rule) {
        for id in layer.terms.reachable(&terms) {
            if let Op::Stop(inner) = layer.terms.op(id) {
                lines.push(format!("stop in {name}: nothing passes {}", scope.math(*inner).text()));
            }
        }
    }
    if layer.bias.slope.is_some() {
        lines.push(
            "The declared slope is differentiated as it stands; the loss beside it takes no part.".into(),
        );
    }
    if layer.retention.iter().any(|r| matches!(r.form, Form::DeclaredMap { .. } | Form::DeclaredDual { .. }))
    {
        lines.push("The declared map of retention is differentiated as it stands.".into());
    }
    if lines.iter().all(|l| !l.starts_with("stop")) {
        lines.insert(
            0,
            "Nothing is stopped: the gradient of the inner gradient (second order) is part of every result."
                .into(),
        );
    }
    lines.dedup();
    lines
}

impl Reach {
    /// Its path in words.
    pub fn words(&self) -> String {
        let through = match self.through.as_slice() {
            [] => "nothing: it is 0".to_string(),
            parts => format!("through {}", parts.join(", ")),
        };
        if self.summed.is_empty() { through } else { format!("{through}; summed over {}", self.summed) }
    }
}
