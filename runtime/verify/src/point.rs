//! Single points at which terms are evaluated: the parameters of one token and head, weights near those given.

use miras_host as host;
use miras_rule as rule;
use miras_term::{Env, Tensor};

/// How many points a check looks at.
pub(crate) const POINTS: usize = 4;

/// The n-th point: parameters, key, value and query of some token and head; weights as at its head's start,
/// where the data has them. None without tokens.
pub(crate) fn point(rule: &rule::UpdateRule, bound: &host::Bound, n: usize) -> Option<Env> {
    at(rule, bound, place(bound, n)?)
}

/// Row, head and token of the n-th point. None without tokens.
pub(crate) fn place(bound: &host::Bound, n: usize) -> Option<[usize; 3]> {
    let token = (n * bound.tokens / POINTS).checked_rem(bound.tokens)?;
    Some([n % bound.batch, n % bound.heads, token])
}

/// The point of a row, head and token.
pub(crate) fn at(rule: &rule::UpdateRule, bound: &host::Bound, place: [usize; 3]) -> Option<Env> {
    let [row, head, token] = place;
    let mut env = Env {
        dims: bound.dims.clone(),
        head: head as u64,
        heads: bound.heads as u64,
        layer: bound.layer.0,
        layers: bound.layer.1,
        ..Env::default()
    };
    let layer = &rule.layer;
    let vectors = [
        (layer.query, &bound.query, 1),
        (layer.key, &bound.key, bound.repeats),
        (layer.value, &bound.value, bound.repeats),
    ];
    for (var, tensor, entries) in vectors {
        let size = *tensor.shape.last()?;
        let start = ((row * bound.heads + head) * bound.tokens + token) * entries * size;
        env.vars.insert(var, part(tensor, start, vec![size])?);
    }
    for param in &bound.params {
        let start = param.offset(bound.heads, bound.tokens, [row, head, token, 0]);
        env.vars.insert(param.var, part(&param.values, start, param.shape.clone())?);
    }
    for (weight, given) in layer.memory.weights.iter().zip(&bound.weights) {
        let size: usize = given.shape.iter().product();
        let value = match &given.initial {
            Some(initial) => part(initial, head * size, given.shape.clone())?,
            None => Tensor { shape: given.shape.clone(), data: vec![0.0; size] },
        };
        env.vars.insert(weight.var, value);
    }
    Some(env)
}

fn part(tensor: &host::Tensor, start: usize, shape: Vec<usize>) -> Option<Tensor> {
    let size: usize = shape.iter().product();
    let values = tensor.f64s()?;
    Some(Tensor { data: values.get(start..start + size)?.to_vec(), shape })
}

/// A tensor of a shape with normally distributed entries.
pub(crate) fn normal(random: &mut host::Random, shape: &[usize], scale: f64) -> Tensor {
    let count = shape.iter().product();
    Tensor { shape: shape.to_vec(), data: (0..count).map(|_| scale * random.normal()).collect() }
}

/// `at + step * along`.
pub(crate) fn moved(at: &Tensor, along: &Tensor, step: f64) -> Tensor {
    let data = at.data.iter().zip(&along.data).map(|(x, d)| x + step * d).collect();
    Tensor { shape: at.shape.clone(), data }
}

/// The sum of products of the entries.
pub(crate) fn dot(a: &Tensor, b: &Tensor) -> f64 {
    a.data.iter().zip(&b.data).map(|(x, y)| x * y).sum()
}

/// The Euclidean norm.
pub(crate) fn norm(a: &Tensor) -> f64 {
    dot(a, a).sqrt()
}
