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

/// How deep a kernel is searched for exponentials.
const DEPTH: usize = 24;

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
    let log_kernel = log_of(&mut layer.terms, weigh.kernel, facts, DEPTH).map_err(broken)?;
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
fn log_of(t: &mut Terms, id: TermId, facts: &Facts, depth: usize) -> Result<Option<TermId>, Mismatch> {
    if depth == 0 {
        return Ok(None);
    }
    let log = match t.op(id).clone() {
        Op::Fn1(Fn1::Exp, x) => Some(x),
        Op::Fn1(Fn1::Sqrt, x) => match log_of(t, x, facts, depth - 1)? {
            Some(x) => {
                let half = t.num(0.5);
                Some(fold::times(t, half, x)?)
            }
            None => None,
        },
        Op::Fn2(Fn2::Mul, a, b) => match logs(t, a, b, facts, depth)? {
            Some((a, b)) => Some(fold::plus(t, a, b)?),
            None => None,
        },
        Op::Fn2(Fn2::Div, a, b) => match logs(t, a, b, facts, depth)? {
            Some((a, b)) => Some(fold::minus(t, a, b)?),
            None => None,
        },
        Op::Fn2(Fn2::Pow, a, p) => match log_of(t, a, facts, depth - 1)? {
            Some(a) => Some(fold::times(t, p, a)?),
            None => None,
        },
        _ => None,
    };
    match log {
        Some(log) => Ok(Some(log)),
        None if facts.of_term(t, id).positive() => t.fn1(Fn1::Log, id).map(Some),
        None => Ok(None),
    }
}

fn logs(
    t: &mut Terms,
    a: TermId,
    b: TermId,
    facts: &Facts,
    depth: usize,
) -> Result<Option<(TermId, TermId)>, Mismatch> {
    Ok(log_of(t, a, facts, depth - 1)?.zip(log_of(t, b, facts, depth - 1)?))
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
