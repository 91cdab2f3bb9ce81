//! The abstract syntax tree: what was written, with its places, and nothing concluded from it.
//!
//! Plain data. Every node carries the [`Span`] it was read from. One closed statement type serves all
//! definition bodies, layers and blocks; which statement is legal where is decided by a later room.
//! Parentheses and comments are not kept (the formatter works on tokens), except that the comment lines
//! directly above an item become its `doc`.

mod expr;
mod item;
mod stmt;

pub use expr::{Arg, BinaryOp, Expr, ExprKind, UnaryOp};
pub use item::{
    Definition, DefinitionKind, Domain, File, Function, Item, Kind, Layer, LayerAlias, LayerBody, ParamDef,
    Use,
};
pub use stmt::{Declaration, Range, Requirement, Role, Shape, Stmt, StmtKind};

use base::Span;
use miras_base as base;

/// A name with its place. Layer names may hold dots (`bias_lp1.5`), all others are
/// `[A-Za-z_][A-Za-z0-9_]*`. A prime is never part of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The letters.
    pub text: String,
    /// Where.
    pub span: Span,
}
