//! # miras-spec: from syntax to an elaborated layer
//!
//! **Purpose.** Resolve names against the user's file and the library, bind parameters, unroll
//! compile-time loops, check kinds and symbolic shapes, and hand on a [`Layer`]: the four choices as
//! terms over variables with roles.
//!
//! **Takes** syntax trees and the library's text. **Gives** [`Layer`] and diagnostics.
//! **May touch** base, syntax, term, stdlib (text only). **Must not** do calculus (but for the slope
//! of a function of one entry, which the word `bregman` means), read files, or know any name of the library.
//!
//! **Invariants.** Every term of a layer lives in [`Layer::terms`] and uses only variables whose role
//! makes sense where it stands (see each field). All parameters are bound: to a constant term, or to an
//! entry of [`Layer::params`] that the data must supply.

mod elaborate;
mod eval;
pub mod layer;
mod program;

pub use layer::*;
pub use program::{LayerName, Library, Program, Reader, WrittenLayer};
