//! Chunks of a rule that is affine in one weight: masked products, and a unit-triangular system where the step
//! depends on the weight.

use super::low_rank::{Read, reads, with_query};
use super::product::{Along, Keep, at, factor, up_to};
use super::steps::scope;
use super::{Part, Step};
use crate::math::{Formula, Math, Scope, entries, named, negated, outer, scaled, sum};
use miras_rule::algebra::{self, Facts};
use miras_rule::classify::{Correction, DeltaForm};
use miras_rule::gradient::outer::{as_outer, summands};
use miras_rule::{UpdateRule, calculus::fold};
use miras_term::TermId;

/// What every token writes: `left (x) right`, the left sides of corrections being unknowns.
struct Write {
    left: Left,
    right: TermId,
}

enum Left {
    /// A term of the token.
    Known(TermId),
    /// An unknown with its name, the corrections' terms and what is added to them.
    Solved { name: String, correction: Correction, plus: Option<TermId> },
}

/// A step taken apart.
struct Taken {
    keep: Keep,
    keep_term: TermId,
    writes: Vec<Write>,
    /// What is written besides outer products, in the weight's shape.
    rest: Option<TermId>,
    /// Several steps for each token: decay comes before a token's first one.
    steps: u32,
}

/// The parallel form of a chunk; None where the rule has no such form that could be written down.
pub(super) fn exact(rule: &UpdateRule) -> Option<Part> {
    let mut rule = with_query(rule);
    let form = rule.delta_form().ok()??;
    let taken = take(&mut rule, &form)?;
    let (token, last) = if taken.steps > 1 { ("s", "s-1") } else { ("t", "t-1") };
    let scope = scope(&rule).at(token, "0", last);
    let mut steps = kept(&taken, &scope, token);
    steps.extend(solved(&taken, &scope, token, last));
    steps.push(weights(&rule, &taken, &scope, token));
    steps.extend(answers(&rule, &taken, &scope));
    steps.push(end(&rule, &taken, &scope));
    Some(Part { summary: summary(&taken), steps })
}

fn take(rule: &mut UpdateRule, form: &DeltaForm) -> Option<Taken> {
    let steps = rule.layer.repeats();
    let linear = rule.retention.first()?.linear.clone()?;
    if steps > 1 && form.diagonal.is_some() {
        return None;
    }
    let facts = Facts::of_params(&rule.layer.params);
    let terms = &mut rule.layer.terms;
    let keep_term = match form.diagonal {
        Some(d) => {
            let both = fold::plus(terms, linear.keep, d).ok()?;
            algebra::simplify(terms, both, &facts)
        }
        None => linear.keep,
    };
    let (keep_term, along) = factor(terms, keep_term);
    let mut parts = Vec::new();
    for written in form.write.into_iter().chain(linear.shift) {
        parts.extend(summands(terms, written).ok()?);
    }
    let (mut known, mut rest) = (Vec::new(), None);
    for part in parts {
        match as_outer(terms, part).ok()? {
            Some(pair) => known.push(pair),
            None => rest = Some(rest.map_or(Ok(part), |r| fold::plus(terms, r, part)).ok()?),
        }
    }
    Some(Taken { keep: Keep::any(along), keep_term, writes: writes(form, known), rest, steps })
}

/// Corrections first, each with what is written under the same right side.
fn writes(form: &DeltaForm, mut known: Vec<(TermId, TermId)>) -> Vec<Write> {
    let several = form.corrections.len() > 1;
    let mut writes: Vec<Write> = (form.corrections.iter().enumerate())
        .map(|(n, correction)| {
            let shared = known.iter().position(|(_, right)| *right == correction.right);
            let plus = shared.map(|at| known.remove(at).0);
            let name = if several { format!("w[{}]", n + 1) } else { "w".into() };
            let left = Left::Solved { name, correction: *correction, plus };
            Write { left, right: correction.right }
        })
        .collect();
    writes.extend(known.into_iter().map(|(left, right)| Write { left: Left::Known(left), right }));
    writes
}

fn summary(taken: &Taken) -> String {
    let solved = taken.writes.iter().any(|w| matches!(w.left, Left::Solved { .. }));
    let steps = match taken.steps {
        1 => String::new(),
        n => format!(
            " A token makes {n} steps; s counts the steps of the chunk, and only the first step of a token decays \
             (its keep is that of the token, the keep of the others is 1)."
        ),
    };
    let form = if solved {
        "The step is affine in the weight with corrections of rank one: with the vectors w of the chunk solved from one \
         unit-triangular system (the WY form), all its tokens are computed together, and the result is that of the \
         recurrence."
    } else {
        "What a token writes does not depend on the weight: all tokens of a chunk are computed together by masked \
         products, and the result is that of the recurrence."
    };
    format!("{form} W_0 is the weight at the chunk's start, t = 1..C.{steps}")
}

fn kept(taken: &Taken, scope: &Scope<'_>, token: &'static str) -> Vec<Step> {
    let formulas = taken.keep.formulas(scope, taken.keep_term, token);
    if formulas.is_empty() {
        return Vec::new();
    }
    vec![Step {
        title: "What is left of a write after some tokens".into(),
        choice: "retention",
        formulas,
        reason: "The product of the keeps between two tokens and of nothing else; never a quotient, so that a keep of 0 \
                 (a hard reset) is exact."
            .into(),
    }]
}

/// A left side at a token.
fn left(write: &Write, scope: &Scope<'_>, token: &'static str) -> Math {
    match &write.left {
        Left::Known(id) => scope.at(token, "0", token).math(*id),
        Left::Solved { name, .. } => at(name, token),
    }
}

/// The sum over tokens of what was written, decayed, applied to `z`.
fn written_on(taken: &Taken, scope: &Scope<'_>, upto: &str, range: &str, z: &Math) -> Vec<Math> {
    let factor = taken.keep.product(upto, "i");
    let term = |w: &Write| {
        let right = scope.at("i", "0", "i").math(w.right);
        let body = taken.keep.applied_outer(factor.clone(), left(w, scope, "i"), right, z.clone());
        up_to(range, body)
    };
    let rest = taken.rest.map(|r| {
        let r = scope.at("i", "0", "i").math(r);
        up_to(range, taken.keep.applied(factor.clone(), r, z.clone()))
    });
    taken.writes.iter().map(term).chain(rest).collect()
}

/// The unit-triangular system.
fn solved(taken: &Taken, scope: &Scope<'_>, token: &'static str, last: &'static str) -> Option<Step> {
    let here = scope.at(token, "0", last);
    let mut formulas = Vec::new();
    for write in &taken.writes {
        let Left::Solved { name, correction, plus } = &write.left else { continue };
        let input = here.math(correction.input);
        // What W met the input as: W before the step, or what retention leaves of it.
        let entry = correction.entry.map(|e| factor(&scope.layer.terms, e));
        let decayed = taken.steps > 1 || entry.is_some_and(|(e, _)| e == taken.keep_term);
        let upto = if decayed { token } else { last };
        let mut met = vec![taken.keep.applied(taken.keep.product(upto, "0"), weight_0(scope), input.clone())];
        met.extend(written_on(taken, scope, upto, &format!("i<{token}"), &input));
        let mut met = sum(met);
        if let (Some((e, along)), false) = (entry, decayed) {
            // Another factor meets W entry by entry: it goes with the input or the answer.
            let keep = Keep::any(along);
            let whole = taken.keep.times(taken.keep.product(last, "0"), weight_0(scope));
            met = keep.applied(here.math(e), sum([whole, rest_of(taken, scope, last, token)]), input);
        }
        let scale = correction.scale.map(|s| here.math(s));
        let scalar = correction.scale.is_some_and(|s| scope.layer.terms.shape(s).rank() == 0);
        let right = right_side(scale, scalar, met, plus.map(|p| here.math(p)));
        formulas.push(Formula::new(at(name, token), right));
    }
    if formulas.is_empty() {
        return None;
    }
    Some(Step {
        title: "What each token writes: a unit-triangular system".into(),
        choice: "",
        formulas,
        reason: format!(
            "The step of token {token} needs the weight before it, which holds what the tokens i < {token} wrote: a system \
             with 1 on its diagonal and nothing above, solved by forward substitution."
        ),
    })
}

fn rest_of(taken: &Taken, scope: &Scope<'_>, last: &str, token: &str) -> Math {
    let outers = taken.writes.iter().map(|w| {
        let right = scope.at("i", "0", "i").math(w.right);
        let body = taken.keep.times(taken.keep.product(last, "i"), outer(left(w, scope, "i"), right));
        up_to(&format!("i<{token}"), body)
    });
    sum(outers)
}

/// `plus + scale * met`, as `eta * (v - met)` where both share the factor.
fn right_side(scale: Option<Math>, scalar: bool, met: Math, plus: Option<Math>) -> Math {
    let times = |a: Math, b: Math| if scalar { scaled(a, b) } else { entries(a, b) };
    let positive = match &scale {
        Some(Math::Neg(s)) => Some((**s).clone()),
        _ => None,
    };
    match (scale, plus, positive) {
        (_, Some(Math::Times(a, b, _)), Some(s)) if *a == s => times(s, sum([*b, negated(met)])),
        (_, Some(Math::Times(b, a, _)), Some(s)) if *a == s => times(s, sum([*b, negated(met)])),
        (Some(s), plus, _) => sum(plus.into_iter().chain([times(s, met)])),
        (None, plus, _) => sum(plus.into_iter().chain([met])),
    }
}

fn weight_0(scope: &Scope<'_>) -> Math {
    scope.layer.memory.weights.first().map_or(Math::Number(0.0), |w| at(&w.display, "0"))
}

fn weights(rule: &UpdateRule, taken: &Taken, scope: &Scope<'_>, token: &'static str) -> Step {
    Step {
        title: "The weight at any token".into(),
        choice: "",
        formulas: vec![Formula::new(weight(rule, token), weight_at(taken, scope, token))],
        reason: "Never stored: it is read through the products below.".into(),
    }
}

fn weight(rule: &UpdateRule, token: &str) -> Math {
    rule.layer.memory.weights.first().map_or(named("W"), |w| at(&w.display, token))
}

fn weight_at(taken: &Taken, scope: &Scope<'_>, token: &'static str) -> Math {
    let keep = &taken.keep;
    let mut parts = vec![keep.times(keep.product(token, "0"), weight_0(scope))];
    let inside = scope.at("i", "0", "i");
    let factor = keep.product(token, "i");
    let range = format!("i<={token}");
    for w in &taken.writes {
        let written = outer(left(w, scope, "i"), inside.math(w.right));
        parts.push(up_to(&range, keep.times(factor.clone(), written)));
    }
    if let Some(rest) = taken.rest {
        parts.push(up_to(&range, keep.times(factor, inside.math(rest))));
    }
    sum(parts)
}

/// What q reads at every token.
fn answers(rule: &UpdateRule, taken: &Taken, scope: &Scope<'_>) -> Option<Step> {
    let reads = reads(rule)?;
    let before = rule.layer.read_before;
    let (upto, range) = match (before, taken.steps) {
        (true, 1) => ("t-1", "i<t".to_string()),
        (true, n) => ("s", format!("i<={n}(t-1)")),
        (false, 1) => ("t", "i<=t".to_string()),
        (false, n) => ("s", format!("i<={n}t")),
    };
    let here = scope.at("t", "0", "t");
    let mut formulas = Vec::new();
    let mut named_reads = here.clone();
    for Read { name, term, input, .. } in &reads.products {
        let z = named_reads.math(*input);
        let keep = &taken.keep;
        let mut parts = vec![keep.applied(keep.product(upto, "0"), weight_0(scope), z.clone())];
        parts.extend(written_on(taken, scope, upto, &range, &z));
        let whole = *term == reads.answer;
        let left = if whole { at("o", "t") } else { at(name, "t") };
        formulas.push(Formula::new(left, sum(parts)));
        named_reads = named_reads.with(*term, name);
    }
    if reads.products.iter().all(|r| r.term != reads.answer) {
        formulas.push(Formula::new(at("o", "t"), named_reads.math(reads.answer)));
    }
    let steps = match (taken.steps, before) {
        (1, _) => String::new(),
        (n, false) => format!(" Token t reads after its last step, s = {n} t."),
        (n, true) => format!(" Token t reads before its first step, s = {n} (t - 1)."),
    };
    Some(Step {
        title: "What every token reads".into(),
        choice: "memory",
        formulas,
        reason: format!(
            "For all t at once: a product with the chunk's first weight, and a masked product of queries and keys (its \
             entries above the diagonal are not computed) times what was written.{steps}"
        ),
    })
}

fn end(rule: &UpdateRule, taken: &Taken, scope: &Scope<'_>) -> Step {
    let at_end = |math: Math| replaced(math, taken.steps);
    let token = if taken.steps > 1 { "s" } else { "t" };
    Step {
        title: "The state that the chunk leaves".into(),
        choice: "",
        formulas: vec![Formula::new(weight(rule, "C"), at_end(weight_at(taken, scope, token)))],
        reason: match taken.keep.along {
            Along::One => "One product of what was written with its keys; the next chunk starts from it.".into(),
            _ => "One product of what was written, decayed to the chunk's end, with its keys; the next chunk starts \
                  from it."
                .into(),
        },
    }
}

/// The same formula at the chunk's last token.
fn replaced(math: Math, steps: u32) -> Math {
    let (from, to) = if steps > 1 { ("s", format!("{steps}C")) } else { ("t", "C".to_string()) };
    crate::math::moved(math, from, &to)
}
