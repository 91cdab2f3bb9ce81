//! # miras-schedule: from an update rule to a plan over time
//!
//! **Purpose.** Decide how the tokens of a stream are processed (token by token, or in chunks) and in what form
//! the tokens of a chunk are computed, say why
//! that equals the definition or exactly what it neglects, and count what it costs.
//!
//! **Takes** a [`rule::UpdateRule`]. **Gives** a [`Plan`]. **May touch** base, term, spec, rule.
//! **Must not** know storage, kernels or devices.
//!
//! **Invariants.** A plan's rule is the rule it was made from, with more terms in its arena. A plan that is not exact says so in
//! its certificate.

mod blocks;
mod cost;
mod plan;

pub use blocks::{Affine, Blocks, Correction, Factors, Family, Form, Frozen};
pub use cost::{Cost, StatePart, stretch, stretch_of_blocks};
pub use plan::{Plan, Request, Schedule, plan};
