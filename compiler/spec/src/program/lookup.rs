//! Finding what a name means, and what was probably meant where it means nothing.

use super::{LayerItem, Origin, Program, Table};
use base::diagnostic::{code, listed};
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use std::sync::Arc;

const KINDS: [ast::DefinitionKind; 4] = [
    ast::DefinitionKind::Memory,
    ast::DefinitionKind::Bias,
    ast::DefinitionKind::Retention,
    ast::DefinitionKind::Algo,
];

impl Program {
    fn sides(&self, origin: Origin) -> Vec<(&Table, Origin)> {
        match origin {
            Origin::User => vec![(&self.user, Origin::User), (&self.library, Origin::Library)],
            Origin::Library => vec![(&self.library, Origin::Library)],
        }
    }

    /// The function that a text on this side means by a name.
    pub(crate) fn find_function(&self, name: &str, origin: Origin) -> Option<(Arc<ast::Function>, Origin)> {
        self.sides(origin)
            .into_iter()
            .find_map(|(table, side)| Some((table.functions.get(name)?.clone(), side)))
    }

    /// The layer that a text on this side means by a name.
    pub(crate) fn find_layer(&self, name: &str, origin: Origin) -> Option<(LayerItem, Origin)> {
        self.sides(origin).into_iter().find_map(|(table, side)| Some((table.layers.get(name)?.clone(), side)))
    }

    /// The definition that a text on this side means by a name.
    pub(crate) fn find_definition(
        &self,
        kind: ast::DefinitionKind,
        name: &ast::Ident,
        origin: Origin,
    ) -> Result<(Arc<ast::Definition>, Origin), Box<Diagnostic>> {
        let key = (kind, name.text.clone());
        let found = self
            .sides(origin)
            .into_iter()
            .find_map(|(t, side)| Some((t.definitions.get(&key)?.clone(), side)));
        found.ok_or_else(|| self.no_definition(kind, name, origin))
    }

    /// Names of functions that a text on this side can use.
    pub(crate) fn function_names(&self, origin: Origin) -> Vec<String> {
        self.sides(origin).iter().flat_map(|(table, _)| table.functions.keys().cloned()).collect()
    }

    fn definition_names(&self, kind: ast::DefinitionKind, origin: Origin) -> Vec<String> {
        let all = self.sides(origin).into_iter().flat_map(|(table, _)| table.definitions.keys());
        all.filter(|(k, _)| *k == kind).map(|(_, name)| name.clone()).collect()
    }

    fn no_definition(&self, kind: ast::DefinitionKind, name: &ast::Ident, origin: Origin) -> Box<Diagnostic> {
        let what = kind.word();
        let names = self.definition_names(kind, origin);
        let is_one = |k: &ast::DefinitionKind| self.definition_names(*k, origin).contains(&name.text);
        let elsewhere = KINDS.into_iter().filter(|k| *k != kind).find(is_one);
        let mut diagnostic =
            Diagnostic::new(code::UNKNOWN_NAME, format!("there is no {what} called `{}`", name.text))
                .at(name.span, "not defined");
        let near = did_you_mean(&name.text, names.iter().map(String::as_str));
        diagnostic = diagnostic.with_help(near.unwrap_or_else(|| match names.is_empty() {
            true => format!("define it: `{what} {} {{ ... }}`", name.text),
            false => {
                format!("choose one of {}, or define it: `{what} {} {{ ... }}`", listed(&names), name.text)
            }
        }));
        if let Some(other) = elsewhere {
            diagnostic = diagnostic.with_note(format!("`{}` is {}, not {}", name.text, a(other), a(kind)));
        }
        Box::new(diagnostic)
    }

    /// The diagnostic for a layer that nobody defines.
    pub(crate) fn no_layer(&self, name: &str, span: Option<Span>) -> Box<Diagnostic> {
        let diagnostic = Diagnostic::new(code::UNKNOWN_NAME, format!("there is no layer called `{name}`"))
            .at_opt(span, "not defined");
        let names: Vec<&String> = self.user.layers.keys().chain(self.library.layers.keys()).collect();
        let near = did_you_mean(name, names.iter().map(|n| n.as_str()));
        let own: Vec<String> = self.layers().into_iter().map(|l| l.name).collect();
        Box::new(diagnostic.with_help(near.unwrap_or_else(|| match own.as_slice() {
            [] => "define it, `layer name { ... }`, or choose one that `miras list` shows".to_string(),
            own => format!("choose one that the file defines: {}", listed(own)),
        })))
    }
}

/// The choice with its article.
fn a(kind: ast::DefinitionKind) -> &'static str {
    match kind {
        ast::DefinitionKind::Memory => "a memory",
        ast::DefinitionKind::Bias => "a bias",
        ast::DefinitionKind::Retention => "a retention",
        ast::DefinitionKind::Algo => "an algo",
    }
}

/// `did you mean ...?` for the nearest candidate, if one is near.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|best| format!("did you mean `{best}`?"))
}

/// The candidate that differs least, where that is little for its length.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let allowed = (name.chars().count() / 3).max(1);
    let short = name.chars().count() < 3;
    let scored = candidates.filter(|c| *c != name && (!short || c.eq_ignore_ascii_case(name))).map(|c| {
        let same_letters = c.eq_ignore_ascii_case(name);
        (if same_letters { 0 } else { strsim::damerau_levenshtein(name, c) }, c)
    });
    scored.filter(|(distance, _)| *distance <= allowed).min().map(|(_, best)| best)
}
