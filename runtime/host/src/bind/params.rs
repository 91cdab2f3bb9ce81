//! Gates, inputs, trained and slow tensors.

use super::bound::{BoundParam, Layout};
use super::desk::{Ask, Axis, Desk, Found};
use super::sizes::Sizes;
use super::starts::Scene;
use crate::tensor::Tensor;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term as term;
use std::sync::Arc;

/// All parameters of the layer; None where a problem was noted.
pub(super) fn params(desk: &mut Desk<'_>, sizes: &Sizes) -> Option<Vec<BoundParam>> {
    let layer = &desk.rule.layer;
    let mut bound = Vec::new();
    for param in &layer.params {
        bound.extend(one(desk, sizes, param, &bound));
    }
    (bound.len() == layer.params.len()).then_some(bound)
}

fn one(desk: &mut Desk<'_>, sizes: &Sizes, param: &spec::Param, known: &[BoundParam]) -> Option<BoundParam> {
    desk.known.insert(param.tensor.clone());
    let shape = &desk.rule.layer.terms.var(param.var).shape;
    let own = sizes.axes_of(desk, &param.tensor, shape, param.span)?;
    let sizes_of_one: Vec<usize> = own.iter().map(|a| a.size).collect();
    let ask = |mut axes: Vec<Axis>| {
        axes.extend(own);
        let who = format!("`{}`", param.asked_by);
        Ask { name: param.tensor.clone(), axes, kind: param.kind, who, span: param.span }
    };
    let (layout, values, given) = match param.source {
        spec::Source::Learned(_) | spec::Source::Input => {
            let entries = if param.repeated { sizes.repeats } else { 1 };
            let values = desk.required(&ask(sizes.token_axes(param.repeated)))?;
            (Layout::PerToken { entries }, values, true)
        }
        spec::Source::Trained(start) | spec::Source::Slow(start) => {
            let ask = ask(vec![Axis::new("H", sizes.heads)]);
            let (values, given) = match (desk.optional(&ask), start) {
                (Found::Good(values), _) => (values, true),
                (Found::Bad, _) => return None,
                (Found::Missing, Some(start)) => {
                    (default(desk, sizes, param, start, &ask, &sizes_of_one, known)?, false)
                }
                (Found::Missing, None) => {
                    desk.missing(&ask);
                    return None;
                }
            };
            (Layout::PerHead, values, given)
        }
    };
    Some(BoundParam { var: param.var, layout, shape: sizes_of_one, values, given })
}

/// The declared start of a parameter that the data does not give.
fn default(
    desk: &mut Desk<'_>,
    sizes: &Sizes,
    param: &spec::Param,
    start: term::TermId,
    ask: &Ask,
    shape: &[usize],
    known: &[BoundParam],
) -> Option<Arc<Tensor>> {
    let number = (desk.options.layer, desk.options.layers);
    let scene = Scene { layer: &desk.rule.layer, sizes, number, params: known, complete: true };
    let values = declared(desk, ask, scene.per_head(start, shape, desk.options.width))?;
    if let Err(problem) = super::desk::in_kind(ask, &values) {
        desk.problems.push(problem.with_note("it is not given: this is its declared start"));
        return None;
    }
    if let spec::Source::Trained(_) = param.source {
        let message = format!("`{}` is not given; it stands at the value its training starts from", ask.name);
        desk.notes.push(ask.problem(code::DEFAULT_USED, message));
    }
    Some(values)
}

/// A declared value, where it can be used.
pub(super) fn declared(desk: &mut Desk<'_>, ask: &Ask, value: Result<Tensor, String>) -> Option<Arc<Tensor>> {
    let why = match value {
        Ok(tensor) => match super::desk::failing(&tensor, f64::is_finite) {
            None => return Some(Arc::new(tensor)),
            Some(found) => format!("it holds {}", super::desk::entry_text(&tensor, found)),
        },
        Err(why) => why,
    };
    let message = format!("`{}` is not given, and its declared start cannot be used: {why}", ask.name);
    let help = format!("give `{}` of shape {}", ask.name, ask.shape());
    desk.problems.push(ask.problem(code::MISSING_TENSOR, message).with_help(help));
    None
}

/// Parameters that would be missing, where sizes are not known: names and symbols only.
pub(super) fn missing_by_name(desk: &mut Desk<'_>) {
    for param in &desk.rule.layer.params {
        desk.known.insert(param.tensor.clone());
        let needed = match param.source {
            spec::Source::Learned(_) | spec::Source::Input => true,
            spec::Source::Trained(start) | spec::Source::Slow(start) => start.is_none(),
        };
        if needed && !desk.bundle.has(&param.tensor) {
            let message = format!("`{}` is missing: `{}` needs it", param.tensor, param.asked_by);
            desk.problems.push(
                Diagnostic::new(code::MISSING_TENSOR, message)
                    .at_opt(param.span, "asked for here")
                    .with_help(format!("add a float32 or float64 tensor `{}`", param.tensor)),
            );
        }
    }
}
