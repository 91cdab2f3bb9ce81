//! The steps from the four choices to the closed form.

use super::shared::shorten;
use crate::calculus::simplify::refold;
use crate::classify::{Parts, WrittenOut, retained};
use crate::rule::{Answer, DerivationStep, Equation, Gradient, Named, Retained};
use miras_spec as spec;
use miras_term::{Mismatch, TermId};
use std::collections::HashMap;

/// Where the slope of the bias comes from.
#[derive(Clone, Debug)]
pub(crate) struct SlopeFrom {
    /// dloss/dy.
    pub term: TermId,
    /// Whether the definition declares it.
    pub declared: bool,
    /// Names of the rules that shortened it.
    pub rules: Vec<&'static str>,
}

/// All steps in order: memory, bias, gradient, algorithm, retention, closed form.
pub(crate) fn steps(
    layer: &mut spec::Layer,
    slope: Option<&SlopeFrom>,
    parts: Option<(Parts<'_>, &WrittenOut)>,
    answer: Option<&Answer>,
    retention: Vec<DerivationStep>,
) -> Result<Vec<DerivationStep>, Mismatch> {
    let mut steps = vec![memory(layer)];
    steps.extend(slope.map(|s| bias(layer, s)));
    if let Some((parts, _)) = parts {
        for (p, gradient) in parts.gradients.iter().enumerate() {
            steps.push(inner_gradient(layer, parts, p, gradient)?);
        }
        steps.push(algorithm(layer, parts.step));
    }
    steps.extend(retention);
    if let Some((parts, written)) = parts {
        steps.push(closed_form(layer, parts, written)?);
    }
    steps.extend(answer.map(|a| weighed(layer, a)));
    let gradients = parts.iter().flat_map(|(p, _)| p.gradients);
    let named = gradients.flat_map(|g| &g.named).map(|n| n.term).collect();
    for step in &mut steps {
        shorten(&mut layer.terms, &named, step)?;
    }
    Ok(steps)
}

fn equation(left: impl Into<String>, right: TermId) -> Equation {
    Equation { left: left.into(), right }
}

fn memory(layer: &spec::Layer) -> DerivationStep {
    let argument = &layer.terms.var(layer.memory.argument).name;
    let (equations, justification) = match layer.memory.read {
        Some(read) => {
            let weights: Vec<String> =
                layer.memory.weights.iter().map(|w| format!("{}: {}", w.display, w.shape)).collect();
            let read = vec![equation(format!("M({argument})"), read)];
            (read, format!("as defined, with the weights {}", weights.join(", ")))
        }
        None => (Vec::new(), "it keeps every key and value and has no weights".into()),
    };
    DerivationStep { choice: "memory", title: "What the memory answers".into(), equations, justification }
}

fn bias(layer: &spec::Layer, slope: &SlopeFrom) -> DerivationStep {
    let justification = match (slope.declared, slope.rules.is_empty()) {
        (true, _) => "the slope is declared in place of the loss's derivative".into(),
        (false, true) => "derivative of the loss, entry by entry".into(),
        (false, false) => format!("derivative of the loss, shortened by: {}", slope.rules.join("; ")),
    };
    DerivationStep {
        choice: "bias",
        title: "Slope of the loss at the answer".into(),
        equations: vec![equation("loss", layer.bias.loss), equation("dloss/dy", slope.term)],
        justification,
    }
}

/// d loss / d W through the read, as outer products.
fn inner_gradient(
    layer: &mut spec::Layer,
    parts: Parts<'_>,
    p: usize,
    gradient: &Gradient,
) -> Result<DerivationStep, Mismatch> {
    let mut equations = Vec::new();
    let retained = retained(layer, parts)?;
    for (var, at) in gradient.at_vars.iter().zip(&parts.step.points[p].at) {
        if layer.memory.weights.iter().all(|w| w.var != *var) {
            let at = layer.terms.substitute_one(*at, &retained)?;
            equations.push(equation(layer.terms.var(*var).name.clone(), at));
        }
    }
    equations.extend(gradient.named.iter().map(named));
    for (var, sum) in gradient.at_vars.iter().zip(&gradient.by_weight) {
        let name = format!("dloss/d{}", layer.terms.var(*var).name);
        equations.extend(sum.whole.map(|whole| equation(name, whole)));
    }
    let outer = gradient.by_weight.iter().all(|s| s.rest.is_none());
    let justification = if outer {
        "reverse mode through read; the gradient of a product W @ h is the outer product delta (x) h"
    } else {
        "reverse mode through read"
    };
    Ok(DerivationStep {
        choice: "rule",
        title: "Inner gradient".into(),
        equations,
        justification: justification.into(),
    })
}

fn named(named: &Named) -> Equation {
    equation(named.name.clone(), named.term)
}

fn algorithm(layer: &spec::Layer, step: &spec::Step) -> DerivationStep {
    let name = |v| layer.terms.var(v).name.clone();
    let mut equations: Vec<Equation> = step.states.iter().map(|s| equation(name(s.new), s.next)).collect();
    for (retention, direction) in layer.retention.iter().zip(&step.direction) {
        equations.push(equation(name(retention.update), *direction));
    }
    let justification = if step.repeats > 1 {
        format!("as defined; {} steps per token, after one retention with u = 0", step.repeats)
    } else {
        "as defined".into()
    };
    DerivationStep { choice: "algo", title: "What is added to the weights".into(), equations, justification }
}

/// The carried value after a token, written out.
fn closed_form(
    layer: &mut spec::Layer,
    parts: Parts<'_>,
    written: &WrittenOut,
) -> Result<DerivationStep, Mismatch> {
    let mut equations = Vec::new();
    for (l, r) in parts.retention.iter().enumerate() {
        let carried = layer.terms.var(r.carried).name.clone();
        let u = written.updates[l];
        if parts.step.repeats > 1 {
            equations.extend(repeated(layer, r, u, &carried)?);
        } else {
            let next = layer.terms.substitute_one(r.advance, &HashMap::from([(r.update, u)]))?;
            equations.push(equation(format!("{carried}'"), next));
        }
        equations.extend(r.finish.map(|f| equation(format!("then {carried}'"), f)));
        equations.extend(r.value.map(|v| equation(layer.memory.weights[l].display.clone(), v)));
    }
    let rights: Vec<TermId> = equations.iter().map(|e| e.right).collect();
    for (e, right) in equations.iter_mut().zip(refold(&mut layer.terms, &rights)?) {
        e.right = right;
    }
    let justification = match parts.step.repeats {
        1 => "retention and step put together; what is read after it is W'".into(),
        n => format!("retention once, then {n} steps, each from the weights that the one before left"),
    };
    Ok(DerivationStep { choice: "rule", title: "Closed form of one step".into(), equations, justification })
}

/// Retention with u = 0, then one of the steps.
fn repeated(
    layer: &mut spec::Layer,
    r: &Retained,
    u: TermId,
    carried: &str,
) -> Result<[Equation; 2], Mismatch> {
    let shape = layer.terms.var(r.update).shape.clone();
    let zero = layer.terms.fill(0.0, shape);
    let kept = layer.terms.substitute_one(r.advance, &HashMap::from([(r.update, zero)]))?;
    let before = layer.terms.use_var(r.carried);
    let after = layer.terms.add(before, u)?;
    Ok([
        equation(format!("once per token: {carried}"), kept),
        equation(format!("each step: {carried}'"), after),
    ])
}

fn weighed(layer: &spec::Layer, answer: &Answer) -> DerivationStep {
    let value = layer.terms.var(layer.value).name.clone();
    let mut justification =
        "the weighted sum of slopes is 0 at the mean with normalised kernel weights".to_string();
    if let spec::Algo::Weigh(weigh) = &layer.algo {
        if let Some(window) = weigh.window {
            justification += &format!("; only the last {window} tokens take part");
        }
        if weigh.refinements > 0 {
            let (q, k) = (&layer.terms.var(layer.query).name, &layer.terms.var(layer.key).name);
            justification +=
                &format!("; {} times before, {q} becomes the mean of the kept {k}", weigh.refinements);
        }
    }
    DerivationStep {
        choice: "algo",
        title: "The answer over the history".into(),
        equations: vec![
            equation("log kernel", answer.log_kernel),
            equation(format!("averaged, for each kept {value}"), answer.averaged),
        ],
        justification,
    }
}
