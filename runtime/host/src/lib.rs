//! # miras-host: data in, data out
//!
//! **Purpose.** Tensors and the files that hold them; binding of a file's tensors to an update rule with
//! every check that docs/guide.md demands; names and shapes of the results; synthetic inputs.
//!
//! **Takes** a [`rule::UpdateRule`] and a [`Bundle`] of named tensors. **Gives** a [`Bound`] problem that
//! every backend can run without further checks, and [`Outputs`] to collect its results.
//! **May touch** base, term, spec, rule; the file system. **Must not** know a device or a
//! schedule's plan.
//!
//! **Invariants.** Whatever the bytes or tensors given, the answer is a value or diagnostics, never a
//! panic and never an allocation that a file's length or the memory limit does not cover. In a
//! [`Bound`] all shapes fit, all floats are finite and in their domains as the backend will see them
//! (after rounding to its width), and all of them have that width. OUT is written whole or not at all.

pub mod bind;
mod bundle;
mod file;
mod finite;
mod limit;
mod outputs;
mod synthetic;
mod tensor;

use miras_rule as rule;

pub use bind::{
    BindOptions, Bound, BoundCache, BoundParam, BoundState, BoundWeight, Cotangents, Layout, Schedule,
    Stream, bind,
};
pub use bundle::{Bundle, Foreign};
pub use file::{Pending, Prepared, parse, read, write, write_bytes, write_files};
pub use finite::not_finite;
pub use outputs::{Output, OutputKind, Outputs, cache_lengths, layout};
pub use synthetic::{Random, Synthetic, synthetic};
pub use tensor::{Data, Tensor, Width};

/// The rule that data is bound to.
pub type Rule = rule::UpdateRule;
pub use rule::Remembered;
