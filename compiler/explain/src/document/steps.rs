//! The derivation, and what each choice puts into it.

use super::{Choice, Step};
use crate::math::{Formula, Math, Scope, named};
use miras_rule::{DerivationStep, UpdateRule};
use miras_term::TermId;
use std::collections::HashMap;

/// Names of intermediate results, of all gradients.
pub(super) fn names(rule: &UpdateRule) -> HashMap<TermId, String> {
    let named = rule.gradients.iter().flat_map(|g| &g.named);
    named.map(|n| (n.term, n.name.clone())).collect()
}

/// What the rule's terms are written within: without a token.
pub(crate) fn scope(rule: &UpdateRule) -> Scope<'_> {
    Scope::new(&rule.layer, names(rule))
}

/// The steps, with intermediate results by name except where they are defined.
pub(super) fn derivation(rule: &UpdateRule) -> Vec<Step> {
    let scope = scope(rule);
    rule.derivation.steps.iter().map(|step| told(&scope, step)).collect()
}

fn told(scope: &Scope<'_>, step: &DerivationStep) -> Step {
    let formulas = step.equations.iter().map(|e| {
        let defined = scope.names.get(&e.right) == Some(&e.left);
        let right = if defined { scope.without(e.right).math(e.right) } else { scope.math(e.right) };
        Formula::new(named(&e.left), right)
    });
    Step {
        title: capitalised(&step.title),
        choice: if step.choice == "rule" { "" } else { step.choice },
        formulas: formulas.collect(),
        reason: sentence(&step.justification),
    }
}

/// With a capital letter at its start.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// With a capital letter, unless a formula comes first, and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let word = text.split_whitespace().next().unwrap_or("");
    let word = word.trim_end_matches([',', ':', ';', '.']);
    let plain = word.chars().count() > 1 && word.chars().all(char::is_alphabetic);
    let text = if plain { capitalised(text) } else { text.to_string() };
    if text.is_empty() || text.ends_with(['.', ':']) { text } else { format!("{text}.") }
}

/// The closed form of one step: the formulas of the last step that no single choice gives, or of the answer.
pub(super) fn closed(steps: &[Step]) -> Vec<Formula> {
    steps.last().map(|s| s.formulas.clone()).unwrap_or_default()
}

/// The four choices, each with the last formula of its own steps.
pub(super) fn choices(rule: &UpdateRule, steps: &[Step]) -> Vec<Choice> {
    (rule.layer.choices.iter())
        .map(|choice| {
            let own = steps.iter().rev().find(|s| s.choice == choice.clause && !s.formulas.is_empty());
            let formulas = own.map_or(&[][..], |s| &s.formulas);
            let contributes = match choice.clause {
                "algo" => formulas.to_vec(),
                "retention" => last_definitions(formulas),
                _ => formulas.last().cloned().into_iter().collect(),
            };
            Choice {
                clause: choice.clause,
                definition: choice.definition.clone(),
                text: choice.text.clone(),
                spelled_out: choice.spelled_out(),
                meant: (choice.arguments.clone(), choice.body.clone()),
                about: choice.about.join(" "),
                contributes,
            }
        })
        .collect()
}

/// The formulas of names, not of conditions.
fn last_definitions(formulas: &[Formula]) -> Vec<Formula> {
    formulas.iter().filter(|f| matches!(f.left, Math::Symbol(_))).cloned().collect()
}
