//! Synthetic inputs: random, valid for a rule, the same for the same seed on every machine.

use crate::bind::{BindOptions, Desk, Scene, Sizes, room, shown};
use crate::bundle::Bundle;
use crate::tensor::{Data, Tensor, Width, count};
use miras_base::diagnostic::code;
use miras_base::{Diagnostic, DimEnv};
use miras_rule as rule;
use miras_spec as spec;
use miras_term as term;
use std::sync::Arc;

/// Sizes and seed of synthetic inputs.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// The same seed gives the same inputs.
    pub seed: u64,
    /// B.
    pub batch: usize,
    /// H.
    pub heads: usize,
    /// T.
    pub tokens: usize,
    /// Size of queries and keys.
    pub dk: usize,
    /// Size of values.
    pub dv: usize,
    /// Whether to add `grad.o`.
    pub grad: bool,
}

/// Valid inputs of a rule: float32 tensors for [`crate::bind`].
///
/// Queries and keys have unit norm, values entries of unit variance. Gates lie well inside their kinds and
/// where an inner loop contracts: `unit` gates of the retention in [0.02, 0.15], `positive` gates of the
/// algorithm (step sizes) in [0.005, 0.02]. Initial weights lie inside their retention's domain.
/// Optional tensors are given too. All numbers come from additions, products and square roots, which
/// machines agree on to the bit.
///
/// Errors: sizes of 0 other than T, or more than memory holds.
pub fn synthetic(rule: &rule::UpdateRule, wanted: &Synthetic) -> Result<Bundle, Diagnostic> {
    let dims = DimEnv::from([(Arc::from("dk"), wanted.dk as u64), (Arc::from("dv"), wanted.dv as u64)]);
    let repeats = rule.layer.repeats() as usize;
    let sizes = Sizes { batch: wanted.batch, heads: wanted.heads, tokens: wanted.tokens, repeats, dims };
    let mut maker = Maker { rule, sizes: &sizes, random: Random(wanted.seed), bundle: Bundle::new() };
    maker.check()?;
    maker.sequences(wanted)?;
    maker.params()?;
    maker.weights()?;
    Ok(maker.bundle)
}

struct Maker<'a> {
    rule: &'a rule::UpdateRule,
    sizes: &'a Sizes,
    random: Random,
    bundle: Bundle,
}

impl Maker<'_> {
    fn check(&self) -> Result<(), Diagnostic> {
        let zero =
            self.sizes.batch == 0 || self.sizes.heads == 0 || self.sizes.dims.values().any(|n| *n == 0);
        if zero {
            let message = "B, H, dk and dv must be at least 1";
            return Err(Diagnostic::new(code::BAD_OPTION, message).with_help("only T may be 0"));
        }
        let (empty, options) = (Bundle::new(), BindOptions::default());
        let mut desk = Desk::new(self.rule, &empty, &options);
        match room::fits(&mut desk, self.sizes, self.sizes.batch) {
            true => Ok(()),
            false => Err(desk.problems.pop().unwrap_or_else(|| too_large("the inputs"))),
        }
    }

    fn put(
        &mut self,
        name: &str,
        shape: Vec<usize>,
        mut value: impl FnMut(&mut Random) -> f64,
    ) -> Result<(), Diagnostic> {
        let n = room_for(name, &shape)?;
        let values = (0..n).map(|_| value(&mut self.random) as f32).collect();
        self.bundle.insert(name, Tensor { shape, data: Data::F32(values) });
        Ok(())
    }

    fn sequences(&mut self, wanted: &Synthetic) -> Result<(), Diagnostic> {
        let shape = |entries, last| vec![wanted.batch, wanted.heads, entries, last];
        let steps = self.sizes.entries(true);
        for (name, entries) in [("q", wanted.tokens), ("k", steps)] {
            let shape = shape(entries, wanted.dk);
            room_for(name, &shape)?;
            let rows: usize = shape[..3].iter().product();
            let values = (0..rows).flat_map(|_| self.random.unit_vector(wanted.dk)).collect();
            self.bundle.insert(name, Tensor { shape, data: Data::F32(values) });
        }
        self.put("v", shape(steps, wanted.dv), Random::normal)?;
        if wanted.grad {
            self.put("grad.o", shape(wanted.tokens, wanted.dv), Random::normal)?;
        }
        Ok(())
    }

    fn params(&mut self) -> Result<(), Diagnostic> {
        for param in &self.rule.layer.params {
            let own = self.own(&param.tensor, &self.rule.layer.terms.var(param.var).shape)?;
            let (start, mut shape) = match param.source {
                spec::Source::Learned(_) | spec::Source::Input => {
                    (None, self.sizes.token_axes(param.repeated).iter().map(|a| a.size).collect())
                }
                spec::Source::Trained(start) | spec::Source::Slow(start) => (start, vec![self.sizes.heads]),
            };
            shape.extend(&own);
            let start = start.and_then(|term| self.scene().per_head(term, &own, Width::F64).ok());
            let [low, high] = range(param);
            match start.as_ref().and_then(Tensor::f64s) {
                None => self.put(&param.tensor, shape, |r| r.between(low, high))?,
                Some(start) => {
                    let mut start = start.iter();
                    self.put(&param.tensor, shape, |r| {
                        let near =
                            start.next().unwrap_or(&0.0) * r.between(0.9, 1.1) + 0.05 * r.between(0.0, 1.0);
                        match param.kind {
                            spec::Kind::Unit => near.clamp(0.0, 1.0),
                            spec::Kind::Positive => near.max(0.0),
                            spec::Kind::Real => near,
                        }
                    })?;
                }
            }
        }
        Ok(())
    }

    fn weights(&mut self) -> Result<(), Diagnostic> {
        for (index, weight) in self.rule.layer.memory.weights.iter().enumerate() {
            let name = format!("memory.{}", weight.name);
            let own = self.own(&name, &self.rule.layer.terms.var(weight.var).shape)?;
            let shape = [&[self.sizes.heads], own.as_slice()].concat();
            let domain = self.rule.retention.get(index).map_or(&rule::InitialDomain::Any, |r| &r.initial);
            let inner = *own.last().unwrap_or(&1) as f64;
            match domain {
                rule::InitialDomain::Any => self.put(&name, shape, |r| r.normal() / inner.sqrt())?,
                rule::InitialDomain::Open(low, high) => {
                    let [low, high] = middle(*low, *high);
                    self.put(&name, shape, |r| r.between(low, high))?;
                }
                rule::InitialDomain::Simplex(axis, mass) => {
                    let masses = self.masses(*mass)?;
                    room_for(&name, &shape)?;
                    let values =
                        masses.iter().flat_map(|m| simplex(&mut self.random, *axis, &own, *m)).collect();
                    self.bundle.insert(name, Tensor { shape, data: Data::F32(values) });
                }
            }
        }
        Ok(())
    }

    /// The mass for each head.
    fn masses(&self, mass: term::TermId) -> Result<Vec<f64>, Diagnostic> {
        let values = self.scene().per_head(mass, &[], Width::F64).map_err(|e| {
            Diagnostic::new(
                code::UNSUPPORTED,
                format!("the mass of a simplex has no value before the first token: {e}"),
            )
            .with_help("give the mass as a number")
        })?;
        Ok(values.f64s().map(|v| v.to_vec()).unwrap_or_default())
    }

    fn scene(&self) -> Scene<'_> {
        Scene { layer: &self.rule.layer, sizes: self.sizes, number: (0, 1), params: &[], complete: true }
    }

    fn own(&self, name: &str, shape: &term::Shape) -> Result<Vec<usize>, Diagnostic> {
        let axes = self.sizes.axes(shape).ok_or_else(|| {
            Diagnostic::new(
                code::TENSOR_SHAPE,
                format!("`{}` would have shape {shape}, which is no size", shown(name)),
            )
            .with_help("choose dk and dv so that every axis has a size of at least 1")
        })?;
        Ok(axes.iter().map(|a| a.size).collect())
    }
}

/// Where the values of a parameter lie.
fn range(param: &spec::Param) -> [f64; 2] {
    let algo = param.tensor.starts_with("algo.");
    match (param.kind, algo) {
        (spec::Kind::Unit, true) => [0.2, 0.6],
        (spec::Kind::Unit, false) => [0.02, 0.15],
        (spec::Kind::Positive, true) => [0.005, 0.02],
        (spec::Kind::Positive, false) => [0.3, 0.9],
        (spec::Kind::Real, _) => [0.05, 0.4],
    }
}

/// A range inside an open interval that may be unbounded.
fn middle(low: f64, high: f64) -> [f64; 2] {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => [low + 0.2 * (high - low), low + 0.8 * (high - low)],
        (true, false) => [low + 0.5, low + 1.5],
        (false, true) => [high - 1.5, high - 0.5],
        (false, false) => [-1.0, 1.0],
    }
}

/// One weight whose slices sum to the mass.
fn simplex(random: &mut Random, axis: term::Axis, shape: &[usize], mass: f64) -> Vec<f32> {
    let n: usize = shape.iter().product();
    let mut values: Vec<f64> = (0..n).map(|_| random.between(0.5, 1.5)).collect();
    let cols = shape.last().copied().unwrap_or(1).max(1);
    let slice = |flat: usize| match (axis, shape.len()) {
        (term::Axis::Row, 2) => flat / cols,
        (term::Axis::Column, 2) => flat % cols,
        (term::Axis::Row | term::Axis::Column | term::Axis::All, _) => 0,
    };
    let mut sums = vec![0.0; n.max(1)];
    for (flat, value) in values.iter().enumerate() {
        sums[slice(flat)] += value;
    }
    for (flat, value) in values.iter_mut().enumerate() {
        *value *= mass / sums[slice(flat)];
    }
    values.into_iter().map(|x| x as f32).collect()
}

/// The number of entries, where memory holds them.
fn room_for(name: &str, shape: &[usize]) -> Result<usize, Diagnostic> {
    let fits = |n: &usize| (*n as u64).saturating_mul(4) <= crate::limit::memory();
    count(shape).filter(fits).ok_or_else(|| too_large(name))
}

fn too_large(name: &str) -> Diagnostic {
    Diagnostic::new(code::DEVICE_LIMIT, format!("`{name}` does not fit into memory"))
        .with_help("choose fewer rows, heads or tokens, or smaller dk and dv")
}

/// Random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood 2014), a counter with a
/// mixing function.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Nearly normal: the sum of twelve uniform numbers less six has variance 1, and needs no logarithm.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn unit_vector(&mut self, n: usize) -> Vec<f32> {
        let x: Vec<f64> = (0..n).map(|_| self.normal()).collect();
        let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-6);
        x.into_iter().map(|x| (x / norm) as f32).collect()
    }
}
