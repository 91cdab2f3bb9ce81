//! A clause of a layer resolved to a definition and its arguments.

use super::bind::Given;
use super::body::{Body, CHOICES, Written};
use super::{Builder, meant};
use crate::eval::{Eval, Scope, Value, fail_help};
use crate::layer::Choice;
use crate::program::{Origin, did_you_mean};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use std::sync::Arc;

/// One of the four choices, resolved.
pub(super) struct Clause {
    /// `memory`, `bias`, `retention` or `algo`.
    pub(super) key: &'static str,
    pub(super) definition: Arc<ast::Definition>,
    /// Whose text the definition is.
    pub(super) origin: Origin,
    /// What is given for its parameters, by name.
    pub(super) given: Vec<Given>,
    /// Key and value.
    pub(super) span: Span,
    /// The value as text.
    pub(super) text: String,
}

impl Clause {
    /// The choice, with the values of its parameters.
    pub(super) fn choice(&self, arguments: Vec<(String, String)>) -> Choice {
        Choice {
            clause: self.key,
            definition: self.definition.name.text.clone(),
            text: self.text.clone(),
            span: Some(self.span),
            definition_span: Some(self.definition.name.span),
            about: self.definition.doc.clone(),
            arguments,
            body: meant::body(&self.definition),
        }
    }

    /// Who asks for something, in messages.
    pub(super) fn asks(&self) -> String {
        format!("{}: {}", self.key, self.text)
    }
}

impl Builder<'_> {
    /// Finds the definition and sorts the arguments by parameter.
    pub(super) fn resolve_clause(&mut self, written: &Written, index: usize) -> Eval<Clause> {
        let (key, kind) = CHOICES[index];
        let (name, args) = match &written.value.kind {
            ast::ExprKind::Name(name) => (name, [].as_slice()),
            ast::ExprKind::Call { callee, args } => (callee, args.as_slice()),
            _ => {
                let message = format!("`{key}` names a {key}, possibly with arguments");
                return fail_help(
                    code::TYPE,
                    written.value.span,
                    message,
                    "not a name",
                    format!("write `{key}: name(...);`"),
                );
            }
        };
        let (definition, origin) = self.program.find_definition(kind, name, written.origin)?;
        let mut given = by_position(&definition, args, written.origin)?;
        for setting in &written.settings {
            let super::setting::Target::Argument(_, param) = &setting.name else { continue };
            let Some(def) = definition.params.iter().find(|p| p.name.text == *param) else {
                let names = definition.params.iter().map(|p| p.name.text.as_str());
                let message = format!("`{}` has no parameter `{param}`", name.text);
                return setting.refuse(message, did_you_mean(param, names));
            };
            given.retain(|g| g.name != def.name.text);
            given.push(Given {
                name: param.clone(),
                value: setting.value.clone(),
                origin: setting.origin,
                span: setting.span,
            });
        }
        let text = self.clause_text(&name.text, &given, args);
        Ok(Clause { key, definition, origin, given, span: written.span, text })
    }

    /// The clause as it stands after settings: what was written where nothing was set.
    fn clause_text(&self, name: &str, given: &[Given], args: &[ast::Arg]) -> String {
        if given.is_empty() {
            return name.to_string();
        }
        let source = |span: Span| self.sources.text(span).split_whitespace().collect::<Vec<_>>().join(" ");
        let positional = |g: &Given| args.iter().any(|a| a.name.is_none() && a.span == g.span);
        let parts = given.iter().map(|g| match positional(g) {
            true => source(g.value.span),
            false => format!("{} = {}", g.name, source(g.value.span)),
        });
        format!("{name}({})", parts.collect::<Vec<_>>().join(", "))
    }

    /// The layer's own names: its parameters, `q`, `k`, `v`, its inputs and trained tensors, its `let`s.
    pub(super) fn layer_scope(&mut self, body: &Body) -> Eval<Scope> {
        let mut scope = self.base_scope(body.origin);
        let params = self.layer_params(body)?;
        for (name, value) in params {
            scope.bind(name, value);
        }
        self.bind_token(&mut scope);
        let asks = format!("layer {}", body.name);
        for stmt in &body.stmts {
            if let ast::StmtKind::Declare(d) = &stmt.kind {
                self.declare_given(&mut scope, d, stmt.span, &asks)?;
            } else if let ast::StmtKind::Let { name, value } = &stmt.kind {
                self.bind_let(&mut scope, name, value)?;
            }
        }
        Ok(scope)
    }

    fn layer_params(&mut self, body: &Body) -> Eval<Vec<(String, Value)>> {
        let mut given: Vec<Given> = Vec::new();
        let mut next = 0;
        for setting in &body.given {
            let name = match &setting.name {
                super::setting::Target::Name(name) => name.clone(),
                _ => match body.params.get(next) {
                    Some(param) => {
                        next += 1;
                        param.name.text.clone()
                    }
                    None => {
                        let message = format!("the layer has {} parameters", body.params.len());
                        return setting.refuse(message, None);
                    }
                },
            };
            given.retain(|g| g.name != name);
            given.push(Given {
                name,
                value: setting.value.clone(),
                origin: setting.origin,
                span: setting.span,
            });
        }
        let mut outer = self.base_scope(Origin::User);
        self.bind_parameters(None, &body.params, &given, &mut outer, body.origin, body.span)
    }
}

/// Arguments by the names of their parameters.
fn by_position(definition: &ast::Definition, args: &[ast::Arg], origin: Origin) -> Eval<Vec<Given>> {
    let mut given: Vec<Given> = Vec::new();
    let mut named = false;
    for (index, arg) in args.iter().enumerate() {
        let param = match &arg.name {
            Some(name) => definition.params.iter().find(|p| p.name.text == name.text),
            None if named => {
                let message = "an argument without a name stands after one with a name";
                return fail_help(
                    code::BAD_ARGUMENT,
                    arg.span,
                    message,
                    "no name",
                    "give it a name, or move it to the front",
                );
            }
            None => definition.params.get(index),
        };
        named |= arg.name.is_some();
        let Some(param) = param else { return Err(no_parameter(definition, arg)) };
        let name = param.name.text.clone();
        if let Some(old) = given.iter().find(|g| g.name == name) {
            let diagnostic = Diagnostic::new(code::DUPLICATE, format!("`{name}` is given twice"))
                .at(arg.span, "given again here")
                .at(old.span, "first given here")
                .with_help("keep one of the two");
            return Err(Box::new(diagnostic));
        }
        given.push(Given { name, value: arg.value.clone(), origin, span: arg.span });
    }
    Ok(given)
}

fn no_parameter(definition: &ast::Definition, arg: &ast::Arg) -> Box<Diagnostic> {
    let names: Vec<&str> = definition.params.iter().map(|p| p.name.text.as_str()).collect();
    let (message, span) = match &arg.name {
        Some(name) => (format!("`{}` has no parameter `{}`", definition.name.text, name.text), name.span),
        None => (format!("`{}` has {} parameters", definition.name.text, names.len()), arg.span),
    };
    let list = match names.as_slice() {
        [] => "it has none; remove the argument".to_string(),
        names => format!(
            "its parameters are {}",
            names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    let guess = arg.name.as_ref().and_then(|n| did_you_mean(&n.text, names.iter().copied()));
    Box::new(
        Diagnostic::new(code::BAD_ARGUMENT, message)
            .at(span, "not a parameter")
            .at(definition.name.span, "defined here")
            .with_help(guess.unwrap_or(list)),
    )
}
