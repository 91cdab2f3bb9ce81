//! Statements inside expressions and bodies: `let`, rebinding, `for`.

use super::{Eval, Scope, Value, fail_help};
use crate::elaborate::Builder;
use base::diagnostic::code;
use miras_base as base;
use miras_syntax::ast::{Expr, Ident, Range, Stmt, StmtKind};

impl Builder<'_> {
    /// Runs the statements of a block.
    pub(crate) fn statements(&mut self, scope: &mut Scope, stmts: &[Stmt]) -> Eval<()> {
        for stmt in stmts {
            self.statement(scope, stmt)?;
        }
        Ok(())
    }

    fn statement(&mut self, scope: &mut Scope, stmt: &Stmt) -> Eval<()> {
        match &stmt.kind {
            StmtKind::Let { name, value } => self.bind_let(scope, name, value),
            StmtKind::Assign { name, value } => self.rebind(scope, name, value),
            StmtKind::For { var, range, body } => {
                self.unroll(scope, var, range, |builder, scope| builder.statements(scope, body))
            }
            StmtKind::Define { .. }
            | StmtKind::Next { .. }
            | StmtKind::Dual { .. }
            | StmtKind::Declare(_)
            | StmtKind::History { .. }
            | StmtKind::Require { .. }
            | StmtKind::Clause { .. } => {
                let message = "a block holds `let`, assignments and `for` only";
                fail_help(
                    code::MISPLACED,
                    stmt.span,
                    message,
                    "this belongs to a definition's own body",
                    "move it out of the braces, to the body of the definition",
                )
            }
        }
    }

    /// `let name = value;`
    pub(crate) fn bind_let(&mut self, scope: &mut Scope, name: &Ident, value: &Expr) -> Eval<()> {
        let value = match self.eval(scope, value)? {
            Value::Size(dim) if dim.as_constant().is_none() => Value::Size(dim.named(&name.text)),
            other => other,
        };
        scope.bind(name.text.clone(), value);
        Ok(())
    }

    fn rebind(&mut self, scope: &mut Scope, name: &Ident, value: &Expr) -> Eval<()> {
        let value = self.eval(scope, value)?;
        if scope.rebind(&name.text, value) {
            return Ok(());
        }
        let message = format!("`{}` is assigned before it is bound", name.text);
        fail_help(
            code::UNKNOWN_NAME,
            name.span,
            message,
            "not bound",
            format!("bind it first: `let {} = ...;`", name.text),
        )
    }

    /// Runs `body` once for each number of a range.
    pub(crate) fn unroll(
        &mut self,
        scope: &mut Scope,
        var: &Ident,
        range: &Range,
        mut body: impl FnMut(&mut Self, &mut Scope) -> Eval<()>,
    ) -> Eval<()> {
        let from = self.whole(scope, &range.from, "the start of a range")?;
        let to = self.whole(scope, &range.to, "the end of a range")?;
        let end = if range.inclusive { to.saturating_add(1) } else { to };
        for i in from..end {
            self.budget.step(range.span)?;
            let mark = scope.mark();
            scope.bind(var.text.clone(), Value::Size(base::Dim::constant(i)));
            let done = body(self, scope);
            scope.release(mark);
            done?;
        }
        Ok(())
    }

    /// The whole number that an expression must be.
    pub(crate) fn whole(&mut self, scope: &mut Scope, e: &Expr, what: &str) -> Eval<i64> {
        let value = self.eval(scope, e)?;
        match value.as_whole() {
            Some(n) => Ok(n),
            None => {
                let message = format!("{what} must be a whole number known when the program is compiled");
                let label = format!("this is {}", self.describe(&value));
                fail_help(
                    code::NOT_CONSTANT,
                    e.span,
                    message,
                    label,
                    "use numbers and parameters of kind `nat`",
                )
            }
        }
    }
}
