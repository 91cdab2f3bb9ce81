//! Slice intrinsics: the table's functions over contiguous float32 numbers, called from compiled code.
//!
//! Cranelift's vectors are 128 bits wide and it has no transcendental functions, so these are ordinary Rust
//! loops compiled for the widest instruction set the machine has (`pulp` chooses at run time). The arithmetic
//! is [`miras_base::scalar::single::value`] itself, the same text that other backends print; nothing is fused, so a number does
//! not depend on the instruction set, on its place in the slice or on the length.
//!
//! **Invariant of every function here**: each pointer is valid for `n` float32 numbers (reading for sources,
//! writing for the destination) and aligned for one; the destination is a source or disjoint from it, never
//! shifted against it. `n = 0` touches nothing.
#![allow(unsafe_code)]

mod sweep;
mod table;

pub use table::{Function, POWER, Pair, pair, slice, table};

#[cfg(test)]
mod witness;
