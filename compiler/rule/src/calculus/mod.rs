//! The inner calculus: symbolic derivatives of terms and verified simplification.

pub mod fold;
pub mod reverse;
pub mod rules;
pub mod simplify;

#[cfg(test)]
pub(crate) mod witness;

pub use reverse::{gradient, vector_jacobian};
