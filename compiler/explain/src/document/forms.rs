//! The same rule in other forms that papers print.

use super::Step;
use super::steps::scope;
use crate::math::{Formula, Math, Scope, call, difference, named, negated, over, scaled, sum, word};
use miras_rule::{Retained, UpdateRule, algebra};
use miras_spec::Form;
use miras_term::{Op, Role, TermId};

/// Other forms: the papers' step sizes, the follow-the-regularised-leader form.
pub(super) fn forms(rule: &UpdateRule) -> Vec<Step> {
    let scope = scope(rule);
    papers(rule, &scope).into_iter().chain(leader(rule, &scope)).collect()
}

/// How the papers' step sizes map to the fraction forgotten, where keep = 1 - alpha.
fn papers(rule: &UpdateRule, scope: &Scope<'_>) -> Option<Step> {
    let both = |form: &Form| matches!(form, Form::Objective { local: Some(_), global: Some(_), .. });
    if !rule.layer.retention.iter().any(|r| both(&r.form)) {
        return None;
    }
    let keep = rule.retention.iter().find_map(|r| r.linear.as_ref())?.keep;
    let alpha = scope.math(forgotten(rule, keep)?);
    let one_over = |name: &str| Math::Fraction(Box::new(Math::Number(1.0)), Box::new(named(name)));
    let total = || sum([one_over("eta_D"), one_over("alpha_G")]);
    let over_total = |top: Math| Math::Fraction(Box::new(top), Box::new(total()));
    Some(Step {
        title: "The papers' step sizes".into(),
        choice: "retention",
        formulas: vec![
            Formula::new(alpha, over_total(one_over("alpha_G"))),
            Formula::new(named("u"), negated(over_total(named("g")))),
        ],
        reason: "With D / eta_D and G / alpha_G in place of the weights that the definition gives its local and its global \
                 term, the minimiser is the same with these."
            .into(),
    })
}

/// The parameter a of a keep `1 - a`, however it is spelled.
fn forgotten(rule: &UpdateRule, keep: TermId) -> Option<TermId> {
    let mut terms = rule.layer.terms.clone();
    let facts = algebra::Facts::of_params(&rule.layer.params);
    let one = terms.num(1.0);
    let rest = terms.sub(one, keep).ok()?;
    let mut rest = algebra::simplify(&mut terms, rest, &facts);
    while let Op::Spread(a, _) | Op::Row(a) | Op::Col(a) = terms.op(rest) {
        rest = *a;
    }
    match terms.op(rest) {
        Op::Var(v) if matches!(terms.var(*v).role, Role::Parameter(_)) => Some(rest),
        _ => None,
    }
}

/// The follow-the-regularised-leader form beside the learning-retaining one (Miras Proposition 3.2).
fn leader(rule: &UpdateRule, scope: &Scope<'_>) -> Option<Step> {
    let terms = &rule.layer.terms;
    let at = rule.retention.iter().position(|r| r.value.is_some() && r.start.is_some())?;
    let r: &Retained = &rule.retention[at];
    let (start, linear) = (r.start?, r.linear.as_ref()?);
    let kept = terms.as_num(linear.keep) == Some(1.0);
    let weight = &rule.layer.memory.weights[at];
    let w = named(&weight.display);
    let carried = &terms.var(r.carried).name;
    let update = &terms.var(r.update).name;
    let product = |t: &str, i: &str| if kept { Math::Number(1.0) } else { call("P", &[t, i]) };
    let paired = |x: Math| crate::math::inner(x, w.clone());
    let past = over("i<=t", scaled(product("t", "i"), paired(super::product::at(update, "i"))));
    let first = scaled(product("t", "0"), paired(super::product::at(carried, "0")));
    let potential = Math::Call("F".into(), "", vec![w.clone()]);
    let objective = difference(difference(potential, past), first);
    let argmin = Math::Call("argmin".into(), "", vec![objective]);
    Some(Step {
        title: "Follow-the-regularised-leader form (Miras Proposition 3.2)".into(),
        choice: "retention",
        formulas: vec![
            Formula::new(super::product::at(&weight.display, "t"), argmin),
            Formula::new(Math::Call("F'".into(), "", vec![w.clone()]), scope.math(start)),
            Formula::new(word("learning-retaining"), local(rule, scope, at)?),
        ],
        reason: "The first minimises over everything that was written so far, the last one step from the weights before; \
                 both give the same weights, since F' turns the sum into the recurrence of the carried value. P(t, i) is \
                 the product of the keeps after i."
            .into(),
    })
}

/// The one-step objective as it is defined.
fn local(rule: &UpdateRule, scope: &Scope<'_>, at: usize) -> Option<Math> {
    let retention = rule.layer.retention.get(at)?;
    let Form::Objective { local, global, .. } = &retention.form else { return None };
    let (u, w) = (scope.var(retention.update), scope.var(retention.new_weight));
    let parts = [*local, *global].into_iter().flatten().map(|t| scope.math(t));
    let objective = sum(parts.chain([negated(crate::math::inner(u, w))]));
    Some(Math::Call("argmin".into(), "", vec![objective]))
}
