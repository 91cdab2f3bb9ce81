//! # miras-term: the one expression language
//!
//! **Purpose.** Typed, hash-consed expressions over scalars, vectors and matrices with symbolic shapes:
//! what one token of one head computes. `spec` builds them from programs, `rule` does calculus on them,
//! `tensor` lowers them, `explain` prints them. There is no second representation of a formula.
//!
//! **Takes** nothing but `base`. **Gives** [`Terms`] (the arena), [`TermId`], [`Op`], [`Var`].
//! **May touch** base. **Must not** know definitions, clauses, time, batches or devices.
//!
//! **Invariants.** Operands have smaller ids than their users. Equal terms have equal ids. Every term
//! has a [`Type`]; ranks are 0, 1 or 2. In a binary function operands have equal rank or one is a
//! scalar; axes are equal or one of them is the literal size 1, which is repeated. Two different
//! symbolic sizes that meet are recorded as a [`Constraint`].

mod arena;
mod build;
mod eval;
mod print;
mod shape;
mod walk;

pub use arena::{Axis, Number, Op, Place, Reduce, Role, Root, RootId, TermId, Terms, Var, VarId};
pub use eval::{Env, EvalError, Tensor};
pub use print::{PrintOptions, print, print_within};
pub use shape::{Constraint, Mismatch, Shape, Type};
