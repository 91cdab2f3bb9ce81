//! A bias: its loss, and a slope where one is declared.

use super::Builder;
use super::clause::Clause;
use super::memory::{no_part, twice};
use crate::eval::{Eval, Scope, Tensor, Value, fail_help};
use crate::layer::Bias;
use base::diagnostic::code;
use base::{Dim, Span};
use miras_base as base;
use miras_syntax::ast::{self, Ident, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId};

/// What the body has given so far.
#[derive(Default)]
struct Parts {
    loss: Option<(TermId, Span)>,
    slope: Option<(TermId, Span)>,
    asks: String,
}

impl Builder<'_> {
    pub(super) fn bias(&mut self, clause: &Clause, outer: &Scope) -> Eval<Bias> {
        let definition = clause.definition.clone();
        let mut scope = self.base_scope(clause.origin);
        let answer = self.terms.add_var("y", Role::Answer, Shape::vector(Dim::dv()), None);
        let (y, v) = (self.terms.use_var(answer), self.terms.use_var(self.value));
        scope.bind("y", Value::Tensor(Tensor::plain(y)));
        scope.bind("v", Value::Tensor(Tensor::plain(v)));
        self.check_parameter_names(&definition, &["y", "v"])?;
        self.clause_parameters(clause, outer, &mut scope)?;
        let mut parts = Parts { asks: clause.asks(), ..Parts::default() };
        for stmt in &definition.body {
            self.bias_statement(&mut scope, stmt, &mut parts)?;
        }
        let Some((loss, _)) = parts.loss else {
            let message = format!("the bias `{}` has no `loss`", definition.name.text);
            let help = "say what is minimised: `loss = ...;`, a number made from `y` and `v`";
            return fail_help(code::MISSING_PART, definition.name.span, message, "this bias", help);
        };
        Ok(Bias { answer, loss, slope: parts.slope.map(|(t, _)| t), slope_span: parts.slope.map(|(_, s)| s) })
    }

    fn bias_statement(&mut self, scope: &mut Scope, stmt: &Stmt, parts: &mut Parts) -> Eval<()> {
        match &stmt.kind {
            StmtKind::Let { name, value } => self.bind_let(scope, name, value),
            StmtKind::Assign { name, value } if name.text == "loss" => {
                let term = self.part(scope, name, value, &Shape::scalar(), parts.loss)?;
                parts.loss = Some((term, stmt.span));
                Ok(())
            }
            StmtKind::Assign { name, value } if name.text == "slope" => {
                let term = self.part(scope, name, value, &Shape::vector(Dim::dv()), parts.slope)?;
                parts.slope = Some((term, stmt.span));
                Ok(())
            }
            StmtKind::Assign { name, .. } if scope.get(&name.text).is_none() => {
                no_part(name, "bias", &["loss", "slope"])
            }
            StmtKind::Assign { .. } | StmtKind::For { .. } => {
                self.statements(scope, std::slice::from_ref(stmt))
            }
            StmtKind::Declare(d) if matches!(d.role, ast::Role::Input | ast::Role::Trained) => {
                let asks = parts.asks.clone();
                self.declare_given(scope, d, stmt.span, &asks)
            }
            StmtKind::Require { .. } => Ok(()),
            StmtKind::Define { name, .. } => no_part(name, "bias", &["loss", "slope"]),
            StmtKind::Clause { key, .. } => no_part(key, "bias", &["loss", "slope"]),
            StmtKind::Declare(_)
            | StmtKind::Next { .. }
            | StmtKind::Dual { .. }
            | StmtKind::History { .. } => {
                let message = "a bias has a `loss`, perhaps a `slope`, and no state";
                fail_help(
                    code::MISPLACED,
                    stmt.span,
                    message,
                    "this belongs to another kind of definition",
                    "move it to a memory, an algo or a retention; a bias may declare `input` and `trained`",
                )
            }
        }
    }

    /// A part of a definition as a term of the shape it must have.
    pub(super) fn part(
        &mut self,
        scope: &mut Scope,
        name: &Ident,
        value: &ast::Expr,
        shape: &Shape,
        old: Option<(TermId, Span)>,
    ) -> Eval<TermId> {
        if let Some((_, old)) = old {
            return twice(&name.text, name.span, old);
        }
        let operand = self.operand(scope, value)?;
        let tensor = self.tensor(&operand)?;
        let rank = self.terms.shape(tensor.term).rank();
        if shape.rank() == 0 && rank > 0 {
            let message =
                format!("`{}` must be one number, found {}", name.text, self.describe(&operand.value));
            let label = format!("this is {}", self.terms.shape(tensor.term));
            return fail_help(code::SHAPE, value.span, message, label, "sum it up: `sum(...)`");
        }
        self.fit(tensor, shape, value.span, &format!("`{}`", name.text))
    }

    /// Refuses a parameter called like something that the body sees anyway.
    pub(super) fn check_parameter_names(&self, definition: &ast::Definition, taken: &[&str]) -> Eval<()> {
        let clash = definition.params.iter().find(|p| taken.contains(&p.name.text.as_str()));
        match clash {
            None => Ok(()),
            Some(param) => {
                let what = definition.kind.word();
                let message = format!("`{}` has a meaning of its own in this {what}", param.name.text);
                fail_help(
                    code::DUPLICATE,
                    param.name.span,
                    message,
                    "a parameter of the same name",
                    "rename the parameter",
                )
            }
        }
    }
}
