//! # miras-rule: from a layer to its update rule
//!
//! **Purpose.** Derive: the inner gradient by reverse mode as a sum of outer products, the closed form
//! of retention from its objective, the class of the recurrence; keep every step for explanation.
//!
//! **Takes** a [`spec::Layer`]. **Gives** an [`UpdateRule`] and its [`Derivation`], or a typed refusal.
//! **May touch** base, term, spec. **Must not** know time, chunks, devices or any name of the library.
//!
//! **Invariants.** The rule is closed: its terms use only variables of the roles Query, Key, Value,
//! Weight, Dual, Update, Gradient, Retained, State, NewState and Parameter, in the places that
//! [`rule`] documents. Every solution in a rule satisfies the stationarity of its objective; tests check
//! that numerically for every strategy.

pub mod algebra;
pub mod answer;
pub mod calculus;
pub mod classify;
mod derive;
pub mod gradient;
pub mod retain;
pub mod rule;
mod tell;
mod warn;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod witness;

use miras_spec as spec;

pub use derive::derive;
pub use rule::*;

/// The layer type this room reads.
pub type Layer = spec::Layer;
