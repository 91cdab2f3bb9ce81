//! # miras-kernel: what one task does
//!
//! **Purpose.** The last representation before code: one [`Program`] says what one task, a (stream, head)
//! pair, does over all its tokens, as fused loop nests, products and slice functions over flat float32
//! arrays. Both emitters (Cranelift, WGSL) consume it.
//!
//! **Takes** a tensor graph (`lower`). **Gives** a [`Verified`] program, its text ([`print`]) and its meaning
//! ([`interpret`], in float64 or float32).
//!
//! **May touch** nothing outside. **Must not** know WGSL or machine code, nor any named rule.
//!
//! **Invariants of a verified program.** Every access lies inside its array for any number of tokens; no
//! element is read before it was written; the points of a nest may run in any order and together; every
//! output and every state handed on is written whole, whatever the number of tokens (0 included).

pub mod build;
mod count;
pub mod interpret;
pub mod ir;
pub mod lower;
pub mod print;
pub mod verify;

pub use count::{Work, count};
pub use interpret::interpret;
pub use ir::{
    Access, Affine, Apply, Array, ArrayId, Axis, Copy, Count, Expr, ExprId, Factor, Loop, Matrix, Nest, Op,
    Order, Product, Program, Reduction, ReductionId, Role, Scalar, Stmt, Store, Var, VarId,
};
pub use verify::{Verified, verify};
