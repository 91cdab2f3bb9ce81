//! W0305: slopes and maps that were declared instead of derived, with what they deviate from.

use crate::rule::UpdateRule;
use crate::tell::formula;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term::TermId;

/// A note for a declared slope and one for a declared map.
pub(super) fn declared(rule: &UpdateRule, derived: Option<TermId>) -> Vec<Diagnostic> {
    let text = |id: TermId| formula(&rule.layer.terms, id);
    let mut found = Vec::new();
    let bias = &rule.layer.choices[1];
    if let Some(slope) = rule.layer.bias.slope {
        let message = format!("the slope of `{}` is declared: dloss/dy = {}", bias.text, text(slope));
        let note = match derived {
            Some(derived) => format!("the derivative of its loss is {}", text(derived)),
            None => "its loss has no derivative in the table".into(),
        };
        let place = rule.layer.bias.slope_span.or(bias.span);
        found.push(Diagnostic::new(code::DECLARED, message).at_opt(place, "declared here").with_note(note));
    }
    let choice = &rule.layer.choices[2];
    if let Some(retention) = rule.layer.retention.first()
        && let Some(map) = map_of(&retention.form)
    {
        let message = format!("the map of `{}` is declared: W' = {}", choice.text, text(map));
        found.push(
            Diagnostic::new(code::DECLARED, message)
                .at_opt(retention.span.or(choice.span), "declared here")
                .with_note(
                    "it solves no objective that Miras was given, so nothing checks that it minimises one",
                ),
        );
    }
    found
}

fn map_of(form: &spec::Form) -> Option<TermId> {
    match form {
        spec::Form::DeclaredDual { map, .. } => Some(*map),
        spec::Form::DeclaredMap { next } => Some(*next),
        spec::Form::Objective { .. } | spec::Form::Lazy { .. } => None,
    }
}
