//! Operators, comparisons and choices.

use super::{Eval, Operand, Scope, Tensor, Value, fail_help, size};
use crate::elaborate::Builder;
use base::diagnostic::code;
use base::scalar::{Cmp, Fn1, Fn2};
use base::{Diagnostic, Dim, Span};
use miras_base as base;
use miras_syntax::ast::{BinaryOp, Expr, ExprKind, Ident};
use miras_term::{Op, TermId};
use std::rc::Rc;

/// What an operator does to terms.
enum Action {
    Entries(Fn2),
    Product,
    Compare(Cmp),
}

fn action(op: BinaryOp) -> Action {
    match op {
        BinaryOp::Add => Action::Entries(Fn2::Add),
        BinaryOp::Sub => Action::Entries(Fn2::Sub),
        BinaryOp::Mul => Action::Entries(Fn2::Mul),
        BinaryOp::Div => Action::Entries(Fn2::Div),
        BinaryOp::Pow => Action::Entries(Fn2::Pow),
        BinaryOp::MatMul => Action::Product,
        BinaryOp::Lt => Action::Compare(Cmp::Lt),
        BinaryOp::Le => Action::Compare(Cmp::Le),
        BinaryOp::Gt => Action::Compare(Cmp::Gt),
        BinaryOp::Ge => Action::Compare(Cmp::Ge),
        BinaryOp::Eq => Action::Compare(Cmp::Eq),
        BinaryOp::Ne => Action::Compare(Cmp::Ne),
    }
}

impl Builder<'_> {
    pub(super) fn binary(
        &mut self,
        scope: &mut Scope,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Eval<Value> {
        if let BinaryOp::Eq | BinaryOp::Ne = op
            && let Some(same) = self.same_word(scope, left, right)?
        {
            return Ok(Value::Bool(same == (op == BinaryOp::Eq)));
        }
        let (a, b) = (self.operand(scope, left)?, self.operand(scope, right)?);
        self.operate(op, a, b, span)
    }

    pub(super) fn operate(&mut self, op: BinaryOp, a: Operand, b: Operand, span: Span) -> Eval<Value> {
        match (&a.value, &b.value, op) {
            (Value::Size(x), Value::Size(y), _) => {
                if let Some(value) = size::of_sizes(op, x, y) {
                    return Ok(value);
                }
            }
            (Value::Bool(x), Value::Bool(y), BinaryOp::Eq) => return Ok(Value::Bool(x == y)),
            (Value::Bool(x), Value::Bool(y), BinaryOp::Ne) => return Ok(Value::Bool(x != y)),
            _ => {}
        }
        match action(op) {
            Action::Entries(f) => self.entries(f, &[a, b], span),
            Action::Compare(cmp) => self.compare(cmp, &[a, b], span),
            Action::Product => self.lift(&[a, b], span, |me, ops| {
                let built = me.terms.matmul(ops[0].0.term, ops[1].0.term);
                me.built(built, ops, span).map(Tensor::plain)
            }),
        }
    }

    /// A function of two arguments, entry by entry, vectors placed beside matrices.
    pub(super) fn entries(&mut self, f: Fn2, operands: &[Operand], span: Span) -> Eval<Value> {
        self.lift(operands, span, |me, ops| {
            if let Some(weighed) = me.weigh_sum(f, ops)? {
                return Ok(weighed);
            }
            let (ops, lane) = me.align(ops, span)?;
            let built = me.terms.fn2(f, ops[0].0.term, ops[1].0.term);
            Ok(Tensor { term: me.built(built, &ops, span)?, lane })
        })
    }

    fn compare(&mut self, cmp: Cmp, operands: &[Operand], span: Span) -> Eval<Value> {
        self.lift(operands, span, |me, ops| {
            let (ops, lane) = me.align(ops, span)?;
            let built = me.terms.compare(cmp, ops[0].0.term, ops[1].0.term);
            Ok(Tensor { term: me.built(built, &ops, span)?, lane })
        })
    }

    pub(super) fn negate(&mut self, a: Operand, span: Span) -> Eval<Value> {
        if let Value::Size(dim) = &a.value
            && let Some(dim) = dim.neg()
        {
            return Ok(Value::Size(dim));
        }
        self.each_entry(Fn1::Neg, a, span)
    }

    /// A function of one argument, entry by entry.
    pub(super) fn each_entry(&mut self, f: Fn1, a: Operand, span: Span) -> Eval<Value> {
        self.lift(&[a], span, |me, ops| {
            let built = me.terms.fn1(f, ops[0].0.term);
            Ok(Tensor { term: me.built(built, ops, span)?, lane: ops[0].0.lane })
        })
    }

    /// `if c then a else b`: only one branch is read where the condition is known now.
    pub(super) fn choice(
        &mut self,
        scope: &mut Scope,
        cond: &Expr,
        then: &Expr,
        otherwise: &Expr,
        span: Span,
    ) -> Eval<Value> {
        let condition = self.operand(scope, cond)?;
        match self.known_truth(&condition.value) {
            Some(true) => self.eval(scope, then),
            Some(false) => self.eval(scope, otherwise),
            None => {
                let (a, b) = (self.operand(scope, then)?, self.operand(scope, otherwise)?);
                self.select(condition, a, b, span)
            }
        }
    }

    /// `where(c, a, b)` with values.
    pub(super) fn select(&mut self, c: Operand, a: Operand, b: Operand, span: Span) -> Eval<Value> {
        match self.known_truth(&c.value) {
            Some(true) => return Ok(a.value),
            Some(false) => return Ok(b.value),
            None => {}
        }
        self.lift(&[c, a, b], span, |me, ops| {
            let (ops, lane) = me.align(ops, span)?;
            let built = me.terms.select(ops[0].0.term, ops[1].0.term, ops[2].0.term);
            Ok(Tensor { term: me.built(built, &ops, span)?, lane })
        })
    }

    fn known_truth(&self, value: &Value) -> Option<bool> {
        match value {
            Value::Bool(b) => Some(*b),
            Value::Tensor(t) => match self.terms.op(t.term) {
                Op::Compare(cmp, a, b) => Some(cmp.eval(self.terms.as_num(*a)?, self.terms.as_num(*b)?)),
                _ => None,
            },
            Value::Size(_)
            | Value::Each(_)
            | Value::Word(..)
            | Value::Function(_)
            | Value::Family(_)
            | Value::Request(_) => None,
        }
    }

    /// For `at == retained`: whether the words are the same, where one side is an enum's word.
    fn same_word(&mut self, scope: &mut Scope, left: &Expr, right: &Expr) -> Eval<Option<bool>> {
        let word_of = |e: &Expr| match &e.kind {
            ExprKind::Name(name) => match scope.get(&name.text) {
                Some(Value::Word(word, words)) => Some((word.clone(), words.clone())),
                _ => None,
            },
            _ => None,
        };
        match (word_of(left), word_of(right)) {
            (Some((a, _)), Some((b, _))) => Ok(Some(a == b)),
            (Some((word, words)), None) => Ok(Some(*word == *expect_word(right, &words)?.text)),
            (None, Some((word, words))) => Ok(Some(*word == *expect_word(left, &words)?.text)),
            (None, None) => Ok(None),
        }
    }

    /// Applies an operation to tensors; to each weight's where one of the operands is per weight.
    pub(super) fn lift(
        &mut self,
        operands: &[Operand],
        span: Span,
        mut f: impl FnMut(&mut Self, &[(Tensor, Span)]) -> Eval<Tensor>,
    ) -> Eval<Value> {
        let count = operands.iter().find_map(|o| match &o.value {
            Value::Each(list) => Some(list.len()),
            _ => None,
        });
        let Some(count) = count else {
            let mut ops = Vec::new();
            for o in operands {
                ops.push((self.tensor(o)?, o.span));
            }
            return Ok(Value::Tensor(f(self, &ops)?));
        };
        let mut results = Vec::new();
        for i in 0..count {
            self.budget.step(span)?;
            let mut ops = Vec::new();
            for o in operands {
                let tensor = match &o.value {
                    Value::Each(list) => list[i],
                    _ => self.tensor(o)?,
                };
                ops.push((tensor, o.span));
            }
            results.push(f(self, &ops).map_err(|d| self.for_weight(d, i))?);
        }
        Ok(Value::Each(Rc::from(results)))
    }

    /// Says for which weight a line that is read for each of them fails.
    pub(crate) fn for_weight(&self, mut d: Box<Diagnostic>, i: usize) -> Box<Diagnostic> {
        if let (Some(weight), true) = (self.weights.get(i), self.weights.len() > 1 && d.notes.is_empty()) {
            d.notes.push(format!(
                "this line is read for each weight; this is `{}` {}",
                weight.display, weight.shape
            ));
        }
        d
    }

    /// The tensor that an operand is.
    pub(crate) fn tensor(&mut self, o: &Operand) -> Eval<Tensor> {
        match &o.value {
            Value::Tensor(t) => Ok(*t),
            Value::Size(dim) => Ok(Tensor::plain(self.size_term(dim.clone()))),
            Value::Request(_) => fail_help(
                code::TYPE,
                o.span,
                "`learned` and `trained` cannot be computed with",
                "a value that the data gives",
                "declare it as `input name: [..];` or `trained name: [..];` in the layer and use that name",
            ),
            Value::Family(family) => {
                let first = family.items.keys().next().copied().unwrap_or(1);
                let message = format!("`{}` is a family of weights; choose one", family.name);
                fail_help(
                    code::TYPE,
                    o.span,
                    message,
                    "no index",
                    format!("write `{}[{first}]`", family.name),
                )
            }
            Value::Each(_) | Value::Bool(_) | Value::Word(..) | Value::Function(_) => {
                let message = format!("expected a number or a tensor, found {}", self.describe(&o.value));
                fail_help(
                    code::TYPE,
                    o.span,
                    message,
                    "not a number",
                    "write a number, a tensor, or a call of a function",
                )
            }
        }
    }

    /// A size as a number.
    pub(crate) fn size_term(&mut self, dim: Dim) -> TermId {
        self.terms.size(dim)
    }

    /// A value in words.
    pub(crate) fn describe(&self, value: &Value) -> String {
        match value {
            Value::Size(dim) => format!("the whole number {}", dim.formula()),
            Value::Tensor(t) if self.terms.ty(t.term).truth => "a truth value".to_string(),
            Value::Tensor(t) => match self.terms.shape(t.term).rank() {
                0 => "a scalar".to_string(),
                1 => format!("a vector {}", self.terms.shape(t.term)),
                _ => format!("a matrix {}", self.terms.shape(t.term)),
            },
            Value::Each(list) => format!("a tensor for each of {} weights", list.len()),
            Value::Bool(b) => format!("the truth value {b}"),
            Value::Word(word, _) => format!("the word `{word}`"),
            Value::Function(_) => "a function".to_string(),
            Value::Family(family) => format!("the weights `{}[..]`", family.name),
            Value::Request(_) => "a value that the data gives".to_string(),
        }
    }
}

/// The name that must be one of an enum's words.
fn expect_word<'e>(e: &'e Expr, words: &[String]) -> Eval<&'e Ident> {
    let list = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Name(name) if words.contains(&name.text) => Ok(name),
        ExprKind::Name(name) => {
            let diagnostic =
                Diagnostic::new(code::UNKNOWN_NAME, format!("`{}` is none of {list}", name.text))
                    .at(name.span, "not one of the words");
            let near = crate::program::did_you_mean(&name.text, words.iter().map(String::as_str));
            Err(Box::new(diagnostic.with_help(near.unwrap_or_else(|| format!("write one of {list}")))))
        }
        _ => fail_help(
            code::TYPE,
            e.span,
            format!("expected one of {list}"),
            "not a word",
            "write one of these words",
        ),
    }
}
