//! The closed form of retention against the objective that defines it, and the answer of a history against its.

use crate::Case;
use crate::history;
use crate::inner::filled;
use crate::point::{POINTS, dot, moved, norm, normal, point};
use crate::report::{Row, Section};
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use miras_term::{Axis, Env, EvalError, Tensor};
use rule::InitialDomain;
use spec::{Domain, Form};

/// Directions from the solution to other weights of the domain.
const DIRECTIONS: usize = 24;

/// How far to go: the smallest descent counts.
const STEPS: [f64; 2] = [1e-5, 1e-6];

/// The steepest descent at a solution that float64 differences with these steps may show.
const BOUND: f64 = 1e-5;

pub(crate) fn section(case: &Case<'_>, bound: &host::Bound) -> Section {
    let layer = &case.rule.layer;
    let rows = match &layer.algo {
        spec::Algo::Weigh(weigh) => return answer(case.rule, bound, weigh),
        spec::Algo::Step(_) => (0..layer.memory.weights.len()).map(|l| row(case.rule, bound, l)).collect(),
    };
    Section {
        title: "Closed form of retention".into(),
        about: format!(
            "How steeply the objective falls from W' towards {DIRECTIONS} other points of its domain, at \
             {POINTS} tokens, relative to the size of u: at the minimum, nowhere."
        ),
        rows,
    }
}

fn answer(rule: &rule::UpdateRule, bound: &host::Bound, weigh: &spec::Weigh) -> Section {
    Section {
        title: "Closed form of the answer".into(),
        about: format!(
            "How steeply the loss, weighed by the kernel over the past, falls from the answer in {DIRECTIONS} directions, \
             at {POINTS} tokens, relative to the size of its slopes: at the minimum, nowhere."
        ),
        rows: vec![history::row(rule, bound, weigh)],
    }
}

fn row(rule: &rule::UpdateRule, bound: &host::Bound, l: usize) -> Row {
    let what = format!("W' of {}", rule.layer.memory.weights[l].display);
    let retention = &rule.layer.retention[l];
    if let Form::DeclaredDual { .. } | Form::DeclaredMap { .. } = retention.form {
        return Row::not_run(what, "a declared map: it is what the definition says, not a minimum");
    }
    match steepest(rule, bound, l) {
        Err(why) => Row::not_run(what, why.to_string()),
        Ok(None) => Row::not_run(what, "the data has no tokens"),
        Ok(Some(figure)) => match retention.newton {
            Some(n) => Row::measured(what, figure, format!("{n} Newton steps, as the definition asks")),
            None => Row::promised(what, figure, BOUND),
        },
    }
}

/// The steepest descent found.
fn steepest(rule: &rule::UpdateRule, bound: &host::Bound, l: usize) -> Result<Option<f64>, EvalError> {
    let mut random = host::Random::new(31 + l as u64);
    let mut worst: Option<f64> = None;
    for n in 0..POINTS {
        let Some(mut env) = point(rule, bound, n) else { return Ok(None) };
        let Some(solved) = solution(rule, l, &mut env, &mut random)? else { continue };
        for _ in 0..DIRECTIONS {
            let other = feasible(rule, l, &env, &solved, &mut random)?;
            let along = moved(&other, &solved, -1.0);
            let scale = norm(&along) * norm(&env.vars[&rule.layer.retention[l].update]).max(1e-3);
            let here = objective(rule, l, &env, &solved)?;
            let mut descent = f64::INFINITY;
            for step in STEPS {
                let there = objective(rule, l, &env, &moved(&solved, &along, step))?;
                let fall = (here - there) / step / scale.max(1e-12);
                descent = descent.min(if fall.is_nan() { f64::INFINITY } else { fall });
            }
            worst = Some(worst.unwrap_or(0.0).max(descent));
        }
    }
    Ok(worst)
}

/// W' after one step from the weights of the point, with a random u.
fn solution(
    rule: &rule::UpdateRule,
    l: usize,
    env: &mut Env,
    random: &mut host::Random,
) -> Result<Option<Tensor>, EvalError> {
    let (terms, retained, weight) = (rule.terms(), &rule.retention[l], &rule.layer.memory.weights[l]);
    let Some(start) = env.vars.get(&weight.var).cloned() else { return Ok(None) };
    let shape = start.shape.clone();
    env.vars.insert(retained.update, normal(random, &shape, 0.3));
    env.vars.insert(rule.layer.retention[l].update, env.vars[&retained.update].clone());
    let carried = match retained.start {
        Some(term) => filled(terms.eval_one(term, env)?, &shape),
        None => start,
    };
    env.vars.insert(retained.carried, carried);
    if let Form::Lazy { dual, next, .. } = &rule.layer.retention[l].form {
        let carried = env.vars[&retained.carried].clone();
        env.vars.insert(dual[0], carried);
        let next = filled(terms.eval_one(*next, env)?, &shape);
        env.vars.insert(dual[1], next);
    }
    let mut after = env.clone();
    for term in std::iter::once(retained.advance).chain(retained.finish) {
        let next = filled(terms.eval_one(term, &after)?, &shape);
        after.vars.insert(retained.carried, next);
    }
    let solved = match retained.value {
        Some(value) => filled(terms.eval_one(value, &after)?, &shape),
        None => after.vars[&retained.carried].clone(),
    };
    Ok(Some(solved))
}

/// The objective at W', as the definition states it.
fn objective(rule: &rule::UpdateRule, l: usize, env: &Env, at: &Tensor) -> Result<f64, EvalError> {
    let (terms, retention) = (rule.terms(), &rule.layer.retention[l]);
    let mut env = env.clone();
    env.vars.insert(retention.new_weight, at.clone());
    let total = |parts: &[Option<miras_term::TermId>], pull: &Tensor| -> Result<f64, EvalError> {
        let mut sum = -dot(pull, at);
        for part in parts.iter().flatten() {
            sum += terms.eval_one(*part, &env)?.data.iter().sum::<f64>();
        }
        Ok(sum)
    };
    match &retention.form {
        Form::Objective { local, global, .. } => total(&[*local, *global], &env.vars[&retention.update]),
        Form::Lazy { dual, potential, .. } => total(&[Some(*potential)], &env.vars[&dual[1]]),
        Form::DeclaredDual { .. } | Form::DeclaredMap { .. } => Ok(f64::NAN),
    }
}

/// Another point of the domain; the domains are convex, so the way there lies inside.
fn feasible(
    rule: &rule::UpdateRule,
    l: usize,
    env: &Env,
    solved: &Tensor,
    random: &mut host::Random,
) -> Result<Tensor, EvalError> {
    let terms = rule.terms();
    let number =
        |term| Ok::<f64, EvalError>(terms.eval_one(term, env)?.data.first().copied().unwrap_or(f64::NAN));
    let near = |random: &mut host::Random| moved(solved, &normal(random, &solved.shape, 1.0), 1.0);
    let between = |random: &mut host::Random, low: f64, high: f64| Tensor {
        shape: solved.shape.clone(),
        data: solved.data.iter().map(|_| random.between(low, high)).collect(),
    };
    let domain = match &rule.layer.retention[l].form {
        Form::Objective { domain, .. } | Form::Lazy { domain, .. } => domain,
        Form::DeclaredDual { .. } | Form::DeclaredMap { .. } => &Domain::All,
    };
    Ok(match domain {
        Domain::Simplex { axis, mass } => {
            let mass = terms.eval_one(*mass, env)?;
            simplex(between(random, 0.1, 1.0), *axis, mass.data.first().copied().unwrap_or(f64::NAN))
        }
        Domain::Ball { radius } => {
            let (radius, other) = (number(*radius)?, near(random));
            let shrink = (0.9 * radius / norm(&other).max(1e-12)).min(1.0);
            Tensor { data: other.data.iter().map(|x| x * shrink).collect(), ..other }
        }
        Domain::Interval { low, high } => between(random, number(*low)?, number(*high)?),
        Domain::All => match rule.retention[l].initial {
            InitialDomain::Open(low, high) => {
                let inside = |x: &f64, r: f64| match (low.is_finite(), high.is_finite()) {
                    (true, true) => low + (high - low) * r,
                    (true, false) => low + (x - low) * 2.0 * r,
                    (false, true) => high - (high - x) * 2.0 * r,
                    (false, false) => x + r - 0.5,
                };
                let data = solved.data.iter().map(|x| inside(x, random.between(0.05, 0.95))).collect();
                Tensor { shape: solved.shape.clone(), data }
            }
            InitialDomain::Any | InitialDomain::Simplex(..) => near(random),
        },
    })
}

/// Positive numbers scaled so that every slice has the mass.
fn simplex(mut values: Tensor, axis: Axis, mass: f64) -> Tensor {
    let cols = values.shape.last().copied().unwrap_or(1).max(1);
    let slice = |flat: usize| match (axis, values.shape.len()) {
        (Axis::Row, 2) => flat / cols,
        (Axis::Column, 2) => flat % cols,
        (Axis::Row | Axis::Column | Axis::All, _) => 0,
    };
    let mut sums = vec![0.0; values.data.len()];
    for (flat, value) in values.data.iter().enumerate() {
        sums[slice(flat)] += value;
    }
    let scale: Vec<f64> = (0..values.data.len()).map(|flat| mass / sums[slice(flat)]).collect();
    values.data.iter_mut().zip(scale).for_each(|(value, scale)| *value *= scale);
    values
}
