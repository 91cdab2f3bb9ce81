//! An elaborated layer as text.

use super::{Page, formula};
use miras_spec::{Algo, Domain, Form, Kind, Layer, Param, Per, Retention, Source, Step};
use miras_term::VarId;

pub(crate) fn layer(layer: &Layer) -> String {
    let mut page = Page::default();
    page.inside(format!("layer {}", layer.name), |page| {
        for choice in &layer.choices {
            page.line(format!("{}: {}", choice.clause, choice.text));
        }
        page.line(format!(
            "read: {}; chunk: {}",
            if layer.read_before { "before" } else { "after" },
            layer.chunk
        ));
    });
    page.inside("data", |page| {
        for name in [layer.query, layer.key, layer.value] {
            page.line(declared(layer, name));
        }
        layer.params.iter().for_each(|p| page.line(param(layer, p)));
        for required in &layer.constraints {
            let (left, right) = (&required.constraint.left, &required.constraint.right);
            page.line(format!("where {left} = {right}"));
        }
    });
    page.inside("memory", |page| memory(page, layer));
    page.inside("bias", |page| {
        page.line(format!("loss = {}", formula(&layer.terms, layer.bias.loss)));
        if let Some(slope) = layer.bias.slope {
            page.line(format!("slope = {} (declared)", formula(&layer.terms, slope)));
        }
    });
    for (weight, retention) in layer.memory.weights.iter().zip(&layer.retention) {
        page.inside(format!("retention of {}", weight.display), |page| retained(page, layer, retention));
    }
    page.inside("algo", |page| match &layer.algo {
        Algo::Step(step) => steps(page, layer, step),
        Algo::Weigh(weigh) => {
            page.line(format!("kernel = {}", formula(&layer.terms, weigh.kernel)));
            page.line(format!("refinements = {}", weigh.refinements));
            if let Some(window) = weigh.window {
                page.line(format!("window = {window}"));
            }
        }
    });
    page.text
}

fn declared(layer: &Layer, var: VarId) -> String {
    let var = layer.terms.var(var);
    format!("{}: {}", var.name, var.shape)
}

fn param(layer: &Layer, param: &Param) -> String {
    let kind = match param.kind {
        Kind::Real => "real",
        Kind::Positive => "positive",
        Kind::Unit => "unit",
    };
    let start = |start: Option<miras_term::TermId>| match start {
        Some(start) => format!(", from {}", formula(&layer.terms, start)),
        None => String::new(),
    };
    let source = match param.source {
        Source::Learned(Per::Token) => "learned per token".to_string(),
        Source::Learned(Per::Channel) => "learned per channel".to_string(),
        Source::Learned(Per::Key) => "learned per key".to_string(),
        Source::Learned(Per::Value) => "learned per value".to_string(),
        Source::Learned(Per::Entry) => "learned per entry".to_string(),
        Source::Input => "input".to_string(),
        Source::Trained(from) => format!("trained{}", start(from)),
        Source::Slow(from) => format!("slow{}", start(from)),
    };
    let repeated = if param.repeated { ", repeated" } else { "" };
    let shape = &layer.terms.var(param.var).shape;
    format!("{}: {kind} {shape}, {source}{repeated}; asked for by {}", param.tensor, param.asked_by)
}

fn memory(page: &mut Page, layer: &Layer) {
    for weight in &layer.memory.weights {
        let start = match weight.start {
            Some(start) => format!(" = {}", formula(&layer.terms, start)),
            None => String::new(),
        };
        page.line(format!("weight {}: {}{start}", weight.display, weight.shape));
    }
    let argument = &layer.terms.var(layer.memory.argument).name;
    if let Some(read) = layer.memory.read {
        page.line(format!("read({argument}) = {}", formula(&layer.terms, read)));
    }
    if layer.memory.history {
        page.line("keeps all past keys and values");
    }
}

fn retained(page: &mut Page, layer: &Layer, retention: &Retention) {
    let terms = &layer.terms;
    match &retention.form {
        Form::Objective { local, global, domain: set } => {
            if let Some(local) = local {
                page.line(format!("local = {}", formula(terms, *local)));
            }
            if let Some(global) = global {
                page.line(format!("global = {}", formula(terms, *global)));
            }
            page.line(domain(layer, set));
        }
        Form::Lazy { dual, next, potential, domain: set } => {
            page.line(format!("dual {} = {}", terms.var(dual[1]).name, formula(terms, *next)));
            page.line(format!("potential = {}", formula(terms, *potential)));
            page.line(domain(layer, set));
        }
        Form::DeclaredDual { dual, next, map } => {
            page.line(format!("dual {} = {}", terms.var(dual[1]).name, formula(terms, *next)));
            page.line(format!("{} = {}", terms.var(retention.new_weight).name, formula(terms, *map)));
        }
        Form::DeclaredMap { next } => {
            page.line(format!("{} = {}", terms.var(retention.new_weight).name, formula(terms, *next)));
        }
    }
    if let Some(steps) = retention.newton {
        page.line(format!("solve: newton({steps})"));
    }
}

fn domain(layer: &Layer, domain: &Domain) -> String {
    let f = |id: &miras_term::TermId| formula(&layer.terms, *id);
    match domain {
        Domain::All => "on all tensors".into(),
        Domain::Simplex { axis, mass } => format!("on simplex({axis:?}, {})", f(mass)),
        Domain::Ball { radius } => format!("on ball({})", f(radius)),
        Domain::Interval { low, high } => format!("on interval({}, {})", f(low), f(high)),
    }
}

fn steps(page: &mut Page, layer: &Layer, step: &Step) {
    let terms = &layer.terms;
    if step.repeats > 1 {
        page.line(format!("{} steps per token", step.repeats));
    }
    for point in &step.points {
        for (at, gradient) in point.at.iter().zip(&point.gradients) {
            page.line(format!("{} at {}", terms.var(*gradient).name, formula(terms, *at)));
        }
    }
    for state in &step.states {
        page.line(format!(
            "state {}: {} = {}",
            state.name,
            terms.var(state.old).shape,
            formula(terms, state.start)
        ));
        page.line(format!("{} = {}", terms.var(state.new).name, formula(terms, state.next)));
    }
    for (weight, direction) in layer.memory.weights.iter().zip(&step.direction) {
        page.line(format!("direction of {} = {}", weight.display, formula(terms, *direction)));
    }
}
