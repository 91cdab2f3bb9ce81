//! An update rule and its plan as text.

use super::{MOST, Page, formula};
use miras_rule::{ClassKind, Gradient, InitialDomain, Inside, Retained, UpdateRule};
use miras_schedule::Plan;
use miras_term::{PrintOptions, print_within};

pub(crate) fn rule(rule: &UpdateRule) -> String {
    let mut page = Page::default();
    let terms = rule.terms();
    page.line(format!("rule of {}: class {}", rule.layer.name, class(rule.class.kind)));
    if let Some(slope) = rule.slope {
        page.line(format!("dloss/dy = {}", formula(terms, slope)));
    }
    for (n, gradient) in rule.gradients.iter().enumerate() {
        page.inside(format!("gradient at point {n}"), |page| gradients(page, rule, gradient));
    }
    for (weight, retained) in rule.layer.memory.weights.iter().zip(&rule.retention) {
        page.inside(format!("retention of {}", weight.display), |page| retention(page, rule, retained));
    }
    if let Some(answer) = &rule.answer {
        page.line(format!("log kernel = {}", formula(terms, answer.log_kernel)));
        page.line(format!("averaged = {}", formula(terms, answer.averaged)));
    }
    page.text
}

pub(crate) fn plan(plan: &Plan) -> String {
    let mut page = Page::default();
    page.line(format!("schedule {:?}", plan.schedule));
    page.line(format!("because {}", plan.certificate));
    page.inside("state", |page| {
        for part in &plan.state {
            page.line(format!("{}: {}", part.tensor, part.shape));
        }
    });
    page.line(format!(
        "per token: {} multiply-adds, {} others",
        plan.cost.multiply_adds, plan.cost.element_wise
    ));
    page.text
}

/// The class's name.
fn class(kind: ClassKind) -> &'static str {
    match kind {
        ClassKind::Linear => "linear",
        ClassKind::Delta => "delta",
        ClassKind::DualLinear => "dual-linear",
        ClassKind::General => "general",
        ClassKind::NonParametric => "nonparametric",
        ClassKind::TokenByToken => "token by token",
    }
}

/// A gradient through its named intermediates, each in terms of those before it.
fn gradients(page: &mut Page, rule: &UpdateRule, gradient: &Gradient) {
    let terms = rule.terms();
    let mut options = PrintOptions::default();
    for named in &gradient.named {
        page.line(format!("{} = {}", named.name, print_within(terms, named.term, &options, MOST)));
        options.names.entry(named.term).or_insert_with(|| named.name.clone());
    }
    let formula = |id| print_within(terms, id, &options, MOST);
    for (weight, sum) in rule.layer.memory.weights.iter().zip(&gradient.by_weight) {
        let products = sum.products.iter().map(|(a, b)| format!("outer({}, {})", formula(*a), formula(*b)));
        let parts: Vec<String> = products.chain(sum.rest.map(formula)).collect();
        page.line(format!("dloss/d{} = {}", weight.display, parts.join(" + ")));
    }
}

fn retention(page: &mut Page, rule: &UpdateRule, retained: &Retained) {
    let terms = rule.terms();
    let carried = &terms.var(retained.carried).name;
    if let Some(start) = retained.start {
        page.line(format!("{carried} from {}", formula(terms, start)));
    }
    match retained.initial {
        InitialDomain::Any => {}
        InitialDomain::Open(low, high) => page.line(format!("initial entries in ({low}, {high})")),
        InitialDomain::Simplex(axis, mass) => {
            page.line(format!("initial sums over {axis:?} = {}", formula(terms, mass)));
        }
    }
    page.line(format!("{carried}' = {}", formula(terms, retained.advance)));
    if let Some(linear) = &retained.linear {
        page.line(format!("linear, keep = {}", formula(terms, linear.keep)));
    }
    if let Some(value) = retained.value {
        page.line(format!("W = {}", formula(terms, value)));
    }
    if let Some(finish) = retained.finish {
        page.line(format!("then {carried}' = {}", formula(terms, finish)));
    }
    let inside = match retained.inside {
        Inside::Identity => "as carried",
        Inside::Mapped => "mapped at every read",
        Inside::Threshold(_) => "with an accumulated threshold",
        Inside::FrozenScale(_) => "with a frozen scale",
        Inside::ProjectAtEnd => "projected at the chunk's end",
        Inside::TokenByToken => "token by token",
    };
    page.line(format!("inside a frozen chunk: {inside}"));
}
