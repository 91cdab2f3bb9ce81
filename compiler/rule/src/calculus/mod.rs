//! The inner calculus: symbolic derivatives of terms and verified simplification.

pub mod fold;
pub mod reverse;

pub use reverse::{gradient, vector_jacobian};
