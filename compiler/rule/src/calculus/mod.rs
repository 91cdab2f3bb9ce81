//! The inner calculus: symbolic derivatives of terms and verified simplification.

pub mod fold;
pub mod reverse;

#[cfg(test)]
mod witness;

pub use reverse::{gradient, vector_jacobian};
