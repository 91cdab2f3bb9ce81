//! What the data supplies: `learned` and `trained` parameters, and the tensors that carry them.

use super::Builder;
use crate::eval::{Eval, Request, Scope, fail_help};
use crate::layer::{Kind, Param, Per, Source};
use crate::program::did_you_mean;
use base::diagnostic::code;
use base::{Diagnostic, Dim, Span};
use miras_base as base;
use miras_syntax::ast;
use miras_term::{Role, Shape, TermId};

/// A tensor to be declared as a [`Param`].
pub(super) struct NewParam<'a> {
    pub(super) tensor: String,
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) source: Source,
    pub(super) shape: Shape,
    pub(super) span: Span,
    pub(super) asks: &'a str,
}

impl Builder<'_> {
    /// `learned`, `learned(per = ...)`, `trained`, `trained(init = ...)`.
    pub(super) fn request(&mut self, scope: &mut Scope, e: &ast::Expr) -> Eval<Option<Request>> {
        let (name, args) = match &e.kind {
            ast::ExprKind::Name(name) => (name, [].as_slice()),
            ast::ExprKind::Call { callee, args } => (callee, args.as_slice()),
            _ => return Ok(None),
        };
        if scope.get(&name.text).is_some() {
            return Ok(None);
        }
        let key = match name.text.as_str() {
            "learned" => "per",
            "trained" => "init",
            _ => return Ok(None),
        };
        let value = match args {
            [] => None,
            [arg] if arg.name.as_ref().is_none_or(|n| n.text == key) => Some(&arg.value),
            [arg, ..] => {
                let message = format!("`{}` takes only `{key} = ...`", name.text);
                return fail_help(
                    code::BAD_ARGUMENT,
                    arg.span,
                    message,
                    "not taken",
                    format!("write `{}({key} = ...)`", name.text),
                );
            }
        };
        if key == "per" {
            let per = value.map_or(Ok(Per::Token), granularity)?;
            return Ok(Some(Request::Learned(per)));
        }
        let init = match value {
            None => None,
            Some(value) => {
                let start = self.operand(scope, value)?;
                let tensor = self.tensor(&start)?;
                let term =
                    self.fit(tensor, &Shape::scalar(), value.span, "the start of a trained parameter")?;
                self.check_fixed(term, value.span, "the start of a trained parameter")?;
                Some(term)
            }
        };
        Ok(Some(Request::Trained(init)))
    }

    /// Declares a tensor that the data supplies, and gives it as a term.
    pub(super) fn add_param(&mut self, new: NewParam) -> Eval<TermId> {
        if let Some(old) = self.params.iter().find(|p| p.tensor == new.tensor) {
            let diagnostic =
                Diagnostic::new(code::DUPLICATE, format!("the tensor `{}` is asked for twice", new.tensor))
                    .at(new.span, "asked for again here")
                    .at_opt(old.span, "first asked for here")
                    .with_help("rename one of the two");
            return Err(Box::new(diagnostic));
        }
        let taken = self.params.iter().any(|p| self.terms.var(p.var).name == new.name);
        let label = if taken { new.tensor.clone() } else { new.name.to_string() };
        let role = Role::Parameter(self.params.len() as u32);
        let var = self.terms.add_var(label, role, new.shape, Some(new.span));
        self.params.push(Param {
            tensor: new.tensor,
            var,
            kind: new.kind,
            source: new.source,
            repeated: false,
            span: Some(new.span),
            asked_by: new.asks.to_string(),
        });
        Ok(self.terms.use_var(var))
    }
}

fn granularity(e: &ast::Expr) -> Eval<Per> {
    let word = match &e.kind {
        ast::ExprKind::Name(name) => name.text.as_str(),
        _ => "",
    };
    match word {
        "token" => Ok(Per::Token),
        "channel" => Ok(Per::Channel),
        "key" => Ok(Per::Key),
        "value" => Ok(Per::Value),
        "entry" => Ok(Per::Entry),
        other => {
            let words = ["token", "channel", "key", "value", "entry"];
            let help = did_you_mean(other, words.into_iter())
                .unwrap_or_else(|| format!("write one of {}", words.join(", ")));
            fail_help(
                code::BAD_ARGUMENT,
                e.span,
                "`per` says how finely a gate varies",
                "not a granularity",
                help,
            )
        }
    }
}

pub(super) fn shape_of(per: Per) -> Shape {
    match per {
        Per::Token => Shape::scalar(),
        Per::Channel | Per::Value => Shape::vector(Dim::dv()),
        Per::Key => Shape::vector(Dim::dk()),
        Per::Entry => Shape::matrix(Dim::dv(), Dim::dk()),
    }
}

pub(super) fn lane_of(per: Per) -> Option<Per> {
    match per {
        Per::Token => None,
        Per::Channel | Per::Key | Per::Value | Per::Entry => Some(per),
    }
}
