//! Results: their names, shapes and collection.

use crate::bind::{Bound, Schedule, frozen, kept};
use crate::bundle::Bundle;
use crate::tensor::{Data, Tensor, count};
use miras_base::Diagnostic;
use miras_rule as rule;
use miras_spec as spec;

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputKind {
    /// `o`, [B, H, T, dv].
    Answer,
    /// `state.memory.<name>` of a weight, [N, H, ...].
    Carried(usize),
    /// `state.anchor.<name>` of a weight, [N, H, ...]; equal to the carried value in rows at a boundary.
    Anchor(usize),
    /// What else is remembered of a weight, [N, H, ...]; 0 in rows at a boundary.
    Remembered(usize, rule::Remembered),
    /// `state.algo.<name>` of a state, [N, H, ...].
    Algo(usize),
    /// `state.cache.k`, [B, H, L, dk]; packed: the streams' caches end to end.
    CacheKeys,
    /// `state.cache.v`, [B, H, L, dv].
    CacheValues,
    /// `state.cache.segments`, int64 [N+1]; packed only. Filled in by [`Outputs`].
    CacheSegments,
    /// `state.position`, int64 [N]. Filled in by [`Outputs`].
    Position,
    /// `state.chunk`, int64 [1]: C, or 1 from the recurrent schedule. Filled in by [`Outputs`].
    Chunk,
    /// `d.<name>` of a floating input, of its shape.
    Gradient,
}

/// One result: its name, shape and meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Name in OUT.
    pub name: String,
    /// Sizes of its axes.
    pub shape: Vec<usize>,
    /// What it is.
    pub kind: OutputKind,
}

/// All results of a run, in the order `o`, `state.*`, `d.*`.
pub fn layout(rule: &rule::UpdateRule, bound: &Bound) -> Vec<Output> {
    let mut all = Vec::new();
    let mut add = |name: String, shape: Vec<usize>, kind| all.push(Output { name, shape, kind });
    let size = |name: &str| bound.dims.get(name).map_or(0, |n| *n as usize);
    let rows = [bound.streams.len(), bound.heads];
    let answer = vec![bound.batch, bound.heads, bound.tokens, size("dv")];
    add("o".into(), answer, OutputKind::Answer);
    for (i, (weight, declared)) in bound.weights.iter().zip(&rule.layer.memory.weights).enumerate() {
        let shape = [&rows, weight.shape.as_slice()].concat();
        add(format!("state.memory.{}", declared.name), shape.clone(), OutputKind::Carried(i));
        if anchored(rule, bound) {
            add(format!("state.anchor.{}", declared.name), shape.clone(), OutputKind::Anchor(i));
            for part in rule.remembered(i) {
                let own = match part {
                    rule::Remembered::Threshold | rule::Remembered::Start => weight.shape.as_slice(),
                    rule::Remembered::Scale => &[],
                };
                let shape = [&rows, own].concat();
                add(part.tensor(&declared.name), shape, OutputKind::Remembered(i, part));
            }
        }
    }
    let states = match &rule.layer.algo {
        spec::Algo::Step(step) => step.states.as_slice(),
        spec::Algo::Weigh(_) => &[],
    };
    for (i, (state, declared)) in bound.states.iter().zip(states).enumerate() {
        let shape = [&rows, state.shape.as_slice()].concat();
        add(format!("state.algo.{}", declared.name), shape, OutputKind::Algo(i));
    }
    if let Some(lengths) = cache_lengths(&rule.layer, bound) {
        let length = match bound.packed {
            true => lengths.iter().sum(),
            false => lengths.first().copied().unwrap_or(0),
        };
        let shape = |d| vec![bound.batch, bound.heads, length, d];
        add("state.cache.k".into(), shape(size("dk")), OutputKind::CacheKeys);
        add("state.cache.v".into(), shape(size("dv")), OutputKind::CacheValues);
        if bound.packed {
            add("state.cache.segments".into(), vec![lengths.len() + 1], OutputKind::CacheSegments);
        }
    }
    add("state.position".into(), vec![bound.streams.len()], OutputKind::Position);
    add("state.chunk".into(), vec![1], OutputKind::Chunk);
    if bound.cotangents.is_some() {
        for (name, shape) in &bound.given {
            add(format!("d.{name}"), shape.clone(), OutputKind::Gradient);
        }
    }
    all
}

/// Past tokens that each stream's cache holds after the run: the last ones. None without a history.
pub fn cache_lengths(layer: &spec::Layer, bound: &Bound) -> Option<Vec<usize>> {
    let cache = bound.cache.as_ref()?;
    let length = |(stream, (first, last)): (&crate::Stream, &(usize, usize))| {
        let tokens = (last - first) + stream.len();
        usize::try_from(kept(layer, tokens as u64)).unwrap_or(tokens)
    };
    Some(bound.streams.iter().zip(&cache.ranges).map(length).collect())
}

/// Whether some stream ends inside a chunk of a layer whose gradients are frozen there.
fn anchored(rule: &rule::UpdateRule, bound: &Bound) -> bool {
    let chunk = u64::from(bound.schedule.chunk());
    let inside = |s: &crate::Stream| !(s.position + s.len() as u64).is_multiple_of(chunk);
    match bound.schedule {
        Schedule::Recurrent => false,
        Schedule::Chunked(_) => frozen(rule) && bound.streams.iter().any(inside),
    }
}

/// Collects the results of a run and gives them as a [`Bundle`] once all are there.
#[derive(Clone, Debug)]
pub struct Outputs {
    expected: Vec<Output>,
    width: crate::Width,
    bundle: Bundle,
}

impl Outputs {
    /// For the results of this problem; integers are filled in.
    pub fn new(rule: &rule::UpdateRule, bound: &Bound) -> Outputs {
        let expected = layout(rule, bound);
        let mut bundle = Bundle::new();
        for output in &expected {
            let values = match output.kind {
                OutputKind::Position => {
                    bound.streams.iter().map(|s| integer(s.position + s.len() as u64)).collect()
                }
                OutputKind::Chunk => vec![i64::from(bound.schedule.chunk())],
                OutputKind::CacheSegments => cuts(&cache_lengths(&rule.layer, bound).unwrap_or_default()),
                OutputKind::Answer
                | OutputKind::Carried(_)
                | OutputKind::Anchor(_)
                | OutputKind::Remembered(..)
                | OutputKind::Algo(_)
                | OutputKind::CacheKeys
                | OutputKind::CacheValues
                | OutputKind::Gradient => continue,
            };
            bundle.insert(output.name.clone(), Tensor::i64(output.shape.clone(), values));
        }
        Outputs { expected, width: bound.width, bundle }
    }

    /// The results to fill in.
    pub fn expected(&self) -> &[Output] {
        &self.expected
    }

    /// Stores the values of a result; floats of another width than the run's are converted.
    ///
    /// An unknown name or a wrong number of values is an error of ours (E0901).
    pub fn set(&mut self, name: &str, data: Data) -> Result<(), Diagnostic> {
        let Some(output) = self.expected.iter().find(|o| o.name == name) else {
            return Err(Diagnostic::bug(format!("`{name}` is no result of this run")));
        };
        if count(&output.shape) != Some(data.len()) {
            let what = format!("`{name}` has shape {:?} but {} values", output.shape, data.len());
            return Err(Diagnostic::bug(what));
        }
        let data = match data {
            Data::F32(x) if self.width == crate::Width::F64 => {
                Data::F64(x.into_iter().map(f64::from).collect())
            }
            Data::F64(x) => Data::from_f64(self.width, x),
            Data::F32(_) | Data::I64(_) => data,
        };
        self.bundle.insert(name, Tensor { shape: output.shape.clone(), data });
        Ok(())
    }

    /// The results; E0901 where one was not filled in.
    pub fn finish(self) -> Result<Bundle, Diagnostic> {
        match self.expected.iter().find(|o| !self.bundle.has(&o.name)) {
            Some(missing) => Err(Diagnostic::bug(format!("the run did not give `{}`", missing.name))),
            None => Ok(self.bundle),
        }
    }
}

fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn cuts(lengths: &[usize]) -> Vec<i64> {
    let mut end = 0_u64;
    let ends = lengths.iter().map(|n| {
        end += *n as u64;
        integer(end)
    });
    std::iter::once(0).chain(ends).collect()
}
