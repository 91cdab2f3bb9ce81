//! The answer of a memory with a history, in closed form:
//! `argmin_y sum_i kernel_i loss(y, v_i)` is the kernel-weighted mean of a function of v_i.

use crate::algebra::{self, Facts};
use crate::calculus::fold;
use crate::calculus::reverse::broken;
use crate::rule::Answer;
use crate::tell::formula;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::{Fn1, Fn2};
use miras_spec as spec;
use miras_term::{Mismatch, Op, TermId, Terms};
use std::collections::HashMap;

/// The answer, given the slope of the bias.
///
/// # Errors
/// E0303 where the kernel may be 0 or negative, or the bias is not quadratic in the answer.
pub fn answer(
    layer: &mut spec::Layer,
    weigh: &spec::Weigh,
    slope: TermId,
    facts: &Facts,
) -> Result<Answer, Diagnostic> {
    let log_kernel = log_of(&mut layer.terms, weigh.kernel, facts).map_err(broken)?;
    let Some(log_kernel) = log_kernel else { return Err(not_positive(layer, weigh)) };
    let averaged = averaged(layer, slope, facts).map_err(broken)?;
    let Some(averaged) = averaged else { return Err(not_quadratic(layer, weigh, slope)) };
    Ok(Answer { log_kernel, averaged })
}

fn not_positive(layer: &spec::Layer, weigh: &spec::Weigh) -> Diagnostic {
    let kernel = formula(&layer.terms, weigh.kernel);
    Diagnostic::new(
        code::REFUSED_PAIR,
        format!("the kernel {kernel} is not positive for every query and key"),
    )
    .at_opt(weigh.span, "weighs the history by it")
    .with_help("write it as an exponential, or add a positive number to it")
    .with_note("the weights of the history are normalised, so they need a positive sum at every token")
}

fn not_quadratic(layer: &spec::Layer, weigh: &spec::Weigh, slope: TermId) -> Diagnostic {
    let slope = formula(&layer.terms, slope);
    let bias = &layer.choices[1];
    Diagnostic::new(
        code::REFUSED_PAIR,
        format!("the answer that minimises the weighted `{}` has no closed form", bias.text),
    )
    .at_opt(bias.span, "this bias is not quadratic in the answer")
    .at_opt(weigh.span, "this algorithm minimises it over the whole history")
    .with_help("choose a bias whose slope is linear in y, such as the squared error")
    .with_note(format!("its slope is dloss/dy = {slope}"))
}

/// log of a positive term: the exponent where it is an exponential, sums for products.
fn log_of(t: &mut Terms, kernel: TermId, facts: &Facts) -> Result<Option<TermId>, Mismatch> {
    let mut logs: HashMap<TermId, TermId> = HashMap::new();
    for id in t.reachable(&[kernel]) {
        let get = |a: TermId| logs.get(&a).copied();
        let log = match t.op(id).clone() {
            Op::Fn1(Fn1::Exp, x) => Some(x),
            Op::Fn1(Fn1::Sqrt, x) => match get(x) {
                Some(x) => Some(halved(t, x)?),
                None => None,
            },
            Op::Fn2(Fn2::Mul, a, b) => match get(a).zip(get(b)) {
                Some((a, b)) => Some(fold::plus(t, a, b)?),
                None => None,
            },
            Op::Fn2(Fn2::Div, a, b) => match get(a).zip(get(b)) {
                Some((a, b)) => Some(fold::minus(t, a, b)?),
                None => None,
            },
            Op::Fn2(Fn2::Pow, a, p) => match get(a) {
                Some(a) => Some(fold::times(t, p, a)?),
                None => None,
            },
            _ => None,
        };
        let log = match log {
            None if !t.ty(id).truth && facts.of_term(t, id).positive() => Some(t.fn1(Fn1::Log, id)?),
            log => log,
        };
        logs.extend(log.map(|log| (id, log)));
    }
    Ok(logs.get(&kernel).copied())
}

fn halved(t: &mut Terms, x: TermId) -> Result<TermId, Mismatch> {
    let half = t.num(0.5);
    fold::times(t, half, x)
}

/// With a slope `c y - b(v)`, c > 0 free of v, the stationary answer is the mean of b(v) / c.
fn averaged(layer: &mut spec::Layer, slope: TermId, facts: &Facts) -> Result<Option<TermId>, Mismatch> {
    let (y, v) = (layer.bias.answer, layer.value);
    let t = &mut layer.terms;
    let Some((coefficient, rest)) = algebra::collect_linear(t, slope, y, facts) else { return Ok(None) };
    if t.uses(coefficient, v) || !facts.of_term(t, coefficient).positive() {
        return Ok(None);
    }
    let shape = t.var(y).shape.clone();
    let target = fold::negated(t, rest)?;
    let mean = fold::over(t, target, coefficient)?;
    let mean = algebra::simplify(t, mean, facts);
    fold::fit(t, mean, &shape).map(Some)
}
