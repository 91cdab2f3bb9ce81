//! The precedence of operators, laid over the flat operands and operators of the grammar.
//!
//! Two stacks and no recursion: a chain of any length cannot overflow anything.

use super::Builder;
use super::expr::Deep;
use crate::ast::{BinaryOp, ExprKind, UnaryOp};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;

/// How tightly an operator binds. The table of `grammar/README.md`, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// `< <= > >= == !=`, which do not chain.
    Comparison,
    /// `+ -`, from the left.
    Sum,
    /// `* / @`, from the left.
    Product,
    /// A minus before an operand.
    Negation,
    /// `^`, from the right.
    Power,
}

/// An operator and its place.
#[derive(Clone, Copy)]
pub(super) struct Item {
    op: Operator,
    level: Level,
    span: Span,
}

#[derive(Clone, Copy)]
enum Operator {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

impl Item {
    /// The binary operator with this symbol.
    pub(super) fn binary(symbol: &str, span: Span) -> Option<Item> {
        let row = TABLE.iter().find(|(op, _)| op.symbol() == symbol)?;
        Some(Item { op: Operator::Binary(row.0), level: row.1, span })
    }

    /// A minus before an operand.
    pub(super) fn negation(span: Span) -> Item {
        Item { op: Operator::Unary(UnaryOp::Neg), level: Level::Negation, span }
    }
}

const TABLE: &[(BinaryOp, Level)] = &[
    (BinaryOp::Lt, Level::Comparison),
    (BinaryOp::Le, Level::Comparison),
    (BinaryOp::Gt, Level::Comparison),
    (BinaryOp::Ge, Level::Comparison),
    (BinaryOp::Eq, Level::Comparison),
    (BinaryOp::Ne, Level::Comparison),
    (BinaryOp::Add, Level::Sum),
    (BinaryOp::Sub, Level::Sum),
    (BinaryOp::Mul, Level::Product),
    (BinaryOp::Div, Level::Product),
    (BinaryOp::MatMul, Level::Product),
    (BinaryOp::Pow, Level::Power),
];

/// An operation being read.
#[derive(Default)]
pub(super) struct Operators {
    operands: Vec<Deep>,
    waiting: Vec<Item>,
    compared: Option<Span>,
}

impl Operators {
    pub(super) fn operand(&mut self, operand: Deep) {
        self.operands.push(operand);
    }

    pub(super) fn push(&mut self, builder: &mut Builder<'_>, item: Item) -> Result<(), Diagnostic> {
        if let Operator::Binary(_) = item.op {
            let from_right = item.level == Level::Power;
            while let Some(top) = self.waiting.last() {
                if top.level < item.level || (top.level == item.level && from_right) {
                    break;
                }
                self.apply(builder)?;
            }
            if item.level == Level::Comparison
                && let Some(first) = self.compared.replace(item.span)
            {
                builder.problems.push(chained(first, item.span));
            }
        }
        self.waiting.push(item);
        Ok(())
    }

    pub(super) fn finish(mut self, builder: &mut Builder<'_>) -> Result<Deep, Diagnostic> {
        while !self.waiting.is_empty() {
            self.apply(builder)?;
        }
        self.operands.pop().ok_or_else(out_of_step)
    }

    /// Applies the last waiting operator to the last operands.
    fn apply(&mut self, builder: &mut Builder<'_>) -> Result<(), Diagnostic> {
        let item = self.waiting.pop().ok_or_else(out_of_step)?;
        let (right, below) = self.operands.pop().ok_or_else(out_of_step)?;
        let result = match item.op {
            Operator::Unary(op) => {
                let span = item.span.to(right.span);
                builder.node(ExprKind::Unary { op, operand: Box::new(right) }, span, below)
            }
            Operator::Binary(op) => {
                let (left, other) = self.operands.pop().ok_or_else(out_of_step)?;
                let span = left.span.to(right.span);
                let kind =
                    ExprKind::Binary { op, op_span: item.span, left: Box::new(left), right: Box::new(right) };
                builder.node(kind, span, below.max(other))
            }
        };
        self.operands.push(result);
        Ok(())
    }
}

fn out_of_step() -> Diagnostic {
    Diagnostic::bug("operators and operands of an expression do not alternate")
}

fn chained(first: Span, second: Span) -> Diagnostic {
    Diagnostic::new(code::SYNTAX, "comparisons cannot be chained")
        .at(second, "a second comparison")
        .at(first, "the first one")
        .with_help("compare two things at a time: `if a < b then (if b < c then x else y) else y`")
}
