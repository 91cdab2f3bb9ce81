//! The inner gradient against differences of the loss.

use crate::Case;
use crate::point::{POINTS, dot, moved, norm, normal, point};
use crate::report::{Row, Section};
use miras_host as host;
use miras_rule as rule;
use miras_term::{Env, EvalError, Op, Tensor, TermId};

/// Directions at each point.
const DIRECTIONS: usize = 6;

/// Steps of central differences: the smallest error counts, since a large step may cross a kink and a small one
/// loses digits.
const STEPS: [f64; 3] = [1e-4, 1e-5, 1e-6];

/// What differences of float64 values with these steps can tell apart.
const BOUND: f64 = 1e-6;

pub(crate) fn section(case: &Case<'_>, bound: &host::Bound) -> Section {
    let rule = case.rule;
    let mut rows = vec![slope_row(rule, bound)];
    for (p, gradient) in rule.gradients.iter().enumerate() {
        for (l, weight) in rule.layer.memory.weights.iter().enumerate() {
            let at = if rule.gradients.len() > 1 { format!(", point {}", p + 1) } else { String::new() };
            let what = format!("gradient by {}{at}", weight.display);
            rows.push(gradient_row(rule, bound, gradient, l, what));
        }
    }
    Section {
        title: "Inner gradient".into(),
        about: format!(
            "The derived slope and gradients against central differences, along {DIRECTIONS} random directions \
             at {POINTS} tokens; relative error."
        ),
        rows,
    }
}

/// dloss/dy against differences of the loss.
fn slope_row(rule: &rule::UpdateRule, bound: &host::Bound) -> Row {
    let what = "dloss/dy";
    let Some(slope) = rule.slope else { return Row::not_run(what, "the layer has no slope") };
    let bias = &rule.layer.bias;
    let mut random = host::Random::new(11);
    let figure = largest(rule, bound, |env| {
        let size = env.vars.get(&rule.layer.value).map_or(0, |v| v.data.len());
        let answer = normal(&mut random, &[size], 1.0);
        env.vars.insert(bias.answer, answer.clone());
        let slope = filled(rule.terms().eval_one(slope, env)?, &answer.shape);
        let along = normal(&mut random, &answer.shape, 1.0);
        let told = dot(&slope, &along);
        let scale = norm(&slope) * norm(&along);
        let mut env = env.clone();
        Ok((
            told,
            scale,
            Box::new(move |step| {
                env.vars.insert(bias.answer, moved(&answer, &along, step));
                Ok(rule.terms().eval_one(bias.loss, &env)?.data.iter().sum())
            }),
        ))
    });
    match (figure, bias.slope.is_some()) {
        (Err(why), _) => Row::not_run(what, why.to_string()),
        (Ok(None), _) => Row::not_run(what, "the data has no tokens"),
        (Ok(Some(figure)), true) => {
            Row::measured(what, figure, "a declared slope: this is how far it is from the derivative")
        }
        (Ok(Some(figure)), false) => promised(rule, what.into(), figure, &[bias.loss]),
    }
}

/// The gradient by one weight against differences of the loss, or of the answer times a declared slope.
fn gradient_row(
    rule: &rule::UpdateRule,
    bound: &host::Bound,
    gradient: &rule::Gradient,
    l: usize,
    what: String,
) -> Row {
    let Some(slope) = rule.slope else { return Row::not_run(what, "the layer has no slope") };
    let (terms, bias) = (rule.terms(), &rule.layer.bias);
    let (var, weight) = (gradient.at_vars[l], rule.layer.memory.weights[l].var);
    let mut random = host::Random::new(23 + l as u64);
    let figure = largest(rule, bound, |env| {
        for (at, weight) in gradient.at_vars.iter().zip(&rule.layer.memory.weights) {
            if let Some(value) = env.vars.get(&weight.var).cloned() {
                let near = moved(&value, &normal(&mut random, &value.shape, 0.05), 1.0);
                env.vars.insert(*at, if rule.retention[l].value.is_some() { value } else { near });
            }
        }
        let start = env.vars.get(&var).or(env.vars.get(&weight)).cloned().unwrap_or(Tensor::scalar(0.0));
        let derivative = whole(rule, &gradient.by_weight[l], env, &start.shape)?;
        let along = normal(&mut random, &start.shape, 1.0);
        let told = dot(&derivative, &along);
        let scale = norm(&derivative) * norm(&along);
        let mut env = env.clone();
        env.vars.insert(bias.answer, terms.eval_one(gradient.answer, &env)?);
        let slope = match bias.slope {
            Some(_) => Some(terms.eval_one(slope, &env)?),
            None => None,
        };
        Ok((
            told,
            scale,
            Box::new(move |step| {
                env.vars.insert(var, moved(&start, &along, step));
                let answer = terms.eval_one(gradient.answer, &env)?;
                if let Some(slope) = &slope {
                    return Ok(dot(&filled(slope.clone(), &answer.shape), &answer));
                }
                env.vars.insert(bias.answer, answer);
                Ok(terms.eval_one(bias.loss, &env)?.data.iter().sum())
            }),
        ))
    });
    match figure {
        Err(why) => Row::not_run(what, why.to_string()),
        Ok(None) => Row::not_run(what, "the data has no tokens"),
        Ok(Some(figure)) => promised(rule, what, figure, &[bias.loss, gradient.answer]),
    }
}

/// A promise, unless the language was told to cut a derivative.
fn promised(rule: &rule::UpdateRule, what: String, figure: f64, of: &[TermId]) -> Row {
    let terms = rule.terms();
    let cut = terms.reachable(of).into_iter().any(|id| matches!(terms.op(id), Op::Stop(_)));
    match cut {
        true => Row::measured(what, figure, "a `stop` in the definition cuts part of this derivative"),
        false => Row::promised(what, figure, BOUND),
    }
}

/// What is compared along one direction: the told derivative, a scale, and the function by the step.
type Compared<'e> = (f64, f64, Box<dyn FnMut(f64) -> Result<f64, EvalError> + 'e>);

/// The largest relative error over points and directions.
fn largest<'e>(
    rule: &'e rule::UpdateRule,
    bound: &host::Bound,
    mut compare: impl FnMut(&mut Env) -> Result<Compared<'e>, EvalError>,
) -> Result<Option<f64>, EvalError> {
    let mut worst: Option<f64> = None;
    for n in 0..POINTS {
        let Some(env) = point(rule, bound, n) else { return Ok(None) };
        for _ in 0..DIRECTIONS {
            let (told, scale, mut function) = compare(&mut env.clone())?;
            let mut best = f64::INFINITY;
            for step in STEPS {
                let difference = (function(step)? - function(-step)?) / (2.0 * step);
                let error = (told - difference).abs() / scale.max(1e-3);
                best = best.min(if error.is_nan() { f64::INFINITY } else { error });
            }
            worst = Some(worst.unwrap_or(0.0).max(best));
        }
    }
    Ok(worst)
}

/// The gradient as the compiler uses it: outer products and the rest.
fn whole(
    rule: &rule::UpdateRule,
    sum: &rule::OuterSum,
    env: &Env,
    shape: &[usize],
) -> Result<Tensor, EvalError> {
    let terms = rule.terms();
    let mut total = Tensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] };
    for (left, right) in &sum.products {
        let [left, right] = [terms.eval_one(*left, env)?, terms.eval_one(*right, env)?];
        let cols = shape.last().copied().unwrap_or(1).max(1);
        for (flat, entry) in total.data.iter_mut().enumerate() {
            *entry += entry_of(&left, flat / cols) * entry_of(&right, flat % cols);
        }
    }
    if let Some(rest) = sum.rest {
        total = moved(&total, &filled(terms.eval_one(rest, env)?, shape), 1.0);
    }
    Ok(total)
}

fn entry_of(vector: &Tensor, index: usize) -> f64 {
    vector.data.get(if vector.data.len() == 1 { 0 } else { index }).copied().unwrap_or(f64::NAN)
}

/// A scalar, vector or broadcast matrix with all entries of a shape.
pub(crate) fn filled(value: Tensor, shape: &[usize]) -> Tensor {
    if value.shape == shape {
        return value;
    }
    let cols = shape.last().copied().unwrap_or(1).max(1);
    let of = |flat: usize| {
        let index = [flat / cols, flat % cols];
        let own = value.shape.iter().rev().zip(index.iter().rev());
        let (place, _) = own.fold((0, 1), |(place, stride), (n, i)| {
            (place + if *n == 1 { 0 } else { i * stride }, stride * n)
        });
        value.data.get(place).copied().unwrap_or(f64::NAN)
    };
    Tensor { shape: shape.to_vec(), data: (0..shape.iter().product()).map(of).collect() }
}
