//! The program of one task: arrays, statements, and the loops around them.
//!
//! Sizes are numbers; only the number of tokens is left to run time. Everything is float32 in the
//! emitted code; the order of every sum is fixed by the program.

mod affine;
mod nest;

pub use affine::{Access, Affine, VarId};
pub use nest::{Axis, Expr, ExprId, Nest, Op, Reduction, ReductionId, Store};

use miras_base::scalar::Fn1;

/// Index of an array in [`Program::arrays`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(pub u32);

/// What one task does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The layer's name, for messages and comments.
    pub name: String,
    /// Every array, by [`ArrayId`].
    pub arrays: Vec<Array>,
    /// Every loop variable, by [`VarId`]; each belongs to one loop, axis or reduction.
    pub vars: Vec<Var>,
    /// The statements, in order.
    pub body: Vec<Stmt>,
}

/// A loop variable's name, e.g. `t` or `row`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// For text only; need not be unique.
    pub name: String,
}

/// An array of floats, flat, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name in the specification or in the data: `k`, `retention.alpha`, `state.memory.W1`; unique, but
    /// that a state coming in and the same state handed on share theirs.
    pub name: String,
    /// Who fills it and who reads it.
    pub role: Role,
    /// Sizes of one whole (or, of a token array, of one entry), each at least 1; empty for one number.
    pub shape: Vec<usize>,
    /// The equation or phrase that says what it holds.
    pub doc: String,
}

/// Who fills an array, who reads it, and whether there is one for each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Given: `[T * entries, shape...]`, read only.
    TokenInput {
        /// Entries of one token (more than 1 where an algorithm steps several times per token).
        entries: usize,
    },
    /// Given: `[(K + T) * entries, shape...]`, the K tokens kept from before the run first; read only.
    PastInput {
        /// Entries of one token.
        entries: usize,
    },
    /// Given once per head: initial weights, slow and trained tensors; read only.
    HeadInput,
    /// Given: a state as the stream's earlier piece left it; read only.
    StateIn,
    /// To be written whole: the state handed on. May be read and rewritten after that.
    StateOut,
    /// To be written whole: `[T * entries, shape...]`. Within a token what was written may be read.
    TokenOutput {
        /// Entries of one token.
        entries: usize,
    },
    /// The task's own; holds nothing at the start.
    Scratch,
}

impl Role {
    /// Entries per token, of an array that has one part for each token.
    pub fn entries(self) -> Option<usize> {
        match self {
            Role::TokenInput { entries } | Role::TokenOutput { entries } | Role::PastInput { entries } => {
                Some(entries)
            }
            Role::HeadInput | Role::StateIn | Role::StateOut | Role::Scratch => None,
        }
    }

    /// The loops that run over its parts, of an array that has one part for each token.
    pub fn along(self) -> Option<Count> {
        match self {
            Role::TokenInput { .. } | Role::TokenOutput { .. } => Some(Count::Tokens),
            Role::PastInput { .. } => Some(Count::Past),
            Role::HeadInput | Role::StateIn | Role::StateOut | Role::Scratch => None,
        }
    }

    /// Whether the program may store to it.
    pub fn writable(self) -> bool {
        match self {
            Role::StateOut | Role::TokenOutput { .. } | Role::Scratch => true,
            Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => false,
        }
    }
}

impl Array {
    /// Elements of one token's part, or of the whole where there is one for all tokens; `None` when that
    /// exceeds 64 bits.
    pub fn part(&self) -> Option<usize> {
        let one = self.shape.iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
        one.checked_mul(self.role.entries().unwrap_or(1))
    }

    /// Elements in all for `tokens` tokens after `kept` ones; `None` when that exceeds 64 bits.
    pub fn len(&self, tokens: usize, kept: usize) -> Option<usize> {
        match self.role.along() {
            Some(Count::Tokens) => self.part()?.checked_mul(tokens),
            Some(Count::Past) => self.part()?.checked_mul(kept.checked_add(tokens)?),
            Some(Count::Const(_)) | None => self.part(),
        }
    }
}

/// Numbers that are known when a task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// Tokens in this run, T.
    Tokens,
    /// Tokens kept from before the run, K.
    Kept,
    /// Number of the first token since the stream's start.
    First,
    /// Number of the head, from 0.
    Head,
    /// How many heads.
    Heads,
    /// Number of the layer, from 0.
    Layer,
    /// How many layers.
    Layers,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Repeats its body, one after the other.
    Loop(Loop),
    /// Points that may run in any order: map, reduce, store.
    Nest(Nest),
    /// An elementary function over a contiguous run.
    Apply(Apply),
    /// A contiguous run from one place to another.
    Copy(Copy),
    /// A matrix product.
    Product(Product),
}

/// A sequential loop: over time, an inner scan, the steps of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Its variable, counting 0, 1, ... (or down to 0).
    pub var: VarId,
    /// How often.
    pub count: Count,
    /// In which direction.
    pub order: Order,
    /// What.
    pub body: Vec<Stmt>,
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A fixed number of times, at least 1.
    Const(usize),
    /// Once per token: T times, so perhaps never.
    Tokens,
    /// Once per token kept from before the run, then once per token: K + T times.
    Past,
}

/// The direction of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// 0, 1, ..., n - 1
    Ascending,
    /// n - 1, ..., 1, 0
    Descending,
}

/// `dst[i] = function(src[i])` for i < len. `src` and `dst` are the same run or do not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The equation, for comments.
    pub equation: String,
    /// The function.
    pub function: Fn1,
    /// First element read.
    pub src: Access,
    /// First element written.
    pub dst: Access,
    /// Elements, at least 1.
    pub len: usize,
}

/// `dst[i] = src[i]` for i < len; the runs do not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The equation, for comments.
    pub equation: String,
    /// First element read.
    pub src: Access,
    /// First element written.
    pub dst: Access,
    /// Elements, at least 1.
    pub len: usize,
}

/// `c = beta * c + alpha * a @ b`, with a `[m, k]`, b `[k, n]`, c `[m, n]`; c meets neither a nor b. With
/// `beta` the constant 0, c need not hold anything before.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The equation, for comments.
    pub equation: String,
    /// Rows of c, at least 1.
    pub m: usize,
    /// Columns of c, at least 1.
    pub n: usize,
    /// Length of each sum, at least 1.
    pub k: usize,
    /// Left operand.
    pub a: Matrix,
    /// Right operand.
    pub b: Matrix,
    /// Result.
    pub c: Matrix,
    /// Factor of the product.
    pub alpha: Factor,
    /// Factor of what c held.
    pub beta: Factor,
    /// Whether a is lower triangular: what lies above its diagonal takes no part, whatever stands there.
    pub triangular: bool,
}

/// A matrix inside an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Its element (0, 0).
    pub start: Access,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one column to the next.
    pub col_stride: usize,
}

impl Matrix {
    /// The same with rows and columns exchanged.
    #[must_use]
    pub fn turned(self) -> Matrix {
        Matrix { row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }
}

/// A factor of a product.
#[derive(Clone, Debug, PartialEq)]
pub enum Factor {
    /// A number.
    Const(f64),
    /// An element of an array.
    Load(Access),
}

impl Program {
    /// The array, or `None` for an id of another program.
    pub fn array(&self, id: ArrayId) -> Option<&Array> {
        self.arrays.get(id.0 as usize)
    }

    /// The array of this name.
    pub fn find(&self, name: &str) -> Option<ArrayId> {
        let at = self.arrays.iter().position(|a| a.name == name)?;
        Some(ArrayId(u32::try_from(at).ok()?))
    }
}
