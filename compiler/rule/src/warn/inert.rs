//! W0301: a term of a retention's objective that moves nothing.

use crate::algebra::{self, Facts};
use crate::calculus::gradient;
use crate::rule::UpdateRule;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term::{Axis, Op, TermId, Terms};

/// A warning for each term of an objective whose gradient is 0 everywhere, or on a simplex the same for
/// all entries of a slice, where the multiplier of the sum takes it up. One for each definition.
pub(super) fn inert_terms(rule: &mut UpdateRule, facts: &Facts) -> Result<Vec<Diagnostic>, Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let choice = rule.layer.choices[2].clone();
    for retention in rule.layer.retention.clone() {
        let spec::Form::Objective { local, global, domain } = &retention.form else { continue };
        for (term, what) in [(local, "local"), (global, "global")] {
            let Some(term) = term else { continue };
            let derived = gradient(&mut rule.layer.terms, *term, &[retention.new_weight])?;
            let derived = algebra::simplify(&mut rule.layer.terms, derived[0], facts);
            let Some(why) = moves_nothing(&rule.layer.terms, derived, domain) else { continue };
            let message = format!("the {what} term of `{}` has no effect: {why}", choice.text);
            if !found.iter().any(|d| d.message == message) {
                found.push(
                    Diagnostic::new(code::INERT_RETENTION, message)
                        .at_opt(choice.span, "this retention")
                        .at_opt(retention.span, format!("`{what}` is defined here"))
                        .with_help("drop the term, or give it a weight that is not 0"),
                );
            }
        }
    }
    Ok(found)
}

fn moves_nothing(terms: &Terms, derived: TermId, domain: &spec::Domain) -> Option<&'static str> {
    if terms.as_num(derived) == Some(0.0) {
        return Some("its gradient is 0 everywhere");
    }
    let even = "its gradient is the same for all entries of a slice whose sum is fixed";
    match domain {
        spec::Domain::Simplex { axis, .. } => is_even(terms, derived, *axis).then_some(even),
        spec::Domain::All | spec::Domain::Ball { .. } | spec::Domain::Interval { .. } => None,
    }
}

/// Whether a term has one value along the axis.
fn is_even(terms: &Terms, id: TermId, axis: Axis) -> bool {
    let inner = match terms.op(id) {
        Op::Spread(inner, _) => *inner,
        _ => id,
    };
    let shape = terms.shape(inner);
    let single = |i: usize| shape.0.get(i).is_some_and(miras_base::Dim::is_one);
    shape.rank() == 0
        || match axis {
            Axis::All => single(0) && single(1),
            Axis::Row => single(1),
            Axis::Column => single(0),
        }
}
