//! Initial weights and what must hold of them.

use super::bound::{BoundParam, BoundWeight, Layout, Stream};
use super::desk::{Ask, Axis, Desk, Found, entry_text, failing};
use super::params::declared;
use super::sizes::Sizes;
use super::starts::{Scene, slice};
use crate::tensor::Tensor;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_rule as rule;
use miras_spec as spec;
use miras_term as term;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The weights with their initial values (none where a state is continued); None where a problem was noted.
pub(super) fn weights(
    desk: &mut Desk<'_>,
    scene: &Scene<'_>,
    streams: &[Stream],
    continued: bool,
) -> Option<Vec<BoundWeight>> {
    let rule = desk.rule;
    let mut bound = Vec::new();
    for (index, weight) in rule.layer.memory.weights.iter().enumerate() {
        desk.known.insert(format!("memory.{}", weight.name));
        let shape = &rule.layer.terms.var(weight.var).shape;
        let Some(own) = scene.sizes.axes_of(desk, &format!("memory.{}", weight.name), shape, weight.span)
        else {
            continue;
        };
        let sizes_of_one: Vec<usize> = own.iter().map(|a| a.size).collect();
        let ask = ask(rule, weight, scene.sizes, own);
        let Some((initial, given)) = initial(desk, scene, &ask, weight, &sizes_of_one, continued) else {
            continue;
        };
        if let (Some(initial), Some(retained)) = (&initial, rule.retention.get(index))
            && let Err(problem) = inside(rule, scene, streams, &ask, &retained.initial, initial, given)
        {
            desk.problems.push(problem);
            continue;
        }
        let (carried, anchor, remembered) = (None, None, BTreeMap::new());
        bound.push(BoundWeight { shape: sizes_of_one, initial, given, carried, anchor, remembered });
    }
    (bound.len() == rule.layer.memory.weights.len()).then_some(bound)
}

/// The initial value, and whether the data gave it. Outer None: a problem was noted.
#[allow(clippy::type_complexity)]
fn initial(
    desk: &mut Desk<'_>,
    scene: &Scene<'_>,
    ask: &Ask,
    weight: &spec::Weight,
    shape: &[usize],
    continued: bool,
) -> Option<(Option<Arc<Tensor>>, bool)> {
    match desk.optional(ask) {
        Found::Bad => None,
        Found::Good(_) if continued => {
            let message = format!("`{}` has no effect: `state.{}` continues the stream", ask.name, ask.name);
            desk.notes.push(ask.problem(code::UNUSED_TENSOR, message));
            Some((None, true))
        }
        Found::Good(tensor) => Some((Some(tensor), true)),
        Found::Missing if continued => Some((None, false)),
        Found::Missing => match weight.start {
            Some(_) if !scene.complete => None,
            Some(start) => {
                let value = scene.per_head(start, shape, desk.options.width);
                Some((Some(declared(desk, ask, value)?), false))
            }
            None => {
                desk.missing(ask);
                None
            }
        },
    }
}

fn ask(rule: &rule::UpdateRule, weight: &spec::Weight, sizes: &Sizes, own: Vec<Axis>) -> Ask {
    let mut axes = vec![Axis::new("H", sizes.heads)];
    axes.extend(own);
    let who = match rule.layer.choices.iter().find(|c| c.clause == "memory") {
        Some(choice) => format!("`memory: {}`", choice.text),
        None => "the memory".into(),
    };
    Ask { name: format!("memory.{}", weight.name), axes, kind: spec::Kind::Real, who, span: weight.span }
}

/// Checks that initial weights lie strictly inside the domain of their retention.
fn inside(
    rule: &rule::UpdateRule,
    scene: &Scene<'_>,
    streams: &[Stream],
    ask: &Ask,
    domain: &rule::InitialDomain,
    tensor: &Tensor,
    given: bool,
) -> Result<(), Diagnostic> {
    let retention = rule.layer.choices.iter().find(|c| c.clause == "retention");
    let who = retention.map_or("the retention".into(), |c| format!("`retention: {}`", c.text));
    let whose = if given { "" } else { " (not given; its declared start)" };
    let refuse = |what: String, law: String| {
        let message = format!("`{}`{whose} {what}, but {who} needs {law}", ask.name);
        let help = format!("give `{}` strictly inside the domain, shape {}", ask.name, ask.shape());
        let place = retention.and_then(|c| c.span);
        Err(ask.problem(code::OUT_OF_DOMAIN, message).at_opt(place, "this retention").with_help(help))
    };
    match domain {
        rule::InitialDomain::Any => Ok(()),
        rule::InitialDomain::Open(low, high) => match failing(tensor, |x| *low < x && x < *high) {
            None => Ok(()),
            Some(found) => {
                let law = format!("initial weights strictly between {low} and {high}");
                refuse(format!("holds {}", entry_text(tensor, found)), law)
            }
        },
        rule::InitialDomain::Simplex(axis, mass) => {
            if let Some(found) = failing(tensor, |x| x > 0.0) {
                let law = "initial weights greater than 0 (a simplex)".to_string();
                return refuse(format!("holds {}", entry_text(tensor, found)), law);
            }
            if !scene.complete {
                return Ok(());
            }
            match wrong_sum(scene, streams, *axis, *mass, tensor) {
                Ok(None) => Ok(()),
                Ok(Some((slice, sum, mass))) => refuse(
                    format!("sums to {sum} in {slice}"),
                    format!("a sum within 1e-4 * {mass} of the mass {mass}"),
                ),
                Err(e) => {
                    let message = format!("the mass of {who} has no value at the start of a stream: {e}");
                    Err(ask.problem(code::UNSUPPORTED, message).with_help("give the mass as a number"))
                }
            }
        }
    }
}

/// How far a sum may be from the mass, relative to it (docs/guide.md).
const SLACK: f64 = 1e-4;

/// The first slice whose sum is not the mass: its name, its sum and the mass.
fn wrong_sum(
    scene: &Scene<'_>,
    streams: &[Stream],
    axis: term::Axis,
    mass: term::TermId,
    tensor: &Tensor,
) -> Result<Option<(String, f64, f64)>, term::EvalError> {
    let vars = scene.layer.terms.vars_of(&[mass]);
    let per_token = |p: &&BoundParam| matches!(p.layout, Layout::PerToken { .. }) && vars.contains(&p.var);
    let varies = scene.params.iter().find(per_token).is_some();
    let starts: Vec<Option<(usize, usize)>> = match varies {
        false => vec![None],
        true => streams.iter().filter(|s| !s.is_empty()).map(|s| Some((s.row, s.first))).collect(),
    };
    let size: usize = tensor.shape.iter().skip(1).product();
    for head in 0..scene.sizes.heads {
        let Some(weight) = slice(tensor, head * size, size) else { continue };
        for start in &starts {
            let mass = scene.layer.terms.eval_one(mass, &scene.env(head, *start))?;
            let mass = mass.data.first().copied().unwrap_or(f64::NAN);
            for (name, sum) in sums(axis, &tensor.shape[1..], &weight) {
                let close = (sum - mass).abs() <= SLACK * mass;
                if !close {
                    return Ok(Some((format!("head {head}{name}"), sum, mass)));
                }
            }
        }
    }
    Ok(None)
}

/// The sums of one weight's slices, with names.
fn sums(axis: term::Axis, shape: &[usize], weight: &[f64]) -> Vec<(String, f64)> {
    match (axis, shape) {
        (term::Axis::Row, [_, cols]) => {
            let rows = weight.chunks_exact((*cols).max(1)).enumerate();
            rows.map(|(i, row)| (format!(", row {i}"), row.iter().sum())).collect()
        }
        (term::Axis::Column, [_, cols]) => (0..*cols)
            .map(|j| (format!(", column {j}"), weight.iter().skip(j).step_by(*cols).sum()))
            .collect(),
        (term::Axis::Row | term::Axis::Column | term::Axis::All, _) => {
            vec![(String::new(), weight.iter().sum())]
        }
    }
}
