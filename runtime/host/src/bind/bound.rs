//! What binding gives: a problem in which every shape fits and every value is legal.
//!
//! Letters: B rows of the batch, H heads, T tokens, n steps per token, N streams.

use crate::tensor::{Tensor, Width};
use miras_base::{Diagnostic, DimEnv};
use miras_rule::Remembered;
use miras_term as term;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a sequence is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Token by token.
    Recurrent,
    /// In chunks of this many tokens (at least 1).
    Chunked(u32),
}

/// What binding must know besides the rule and the tensors.
#[derive(Clone, Debug)]
pub struct BindOptions {
    /// Width of the backend: all floats of the [`Bound`] have it.
    pub width: Width,
    /// The schedule; it decides which states can be continued.
    pub schedule: Schedule,
    /// Whether gradients are asked for: `grad.o` is then an input.
    pub grad: bool,
    /// Whether tensors that are no inputs of the layer are passed over.
    pub allow_extra: bool,
    /// The layer's number, from 0.
    pub layer: u64,
    /// Number of layers.
    pub layers: u64,
    /// Bytes that states and results may take; None: the machine's memory.
    pub memory_limit: Option<u64>,
}

/// A checked problem. All float tensors have the width `width`.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Width of all floats.
    pub width: Width,
    /// How it is to be run.
    pub schedule: Schedule,
    /// B, at least 1.
    pub batch: usize,
    /// H, at least 1.
    pub heads: usize,
    /// T; 0 is legal.
    pub tokens: usize,
    /// n: entries of k, v and repeated parameters per token.
    pub repeats: usize,
    /// Sizes of `dk` and `dv`, at least 1.
    pub dims: DimEnv,
    /// The layer's number and the number of layers.
    pub layer: (u64, u64),
    /// The streams, N of them: one per row of the batch, or one per segment.
    pub streams: Vec<Stream>,
    /// Whether `segments` were given (B = 1).
    pub packed: bool,
    /// q, [B, H, T, dk].
    pub query: Arc<Tensor>,
    /// k, [B, H, T*n, dk].
    pub key: Arc<Tensor>,
    /// v, [B, H, T*n, dv].
    pub value: Arc<Tensor>,
    /// Parallel to `Layer::params`.
    pub params: Vec<BoundParam>,
    /// Parallel to `Memory::weights`.
    pub weights: Vec<BoundWeight>,
    /// Parallel to `Step::states`; empty for a memory that keeps a history.
    pub states: Vec<BoundState>,
    /// Past keys and values, for a memory that keeps a history; None otherwise. Empty at a start.
    pub cache: Option<BoundCache>,
    /// Whether an earlier state is continued.
    pub continued: bool,
    /// What the results' gradients start from; with `BindOptions::grad`.
    pub cotangents: Option<Cotangents>,
    /// Floating inputs that the data gave (not defaults, not `grad.*`), with their shapes: each has a
    /// gradient `d.<name>`.
    pub given: Vec<(String, Vec<usize>)>,
    /// What the user should know though nothing is wrong.
    pub notes: Vec<Diagnostic>,
}

/// One stream of tokens with a memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Row of the batch.
    pub row: usize,
    /// First token.
    pub first: usize,
    /// One past the last token.
    pub last: usize,
    /// Tokens of the stream before `first`, in earlier runs: chunk boundaries count from there.
    pub position: u64,
}

/// How the values of a parameter lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// [B, H, T * entries, ...].
    PerToken {
        /// Entries per token: n for repeated parameters, else 1.
        entries: usize,
    },
    /// [H, ...].
    PerHead,
}

/// Values of one parameter.
#[derive(Clone, Debug)]
pub struct BoundParam {
    /// Its variable.
    pub var: term::VarId,
    /// How the values lie.
    pub layout: Layout,
    /// Shape of one value; empty for a scalar.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Arc<Tensor>,
    /// Whether the data gave them (else they are the declared start).
    pub given: bool,
}

/// One weight of the memory.
#[derive(Clone, Debug)]
pub struct BoundWeight {
    /// Shape of one weight.
    pub shape: Vec<usize>,
    /// Initial weights as given or declared, [H, ...] (A_0 where the retention declares a dual; W_0
    /// otherwise, from which `Retained::start` makes the carried value). None where a state is continued.
    pub initial: Option<Arc<Tensor>>,
    /// Whether the data gave `initial`.
    pub given: bool,
    /// The carried value to continue from, [N, H, ...].
    pub carried: Option<Arc<Tensor>>,
    /// The carried value at the start of the chunk that is open, [N, H, ...]; None where every stream
    /// is at a chunk boundary or the class needs none.
    pub anchor: Option<Arc<Tensor>>,
    /// What else the stream remembers of the open chunk, [N, H, ...]; empty where `anchor` is None.
    pub remembered: BTreeMap<Remembered, Arc<Tensor>>,
}

/// One state of the algorithm.
#[derive(Clone, Debug)]
pub struct BoundState {
    /// Shape of one state.
    pub shape: Vec<usize>,
    /// Value to start from, [H, ...]. None where a state is continued.
    pub initial: Option<Arc<Tensor>>,
    /// The value to continue from, [N, H, ...].
    pub carried: Option<Arc<Tensor>>,
}

/// Past keys and values.
#[derive(Clone, Debug)]
pub struct BoundCache {
    /// [B, H, L, dk]; packed: [1, H, sum of L, dk], the streams end to end.
    pub keys: Arc<Tensor>,
    /// [B, H, L, dv]; packed likewise.
    pub values: Arc<Tensor>,
    /// For each stream the range of its past along the third axis.
    pub ranges: Vec<(usize, usize)>,
}

/// Cotangents of the results.
#[derive(Clone, Debug)]
pub struct Cotangents {
    /// `grad.o`, [B, H, T, dv].
    pub output: Arc<Tensor>,
    /// `grad.state.*` by the name of the state (`state.memory.W`); missing ones are zero.
    pub states: BTreeMap<String, Arc<Tensor>>,
}

impl Default for BindOptions {
    /// Recurrent, float64, one layer, no gradients, nothing extra.
    fn default() -> Self {
        BindOptions {
            width: Width::F64,
            schedule: Schedule::Recurrent,
            grad: false,
            allow_extra: false,
            layer: 0,
            layers: 1,
            memory_limit: None,
        }
    }
}

impl Stream {
    /// Number of tokens in this run.
    pub fn len(&self) -> usize {
        self.last - self.first
    }

    /// Whether the stream has no tokens in this run.
    pub fn is_empty(&self) -> bool {
        self.first == self.last
    }
}

impl Schedule {
    /// The chunk length; the recurrent schedule is that of chunks of one token.
    pub fn chunk(self) -> u32 {
        match self {
            Schedule::Recurrent => 1,
            Schedule::Chunked(c) => c.max(1),
        }
    }
}

impl BoundParam {
    /// Number of numbers in one value.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Where the value for a row, head, token and step starts in `values`; `heads` and `tokens` are
    /// those of the [`Bound`]. Parameters that are not repeated have the same value for every step.
    pub fn offset(&self, heads: usize, tokens: usize, [row, head, token, step]: [usize; 4]) -> usize {
        match self.layout {
            Layout::PerHead => head * self.size(),
            Layout::PerToken { entries } => {
                let entry = token * entries + step.min(entries - 1);
                ((row * heads + head) * tokens * entries + entry) * self.size()
            }
        }
    }
}
