//! Values that the program itself gives: starts of weights and states, defaults of parameters.

use super::bound::{Bound, BoundParam, Layout, Stream};
use super::sizes::Sizes;
use crate::tensor::{Data, Tensor, Width};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_rule as rule;
use miras_spec as spec;
use miras_term as term;

/// Where terms are evaluated: sizes and places of one head, and the parameters known so far.
pub(crate) struct Scene<'a> {
    pub layer: &'a spec::Layer,
    pub sizes: &'a Sizes,
    /// The layer's number and the number of layers.
    pub number: (u64, u64),
    pub params: &'a [BoundParam],
    /// Whether these are all; else what depends on them must not be evaluated.
    pub complete: bool,
}

impl Scene<'_> {
    /// The environment of a head: per-head parameters, and per-token ones of one token where given
    /// as (row, token).
    pub fn env(&self, head: usize, token: Option<(usize, usize)>) -> term::Env {
        let mut env = term::Env {
            dims: self.sizes.dims.clone(),
            head: head as u64,
            heads: self.sizes.heads as u64,
            layer: self.number.0,
            layers: self.number.1,
            ..term::Env::default()
        };
        for param in self.params {
            if let Some(value) = value(param, self.sizes.heads, self.sizes.tokens, head, token) {
                env.vars.insert(param.var, value);
            }
        }
        env
    }

    /// A term's value for each head, repeated to `shape`: [H, ...].
    pub fn per_head(&self, what: term::TermId, shape: &[usize], width: Width) -> Result<Tensor, String> {
        let mut data = Vec::new();
        for head in 0..self.sizes.heads {
            let value = self.layer.terms.eval_one(what, &self.env(head, None)).map_err(|e| e.to_string())?;
            let value =
                spread(&value, shape).ok_or(format!("it has shape {:?}, not {shape:?}", value.shape))?;
            data.extend(value);
        }
        let shape = [&[self.sizes.heads], shape].concat();
        Ok(Tensor { shape, data: Data::from_f64(width, data) })
    }
}

/// One value of a parameter; None where it is per token and no token is given.
fn value(
    param: &BoundParam,
    heads: usize,
    tokens: usize,
    head: usize,
    token: Option<(usize, usize)>,
) -> Option<term::Tensor> {
    let (row, token) = match (param.layout, token) {
        (Layout::PerHead, _) => (0, 0),
        (Layout::PerToken { .. }, Some(at)) => at,
        (Layout::PerToken { .. }, None) => return None,
    };
    let start = param.offset(heads, tokens, [row, head, token, 0]);
    Some(term::Tensor { shape: param.shape.clone(), data: slice(&param.values, start, param.size())? })
}

/// Entries of a tensor as float64.
pub(super) fn slice(tensor: &Tensor, start: usize, count: usize) -> Option<Vec<f64>> {
    let range = start..start.checked_add(count)?;
    match &tensor.data {
        Data::F32(x) => Some(x.get(range)?.iter().map(|x| f64::from(*x)).collect()),
        Data::F64(x) => Some(x.get(range)?.to_vec()),
        Data::I64(_) => None,
    }
}

/// A scalar or a tensor with size-1 axes repeated to a shape.
fn spread(value: &term::Tensor, shape: &[usize]) -> Option<Vec<f64>> {
    if value.shape == shape {
        return Some(value.data.clone());
    }
    let fits = value.shape.is_empty()
        || value.shape.len() == shape.len() && value.shape.iter().zip(shape).all(|(a, b)| a == b || *a == 1);
    let template = Tensor { shape: shape.to_vec(), data: Data::I64(Vec::new()) };
    let source = |flat: usize| {
        let index = template.index_of(flat);
        value.shape.iter().zip(&index).fold(0, |at, (n, i)| at * n + if *n == 1 { 0 } else { *i })
    };
    fits.then(|| (0..shape.iter().product()).map(|f| value.data[source(f)]).collect())
}

impl Bound {
    /// An environment for a head with sizes, places and per-head parameters; and, where `token` gives a
    /// row and a token, the per-token parameters of that token (of its first step).
    ///
    /// For the interpreter of terms: slow, sure, float64.
    pub fn env(&self, layer: &spec::Layer, head: usize, token: Option<(usize, usize)>) -> term::Env {
        self.scene(layer, &self.sizes()).env(head, token)
    }

    /// What the state carries at the start of a stream for each weight: the continued value, or what
    /// `Retained::start` makes of the initial weight. Shapes are those of the weights.
    pub fn carried_at_start(
        &self,
        rule: &rule::UpdateRule,
        stream: usize,
        head: usize,
    ) -> Result<Vec<term::Tensor>, Diagnostic> {
        let sizes = self.sizes();
        let first = self.streams.get(stream).filter(|s| !s.is_empty()).map(|s: &Stream| (s.row, s.first));
        let mut env = self.scene(&rule.layer, &sizes).env(head, first);
        let lost = || Diagnostic::bug("a bound weight has neither an initial nor a continued value");
        for (weight, declared) in self.weights.iter().zip(&rule.layer.memory.weights) {
            if let Some(initial) = &weight.initial {
                let size: usize = weight.shape.iter().product();
                let data = slice(initial, head * size, size).ok_or_else(lost)?;
                env.vars.insert(declared.var, term::Tensor { shape: weight.shape.clone(), data });
            }
        }
        let mut all = Vec::new();
        for ((weight, declared), retained) in
            self.weights.iter().zip(&rule.layer.memory.weights).zip(&rule.retention)
        {
            let size: usize = weight.shape.iter().product();
            let value = match (&weight.carried, retained.start) {
                (Some(carried), _) => {
                    let data = slice(carried, (stream * self.heads + head) * size, size).ok_or_else(lost)?;
                    term::Tensor { shape: weight.shape.clone(), data }
                }
                (None, Some(start)) => rule.terms().eval_one(start, &env).map_err(|e| {
                    let message = format!("the state of `{}` cannot be started: {e}", declared.display);
                    Diagnostic::new(code::UNSUPPORTED, message)
                        .at_opt(declared.span, "this weight")
                        .with_help("write the retention with functions that have a value there, or begin with other weights")
                })?,
                (None, None) => env.vars.get(&declared.var).cloned().ok_or_else(lost)?,
            };
            all.push(value);
        }
        Ok(all)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            batch: self.batch,
            heads: self.heads,
            tokens: self.tokens,
            repeats: self.repeats,
            dims: self.dims.clone(),
        }
    }

    fn scene<'a>(&'a self, layer: &'a spec::Layer, sizes: &'a Sizes) -> Scene<'a> {
        Scene { layer, sizes, number: self.layer, params: &self.params, complete: true }
    }
}
