//! Names of definitions, functions and layers, and where each was written.

use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use std::collections::BTreeMap;
use std::sync::Arc;

/// On whose side a text stands. Names written in the library mean the library's; names written by the
/// user mean the user's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The root file or one that it uses.
    User,
    /// The library.
    Library,
}

/// What a layer's name stands for.
#[derive(Clone, Debug)]
pub(crate) enum LayerItem {
    /// `layer name { ... }`
    Full(Arc<ast::Layer>),
    /// `layer name = base(...);`
    Alias(Arc<ast::LayerAlias>),
    /// Top-level clauses.
    Anonymous(Arc<ast::LayerBody>),
}

impl LayerItem {
    pub(crate) fn span(&self) -> Span {
        match self {
            LayerItem::Full(layer) => layer.name.span,
            LayerItem::Alias(alias) => alias.name.span,
            LayerItem::Anonymous(body) => body.span,
        }
    }
}

/// All that one side defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) definitions: BTreeMap<(ast::DefinitionKind, String), Arc<ast::Definition>>,
    pub(crate) functions: BTreeMap<String, Arc<ast::Function>>,
    pub(crate) layers: BTreeMap<String, LayerItem>,
}

impl Table {
    /// Takes over a file's items; a second definition of a name is told of and left out.
    pub(crate) fn take(&mut self, items: Vec<ast::Item>, problems: &mut Vec<Diagnostic>) {
        for item in items {
            match item {
                ast::Item::Definition(d) => self.define(Arc::new(d), problems),
                ast::Item::Function(f) => self.function(Arc::new(f), problems),
                ast::Item::Layer(l) => self.layer(&l.name.clone(), LayerItem::Full(Arc::new(l)), problems),
                ast::Item::Alias(a) => self.layer(&a.name.clone(), LayerItem::Alias(Arc::new(a)), problems),
            }
        }
    }

    fn define(&mut self, new: Arc<ast::Definition>, problems: &mut Vec<Diagnostic>) {
        let key = (new.kind, new.name.text.clone());
        match self.definitions.get(&key) {
            Some(old) => problems.push(twice(new.kind.word(), &new.name, old.name.span)),
            None => {
                self.definitions.insert(key, new);
            }
        }
    }

    fn function(&mut self, new: Arc<ast::Function>, problems: &mut Vec<Diagnostic>) {
        match self.functions.get(&new.name.text) {
            Some(old) => problems.push(twice("function", &new.name, old.name.span)),
            None => {
                self.functions.insert(new.name.text.clone(), new);
            }
        }
    }

    fn layer(&mut self, name: &ast::Ident, item: LayerItem, problems: &mut Vec<Diagnostic>) {
        match self.layers.get(&name.text) {
            Some(old) => problems.push(twice("layer", name, old.span())),
            None => {
                self.layers.insert(name.text.clone(), item);
            }
        }
    }

    /// A note for every name here that the library has too.
    pub(crate) fn shadows(&self, library: &Table) -> Vec<Diagnostic> {
        let mut notes = Vec::new();
        for (key, new) in &self.definitions {
            if let Some(old) = library.definitions.get(key) {
                notes.push(shadow(key.0.word(), &new.name, Some(old.name.span)));
            }
        }
        for (name, new) in &self.functions {
            if let Some(old) = library.functions.get(name) {
                notes.push(shadow("function", &new.name, Some(old.name.span)));
            } else if crate::eval::is_builtin(name) {
                notes.push(shadow("function", &new.name, None));
            }
        }
        for (name, new) in &self.layers {
            if let (LayerItem::Full(_) | LayerItem::Alias(_), Some(old)) = (new, library.layers.get(name)) {
                let ident = ast::Ident { text: name.clone(), span: new.span() };
                notes.push(shadow("layer", &ident, Some(old.span())));
            }
        }
        notes
    }
}

fn twice(what: &str, name: &ast::Ident, old: Span) -> Diagnostic {
    Diagnostic::new(code::DUPLICATE, format!("the {what} `{}` is defined twice", name.text))
        .at(name.span, "defined again here")
        .at(old, "first defined here")
        .with_help("rename or remove one of the two")
}

fn shadow(what: &str, name: &ast::Ident, old: Option<Span>) -> Diagnostic {
    let whose = if old.is_some() { "the library's" } else { "the built-in one" };
    Diagnostic::new(code::SHADOWS, format!("the {what} `{}` takes the place of {whose}", name.text))
        .at(name.span, "this one is used in your files")
        .at_opt(old, "the library's")
}
