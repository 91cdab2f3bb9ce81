//! The answer of a history against the objective that defines it.

use crate::point::{POINTS, at, dot, moved, norm, normal, place};
use crate::report::Row;
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use miras_term::{Env, EvalError, Tensor, VarId};

/// Directions from the answer to others.
const DIRECTIONS: usize = 24;

/// How far to go: the smallest descent counts.
const STEPS: [f64; 2] = [1e-5, 1e-6];

/// The steepest descent at an answer that float64 differences with these steps may show.
const BOUND: f64 = 1e-5;

/// At some tokens: how steeply the weighted loss falls from the answer, relative to the size of its slopes there.
pub(crate) fn row(rule: &rule::UpdateRule, bound: &host::Bound, weigh: &spec::Weigh) -> Row {
    let what = "answer of the history";
    if rule.layer.bias.slope.is_some() {
        return Row::not_run(what, "the slope is declared: it is not the derivative of the loss");
    }
    let Some(answer) = &rule.answer else { return Row::not_run(what, "the rule has no answer") };
    match steepest(rule, bound, weigh, answer) {
        Err(why) => Row::not_run(what, why.to_string()),
        Ok(None) => Row::not_run(what, "the data has no tokens"),
        Ok(Some(figure)) => Row::promised(what, figure, BOUND),
    }
}

fn steepest(
    rule: &rule::UpdateRule,
    bound: &host::Bound,
    weigh: &spec::Weigh,
    answer: &rule::Answer,
) -> Result<Option<f64>, EvalError> {
    let mut random = host::Random::new(47);
    let mut worst: Option<f64> = None;
    for n in 0..POINTS {
        let Some(past) = Past::at(rule, bound, weigh, n)? else { return Ok(None) };
        let here = past.answer(answer)?;
        let (scale, least) = (past.slopes(&here)?, past.loss(&here)?);
        for _ in 0..DIRECTIONS {
            let along = normal(&mut random, &here.shape, 1.0);
            let mut descent = f64::INFINITY;
            for step in STEPS {
                let fall = (least - past.loss(&moved(&here, &along, step))?) / step;
                let fall = fall / (scale.max(1e-3) * norm(&along)).max(1e-12);
                descent = descent.min(if fall.is_nan() { f64::INFINITY } else { fall });
            }
            worst = Some(worst.unwrap_or(0.0).max(descent));
        }
    }
    Ok(worst)
}

/// What one token looks back on.
struct Past<'a> {
    rule: &'a rule::UpdateRule,
    /// The token's own parameters and query (refined, where the algorithm does that).
    own: Env,
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    /// The kernel as the definition has it, for each of them.
    kernel: Vec<f64>,
}

impl<'a> Past<'a> {
    /// The past of the n-th point, without what a cache of the data may add before it.
    fn at(
        rule: &'a rule::UpdateRule,
        bound: &host::Bound,
        weigh: &spec::Weigh,
        n: usize,
    ) -> Result<Option<Past<'a>>, EvalError> {
        let Some([row, head, token]) = place(bound, n) else { return Ok(None) };
        let first = weigh.window.map_or(0, |w| (token + 1).saturating_sub(w as usize));
        let of = |env: &Env, var: VarId| env.vars.get(&var).cloned().unwrap_or(Tensor::scalar(f64::NAN));
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for i in first..=token {
            let Some(env) = at(rule, bound, [row, head, i]) else { return Ok(None) };
            keys.push(of(&env, rule.layer.key));
            values.push(of(&env, rule.layer.value));
        }
        let Some(own) = at(rule, bound, [row, head, token]) else { return Ok(None) };
        let mut past = Past { rule, own, keys, values, kernel: Vec::new() };
        past.kernel = past.weighed(weigh)?;
        for _ in 0..weigh.refinements {
            let query = mean(&past.keys, &past.kernel);
            past.own.vars.insert(rule.layer.query, query);
            past.kernel = past.weighed(weigh)?;
        }
        Ok(Some(past))
    }

    fn weighed(&self, weigh: &spec::Weigh) -> Result<Vec<f64>, EvalError> {
        self.keys.iter().map(|key| self.scalar(weigh.kernel, self.rule.layer.key, key)).collect()
    }

    fn scalar(&self, term: miras_term::TermId, var: VarId, value: &Tensor) -> Result<f64, EvalError> {
        let mut env = self.own.clone();
        env.vars.insert(var, value.clone());
        Ok(self.rule.terms().eval_one(term, &env)?.data.iter().sum())
    }

    /// The answer as the rule has it.
    fn answer(&self, answer: &rule::Answer) -> Result<Tensor, EvalError> {
        let layer = &self.rule.layer;
        let logs = self.keys.iter().map(|key| self.scalar(answer.log_kernel, layer.key, key));
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let averaged = self.values.iter().map(|value| {
            let mut env = self.own.clone();
            env.vars.insert(layer.value, value.clone());
            self.rule.terms().eval_one(answer.averaged, &env)
        });
        Ok(mean(&averaged.collect::<Result<Vec<_>, _>>()?, &weights))
    }

    /// sum kernel loss / sum kernel at an answer, as the definitions have them.
    fn loss(&self, answer: &Tensor) -> Result<f64, EvalError> {
        self.averaged(answer, |env| {
            Ok(self.rule.terms().eval_one(self.rule.layer.bias.loss, env)?.data.iter().sum())
        })
    }

    /// The weighted length of the slopes at an answer.
    fn slopes(&self, answer: &Tensor) -> Result<f64, EvalError> {
        let Some(slope) = self.rule.slope else { return Ok(0.0) };
        self.averaged(answer, |env| {
            let slope = self.rule.terms().eval_one(slope, env)?;
            Ok(dot(&slope, &slope).sqrt())
        })
    }

    fn averaged(
        &self,
        answer: &Tensor,
        of: impl Fn(&Env) -> Result<f64, EvalError>,
    ) -> Result<f64, EvalError> {
        let mut env = self.own.clone();
        env.vars.insert(self.rule.layer.bias.answer, answer.clone());
        let (mut sum, mut all) = (0.0, 0.0);
        for (value, kernel) in self.values.iter().zip(&self.kernel) {
            env.vars.insert(self.rule.layer.value, value.clone());
            sum += kernel * of(&env)?;
            all += kernel;
        }
        Ok(sum / all)
    }
}

/// sum weights_i items_i / sum weights_i.
fn mean(items: &[Tensor], weights: &[f64]) -> Tensor {
    let all: f64 = weights.iter().sum();
    let shape = items.first().map_or(Vec::new(), |t| t.shape.clone());
    let zero = Tensor { data: vec![0.0; shape.iter().product()], shape };
    items.iter().zip(weights).fold(zero, |sum, (item, weight)| moved(&sum, item, weight / all))
}
