//! The expression language: from a syntax tree and a scope to a value.

mod arithmetic;
mod budget;
mod builtin;
mod call;
mod place;
mod size;
mod slope;
mod statement;
mod value;
mod weighted;

pub(crate) use budget::*;
pub(crate) use builtin::is_builtin;
pub(crate) use call::axis_word;
pub(crate) use value::{Callable, Family, Request, Scope, Tensor, Value};

use crate::elaborate::Builder;
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast::{Expr, ExprKind, Ident, UnaryOp};

/// What stops an elaboration.
pub(crate) type Fail = Box<Diagnostic>;

/// The result of a step that can stop.
pub(crate) type Eval<T> = Result<T, Fail>;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// An error with one place and a remedy.
pub(crate) fn fail_help<T>(
    code: base::Code,
    span: Span,
    message: impl Into<String>,
    label: impl Into<String>,
    help: impl Into<String>,
) -> Eval<T> {
    Err(Box::new(Diagnostic::new(code, message).at(span, label).with_help(help)))
}

impl Builder<'_> {
    /// The value of an expression.
    pub(crate) fn eval(&mut self, scope: &mut Scope, e: &Expr) -> Eval<Value> {
        self.budget.enter(e.span)?;
        let value = self.eval_kind(scope, e);
        self.budget.leave();
        self.budget.check_terms(&self.terms, e.span)?;
        value
    }

    fn eval_kind(&mut self, scope: &mut Scope, e: &Expr) -> Eval<Value> {
        match &e.kind {
            ExprKind::Number { value, .. } => Ok(self.number(*value)),
            ExprKind::Name(name) => self.name(scope, name),
            ExprKind::Primed(name) => self.primed(scope, name),
            ExprKind::Call { callee, args } => self.call(scope, callee, args, e.span),
            ExprKind::Index { base, index } => self.index(scope, base, index, e.span),
            ExprKind::Member { base, field } => self.member(scope, base, field),
            ExprKind::Unary { op: UnaryOp::Neg, operand } => {
                let inner = self.operand(scope, operand)?;
                self.negate(inner, e.span)
            }
            ExprKind::Binary { op, op_span: _, left, right } => self.binary(scope, *op, left, right, e.span),
            ExprKind::If { cond, then, otherwise } => self.choice(scope, cond, then, otherwise, e.span),
            ExprKind::Block { stmts, result } => {
                let mark = scope.mark();
                let value = self.statements(scope, stmts).and_then(|()| self.eval(scope, result));
                scope.release(mark);
                value
            }
        }
    }

    /// The value of an expression with its place.
    pub(crate) fn operand(&mut self, scope: &mut Scope, e: &Expr) -> Eval<Operand> {
        Ok(Operand { value: self.eval(scope, e)?, span: e.span })
    }

    fn name(&mut self, scope: &Scope, name: &Ident) -> Eval<Value> {
        if let Some(value) = scope.get(&name.text) {
            return Ok(value.clone());
        }
        match self.callable(scope, &name.text) {
            Some(callable) => Ok(Value::Function(callable)),
            None => Err(self.unknown_name(scope, name)),
        }
    }

    /// `S'`: bound under the name with its prime.
    fn primed(&mut self, scope: &Scope, name: &Ident) -> Eval<Value> {
        let primed = format!("{}'", name.text);
        if let Some(value) = scope.get(&primed) {
            return Ok(value.clone());
        }
        let help = match scope.get(&name.text) {
            Some(_) => format!("give it a value first: `{primed} = ...;`"),
            None => {
                "only a state or a dual has a value after the token, and only once that is given".to_string()
            }
        };
        fail_help(code::UNKNOWN_NAME, name.span, format!("`{primed}` has no value here"), "used here", help)
    }

    fn index(&mut self, scope: &mut Scope, base: &Expr, index: &Expr, span: Span) -> Eval<Value> {
        let family = match self.eval(scope, base)? {
            Value::Family(family) => family,
            other => {
                let message = format!("{} cannot be indexed", self.describe(&other));
                return fail_help(
                    code::TYPE,
                    span,
                    message,
                    "indexed here",
                    "only a weight declared as `W[l]` has parts",
                );
            }
        };
        let at = self.eval(scope, index)?;
        let Some(at) = at.as_whole() else {
            return fail_help(
                code::NOT_CONSTANT,
                index.span,
                "an index must be a whole number known at compile time",
                "here",
                "write a number, the variable of a `for`, or a parameter of kind `nat`",
            );
        };
        match family.items.get(&at) {
            Some(tensor) => Ok(Value::Tensor(*tensor)),
            None => {
                let known: Vec<String> =
                    family.items.keys().map(|i| format!("{}[{i}]", family.name)).collect();
                let message = format!("there is no weight `{}[{at}]`", family.name);
                fail_help(
                    code::UNKNOWN_NAME,
                    span,
                    message,
                    "not declared",
                    format!("declared: {}", known.join(", ")),
                )
            }
        }
    }

    /// `input.kappa`, `trained.A`: a declared tensor by its full name.
    fn member(&mut self, scope: &mut Scope, base: &Expr, field: &Ident) -> Eval<Value> {
        if let ExprKind::Name(group) = &base.kind {
            let full = format!("{}.{}", group.text, field.text);
            if let Some(value) = scope.get(&full) {
                return Ok(value.clone());
            }
        }
        let message = format!("there is no tensor with the name `{}`", field.text);
        let help = "declared inputs are `input.<name>`, declared trained tensors `trained.<name>`";
        fail_help(code::UNKNOWN_NAME, field.span, message, "not declared here", help)
    }

    /// The diagnostic for a name that means nothing here.
    pub(crate) fn unknown_name(&self, scope: &Scope, name: &Ident) -> Fail {
        let functions = self.program.function_names(scope.origin);
        let mut candidates: Vec<&str> = scope.names().collect();
        candidates.extend(functions.iter().map(String::as_str));
        for name in builtin::names() {
            candidates.push(name);
        }
        let mut diagnostic =
            Diagnostic::new(code::UNKNOWN_NAME, format!("`{}` is not defined here", name.text))
                .at(name.span, "not found in this scope");
        let help = match name.text.as_str() {
            "learned" | "trained" => Some(format!(
                "`{}` stands alone as the value of a parameter; to compute with it declare `input name: [..];` or \
                 `trained name: [..];`",
                name.text
            )),
            text => crate::program::did_you_mean(text, candidates.into_iter()),
        };
        if let Some(help) = help {
            diagnostic = diagnostic.with_help(help);
        } else {
            diagnostic = diagnostic.with_help(format!(
                "define it with `let {0} = ...;` before this, take it as a parameter, or declare it: `input {0}: [..];`",
                name.text
            ));
            let here = scope.names().filter(|n| !n.contains('.')).map(|n| format!("`{n}`"));
            let here: std::collections::BTreeSet<String> = here.collect();
            if !here.is_empty() {
                let some: Vec<String> = here.into_iter().take(12).collect();
                diagnostic =
                    diagnostic.with_note(format!("names that have a meaning here: {}", some.join(", ")));
            }
        }
        Box::new(diagnostic)
    }
}
