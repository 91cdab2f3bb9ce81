//! From a layer to its update rule.

use crate::algebra::Facts;
use crate::answer::answer;
use crate::calculus::reverse::broken;
use crate::calculus::{gradient, simplify};
use crate::classify::{self, Parts};
use crate::gradient::{gradients, slope};
use crate::rule::{Derivation, DerivationStep, Retained, UpdateRule};
use crate::tell::{self, SlopeFrom};
use crate::{retain, warn};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term::TermId;

/// Derives the update rule of a layer: slope, gradients, retention in closed form, class, and how each
/// was found (docs/mathematics.md).
///
/// # Errors
/// E0301 for a function without a derivative, E0302 for a retention without a closed form, E0303 for
/// choices that refuse each other, E0304 for an alpha that varies within a slice of a simplex, E0305 for
/// a layer with nothing to derive.
pub fn derive(layer: spec::Layer) -> Result<UpdateRule, Vec<Diagnostic>> {
    match layer.algo.clone() {
        spec::Algo::Step(step) => by_steps(layer, &step),
        spec::Algo::Weigh(weigh) => by_weighing(layer, &weigh).map_err(|e| vec![e]),
    }
}

fn by_steps(mut layer: spec::Layer, step: &spec::Step) -> Result<UpdateRule, Vec<Diagnostic>> {
    if layer.memory.weights.is_empty() {
        return Err(vec![nothing(
            &layer,
            "the memory has no weights, but the algorithm takes steps on weights",
        )]);
    }
    let facts = Facts::of_params(&layer.params);
    let mut faults = Vec::new();
    let slope = collect(slope_of(&mut layer, &facts), &mut faults);
    let solved = collect(retention(&mut layer), &mut faults);
    let (Some(slope), Some((retention, told))) = (slope, solved) else { return Err(faults) };
    finish(layer, step, slope, retention, told, &facts).map_err(|e| vec![e])
}

fn finish(
    mut layer: spec::Layer,
    step: &spec::Step,
    slope: Slope,
    retention: Vec<Retained>,
    told: Vec<DerivationStep>,
    facts: &Facts,
) -> Result<UpdateRule, Diagnostic> {
    let gradients = gradients(&mut layer, step, slope.from.term, facts)?;
    let parts = Parts { step, gradients: &gradients, retention: &retention };
    let class = classify::classify(&mut layer, parts)?;
    let written = classify::written_out(&mut layer, parts).map_err(broken)?;
    let steps =
        tell::steps(&mut layer, Some(&slope.from), Some((parts, &written)), None, told).map_err(broken)?;
    let mut rule = UpdateRule {
        layer,
        slope: Some(slope.from.term),
        gradients,
        retention,
        answer: None,
        class,
        derivation: Derivation { steps, notes: Vec::new() },
        warnings: Vec::new(),
    };
    rule.derivation.notes = tell::notes(&rule);
    rule.warnings = warn::warnings(&mut rule, slope.derived, facts)?;
    Ok(rule)
}

fn by_weighing(mut layer: spec::Layer, weigh: &spec::Weigh) -> Result<UpdateRule, Diagnostic> {
    if !layer.memory.history {
        return Err(nothing(&layer, "the algorithm weighs a history, but the memory keeps none"));
    }
    let facts = Facts::of_params(&layer.params);
    let slope = slope_of(&mut layer, &facts)?;
    let answer = answer(&mut layer, weigh, slope.from.term, &facts)?;
    let steps =
        tell::steps(&mut layer, Some(&slope.from), None, Some(&answer), Vec::new()).map_err(broken)?;
    let mut rule = UpdateRule {
        layer,
        slope: Some(slope.from.term),
        gradients: Vec::new(),
        retention: Vec::new(),
        answer: Some(answer),
        class: classify::nonparametric(),
        derivation: Derivation { steps, notes: Vec::new() },
        warnings: Vec::new(),
    };
    rule.warnings = warn::warnings(&mut rule, slope.derived, &facts)?;
    Ok(rule)
}

/// The slope as used, and the derivative of the loss where a slope is declared beside it.
struct Slope {
    from: SlopeFrom,
    derived: Option<TermId>,
}

fn slope_of(layer: &mut spec::Layer, facts: &Facts) -> Result<Slope, Diagnostic> {
    let declared = layer.bias.slope.is_some();
    let found = slope(layer, facts)?;
    let Some(term) = found.terms.first().copied() else {
        return Err(Diagnostic::bug("a loss has no slope and no refusal"));
    };
    let (loss, answer) = (layer.bias.loss, layer.bias.answer);
    let derived = match declared {
        true => gradient(&mut layer.terms, loss, &[answer]).ok().and_then(|g| g.first().copied()),
        false => None,
    };
    let derived =
        derived.map(|d| simplify::simplify_one(&mut layer.terms, d, facts)).transpose().map_err(broken)?;
    Ok(Slope { from: SlopeFrom { term, declared, rules: found.used }, derived })
}

/// Retention of every weight in closed form. Steps that read the same for several weights are told once.
fn retention(layer: &mut spec::Layer) -> Result<(Vec<Retained>, Vec<DerivationStep>), Diagnostic> {
    let (mut solved, mut told) = (Vec::new(), Vec::new());
    for l in 0..layer.memory.weights.len() {
        let (retained, steps) = retain::solve(layer, l)?;
        solved.push(retained);
        if l == 0 {
            told = steps;
        }
    }
    Ok((solved, told))
}

fn nothing(layer: &spec::Layer, why: &str) -> Diagnostic {
    Diagnostic::new(code::NOT_DERIVABLE, format!("`{}` has nothing to derive: {why}", layer.name))
        .at_opt(layer.choices[0].span, "this memory")
        .at_opt(layer.choices[3].span, "this algorithm")
        .with_help("choose an algorithm that fits the memory, or the other way round")
}

fn collect<T>(result: Result<T, Diagnostic>, faults: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}
