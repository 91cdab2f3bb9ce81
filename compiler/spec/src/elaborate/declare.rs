//! Declared tensors that the data supplies: `input`, `trained`, `slow`.

use super::Builder;
use super::bind::number_kind;
use super::supplied::NewParam;
use crate::eval::{Eval, Scope, Tensor, Value, fail_help};
use crate::layer::Source;
use base::Span;
use base::diagnostic::code;
use miras_base as base;
use miras_syntax::ast::{Declaration, Role};
use miras_term::{Shape, TermId};

impl Builder<'_> {
    /// `input name: kind [shape];`, `trained name: kind [shape] = start;`
    pub(super) fn declare_given(
        &mut self,
        scope: &mut Scope,
        d: &Declaration,
        span: Span,
        asks: &str,
    ) -> Eval<()> {
        own_name(scope, d)?;
        let shape = self.declared_shape(scope, d)?;
        let start = self.start(scope, d, &shape)?;
        let source = match (d.role, start) {
            (Role::Input, Some(_)) => {
                let message = format!("the input `{}` comes with every token and has no start", d.name.text);
                return fail_help(
                    code::MISPLACED,
                    span,
                    message,
                    "has a value",
                    "remove `= ...`, or make it `trained`",
                );
            }
            (Role::Input, None) => Source::Input,
            (_, start) => Source::Trained(start),
        };
        self.declare_param(scope, d, source, shape, span, d.role.word(), asks)
    }

    /// `slow name: [shape] = start;`
    pub(super) fn declare_slow(
        &mut self,
        scope: &mut Scope,
        d: &Declaration,
        span: Span,
        asks: &str,
    ) -> Eval<()> {
        let shape = self.declared_shape(scope, d)?;
        let start = self.start(scope, d, &shape)?;
        self.declare_param(scope, d, Source::Slow(start), shape, span, "memory", asks)
    }

    #[allow(clippy::too_many_arguments)]
    fn declare_param(
        &mut self,
        scope: &mut Scope,
        d: &Declaration,
        source: Source,
        shape: Shape,
        span: Span,
        group: &str,
        asks: &str,
    ) -> Eval<()> {
        if let Some(index) = &d.index {
            let message = format!("`{}` cannot have an index", d.name.text);
            return fail_help(
                code::MISPLACED,
                index.span,
                message,
                "an index",
                "only weights are declared as `W[l]`",
            );
        }
        let kind = number_kind(d.kind.as_ref())?;
        if let (Source::Trained(Some(start)) | Source::Slow(Some(start)), Some(init)) = (source, &d.init) {
            self.check_range(start, kind, &d.name, init.span)?;
        }
        let full = format!("{group}.{}", d.name.text);
        let new = NewParam { tensor: full.clone(), name: &d.name.text, kind, source, shape, span, asks };
        let term = self.add_param(new)?;
        let value = Value::Tensor(Tensor::plain(term));
        scope.bind(full, value.clone());
        scope.bind(d.name.text.clone(), value);
        Ok(())
    }

    /// The declared shape; a scalar where none is written.
    pub(super) fn declared_shape(&mut self, scope: &mut Scope, d: &Declaration) -> Eval<Shape> {
        match &d.shape {
            Some(shape) => self.shape(scope, shape),
            None => Ok(Shape::scalar()),
        }
    }

    /// The value after `=`, repeated to the shape; it must not vary by token.
    pub(super) fn start(
        &mut self,
        scope: &mut Scope,
        d: &Declaration,
        shape: &Shape,
    ) -> Eval<Option<TermId>> {
        let Some(init) = &d.init else { return Ok(None) };
        let value = self.operand(scope, init)?;
        let tensor = self.tensor(&value)?;
        let term = self.fit(tensor, shape, init.span, &format!("the start of `{}`", d.name.text))?;
        self.check_fixed(term, init.span, &format!("the start of `{}`", d.name.text))?;
        Ok(Some(term))
    }
}

/// Refuses a declared tensor called like something that has a meaning here already. (A second declaration is told of
/// where the tensor is added.)
pub(super) fn own_name(scope: &Scope, d: &Declaration) -> Eval<()> {
    let name = &d.name.text;
    let again = scope.get(&format!("{}.{name}", d.role.word())).is_some();
    if again || scope.get(name).is_none() {
        return Ok(());
    }
    let message = format!("`{name}` has a meaning of its own here");
    let label = format!("a declaration of the same name, by `{}`", d.role.word());
    fail_help(code::DUPLICATE, d.name.span, message, label, "choose another name")
}
