//! # miras-base: what every room shares
//!
//! **Purpose.** Places in source text, diagnostics and their catalogue, symbolic dimensions, and the
//! one table of scalar functions (value, derivative, inverse, singular points, printed forms).
//!
//! **Takes** nothing. **Gives** vocabulary. **May touch** serde, miette (protocol only).
//! **Must not** know any intermediate representation.
//!
//! **Invariants.** A span always points into a file of the [`SourceMap`] it was made from; a
//! [`Diagnostic`] always carries a code of the catalogue; every row of [`scalar`] has a numeric
//! witness in this crate's tests.

pub mod diagnostic;
pub mod dim;
pub mod scalar;
pub mod source;

pub use diagnostic::{Code, Diagnostic, Fault, Severity};
pub use dim::{Dim, DimEnv};
pub use source::{FileId, SourceMap, Span};
