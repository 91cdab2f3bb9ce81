//! What a token costs that weighs the tokens before it and itself.

use super::{Cost, plus, times};
use miras_base::Dim;
use miras_rule::UpdateRule;
use miras_spec::{Algo, Weigh};
use miras_term::{Role, TermId};

/// Operations for a past token besides its score: the running maximum, the difference to it, the exponential and the
/// sum of weights.
const NORMALISED: i64 = 4;

/// How many tokens a token sees at most, itself among them; None: all before it, or the layer keeps no history.
pub(super) fn window(rule: &UpdateRule) -> Option<u32> {
    match &rule.layer.algo {
        Algo::Weigh(weigh) => weigh.window,
        Algo::Step(_) => None,
    }
}

/// Adds a token's operations: in each refinement and in the answer a score for every token that it sees, and the
/// weighted mean of their keys, in the end of their values.
pub(super) fn count(rule: &UpdateRule, weigh: &Weigh, total: &mut Cost) {
    let Some(answer) = &rule.answer else { return };
    let seen = weigh.window.map_or_else(|| Dim::symbol("T"), |n| Dim::constant(i64::from(n)));
    let refinements = Dim::constant(i64::from(weigh.refinements));
    let passes = plus(&refinements, &Dim::one());
    let (terms, scored) = (rule.terms(), times(&seen, &passes));
    let of_past = |id: TermId| {
        let vars = terms.vars_of(&[id]);
        vars.iter().any(|v| matches!(terms.var(*v).role, Role::Key | Role::Value))
    };
    total.add(terms, &[answer.log_kernel], &scored, of_past);
    total.add(terms, &[answer.log_kernel], &passes, |id| !of_past(id));
    total.add(terms, &[answer.averaged], &seen, of_past);
    total.add(terms, &[answer.averaged], &Dim::one(), |id| !of_past(id));
    let averaged = plus(&times(&Dim::dk(), &refinements), &Dim::dv());
    total.multiply_adds = plus(&total.multiply_adds, &times(&averaged, &seen));
    let weights = times(&scored, &Dim::constant(NORMALISED));
    // The sum of weights divides each mean.
    total.element_wise = plus(&total.element_wise, &plus(&weights, &averaged));
}
