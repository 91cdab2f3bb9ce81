//! Plain text for a terminal of 100 columns.

use crate::facts;
use crate::formula;
use crate::wrap::{table, wrap};
use miras_rule::ClassKind;
use miras_schedule::Plan;

/// Columns of the page.
const COLUMNS: usize = 100;

/// A plan as text, lines of at most 100 columns.
pub fn text(plan: &Plan) -> String {
    let mut lines = Vec::new();
    heading(plan, &mut lines);
    choices(plan, &mut lines);
    data(plan, &mut lines);
    derivation(plan, &mut lines);
    class(plan, &mut lines);
    schedule(plan, &mut lines);
    state_and_cost(plan, &mut lines);
    notes(plan, &mut lines);
    lines.join("\n") + "\n"
}

fn heading(plan: &Plan, lines: &mut Vec<String>) {
    lines.push(plan.rule.layer.name.clone());
    lines.push("=".repeat(plan.rule.layer.name.chars().count()));
}

fn section(title: &str, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(title.into());
    lines.push("-".repeat(title.chars().count()));
}

fn choices(plan: &Plan, lines: &mut Vec<String>) {
    section("The four choices", lines);
    for choice in &plan.rule.layer.choices {
        lines.extend(wrap(&format!("  {:<10} ", choice.clause), &" ".repeat(13), &choice.text, COLUMNS));
        let blank = " ".repeat(15);
        if !choice.about.is_empty() {
            lines.extend(wrap(&blank, &blank, &choice.about.join(" "), COLUMNS));
        }
    }
}

fn data(plan: &Plan, lines: &mut Vec<String>) {
    section("What the data supplies", lines);
    let rows: Vec<Vec<String>> = (facts::needed(plan).into_iter())
        .map(|n| vec![n.tensor, n.shape, n.values.to_string(), n.asked_by])
        .collect();
    lines.extend(table("  ", &rows, COLUMNS));
    let mut sizes = facts::named_sizes(plan);
    let equal = plan.rule.layer.constraints.iter().map(|r| &r.constraint);
    sizes.extend(equal.map(|c| format!("{} must equal {}", c.left, c.right)));
    for size in sizes {
        lines.extend(wrap("  ", "    ", &size, COLUMNS));
    }
}

fn derivation(plan: &Plan, lines: &mut Vec<String>) {
    section("Derivation", lines);
    for (number, step) in plan.rule.derivation.steps.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        let from = if step.choice == "rule" { String::new() } else { format!("  [{}]", step.choice) };
        lines.push(format!("  {}. {}{from}", number + 1, step.title));
        for (left, right) in formula::equations(&plan.rule, step) {
            let start = format!("       {left} = ");
            let rest = " ".repeat(11);
            lines.extend(wrap(&start, &rest, &right, COLUMNS));
        }
        let blank = "     ";
        lines.extend(wrap(blank, blank, &step.justification, COLUMNS));
    }
}

fn class(plan: &Plan, lines: &mut Vec<String>) {
    section("Class", lines);
    lines.push(format!("  {}", class_name(plan.rule.class.kind)));
    lines.extend(wrap("  ", "  ", &plan.rule.class.reason, COLUMNS));
}

/// A class in words.
pub(crate) fn class_name(kind: ClassKind) -> &'static str {
    match kind {
        ClassKind::Linear => "linear",
        ClassKind::Delta => "delta family: affine with a rank-one correction",
        ClassKind::DualLinear => "dual-linear: linear in what is carried, gradients depend on the weights",
        ClassKind::General => "general",
        ClassKind::NonParametric => "non-parametric: a weighted history",
        ClassKind::TokenByToken => "token by token",
    }
}

fn schedule(plan: &Plan, lines: &mut Vec<String>) {
    section("Schedule", lines);
    lines.push(format!("  {}", facts::schedule(plan)));
    lines.extend(wrap("  ", "  ", &plan.certificate, COLUMNS));
}

fn state_and_cost(plan: &Plan, lines: &mut Vec<String>) {
    section("State of one stream and head, and operations per token", lines);
    let mut rows: Vec<Vec<String>> = (plan.state.iter())
        .map(|part| {
            let entries =
                part.entries.as_ref().map_or("grows with T".into(), |e| format!("{} entries", e.formula()));
            vec![part.tensor.clone(), part.shape.to_string(), entries]
        })
        .collect();
    rows.extend(facts::cost(&plan.cost).map(|(name, count)| vec![name.to_string(), String::new(), count]));
    lines.extend(table("  ", &rows, COLUMNS));
}

fn notes(plan: &Plan, lines: &mut Vec<String>) {
    let notes = &plan.rule.derivation.notes;
    let warnings = plan.rule.warnings.iter().map(|w| format!("{}: {}", w.code, w.message));
    let all: Vec<String> = notes.iter().cloned().chain(warnings).collect();
    if all.is_empty() {
        return;
    }
    section("Notes", lines);
    for note in all {
        lines.extend(wrap("  - ", "    ", &note, COLUMNS));
    }
}
