//! Expressions.

use super::{Ident, Stmt};
use base::Span;
use miras_base as base;

/// An argument: `alpha = 1 - keep`, or only a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Its name, if given.
    pub name: Option<Ident>,
    /// Its value.
    pub value: Expr,
    /// The whole.
    pub span: Span,
}

/// An expression. No tree that [`crate::parse`] gives is deeper than [`crate::MAX_DEPTH`].
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `0.5`; always finite, never negative.
    Number {
        /// The nearest float64.
        value: f64,
        /// As written.
        text: String,
    },
    /// `alpha`
    Name(Ident),
    /// `S'`; the text has no prime.
    Primed(Ident),
    /// `huber(delta = learned)`
    Call {
        /// What is called.
        callee: Ident,
        /// With what.
        args: Vec<Arg>,
    },
    /// `W[l]`
    Index {
        /// Into what.
        base: Box<Expr>,
        /// Where.
        index: Box<Expr>,
    },
    /// `input.kappa`
    Member {
        /// Of what.
        base: Box<Expr>,
        /// Which.
        field: Ident,
    },
    /// `-x`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it is applied to.
        operand: Box<Expr>,
    },
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// Left of it.
        left: Box<Expr>,
        /// Right of it.
        right: Box<Expr>,
    },
    /// `if c then a else b`
    If {
        /// The condition.
        cond: Box<Expr>,
        /// The value where it holds.
        then: Box<Expr>,
        /// The value where it does not.
        otherwise: Box<Expr>,
    },
    /// `{ let h = x; h + 1 }`
    Block {
        /// What is done first.
        stmts: Vec<Stmt>,
        /// The value.
        result: Box<Expr>,
    },
}

/// Operators before one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-`
    Neg,
}

/// Operators between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`, entry by entry
    Mul,
    /// `/`, entry by entry
    Div,
    /// `@`, the matrix product
    MatMul,
    /// `^`, entry by entry
    Pow,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl BinaryOp {
    /// As written in a program.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::MatMul => "@",
            BinaryOp::Pow => "^",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
        }
    }
}
