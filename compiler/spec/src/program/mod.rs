//! A user's file with all that it uses, and the library beside it.

mod alone;
mod library;
mod lookup;
mod table;
mod uses;

pub use library::Library;
pub(crate) use lookup::did_you_mean;
pub(crate) use table::{LayerItem, Origin, Table};

use base::diagnostic::{code, listed};
use base::{Diagnostic, FileId, SourceMap, Span};
use miras_base as base;
use miras_syntax::ast;
use std::sync::Arc;

use crate::elaborate;
use crate::layer::Layer;

/// Gives the name (for messages) and the text of a used file.
///
/// The argument is the path of the file relative to the folder of the program's root file, with `/`
/// between its parts and no `.` or `..` among them. What a link in the file system may lead to is the
/// reader's to judge; an error is a sentence without a full stop.
pub type Reader<'a> = dyn FnMut(&str) -> Result<(String, String), String> + 'a;

/// A loaded program: its layers can be elaborated one by one.
#[derive(Debug)]
pub struct Program {
    pub(crate) user: Table,
    pub(crate) library: Table,
    /// Layers of the root file, in the order written.
    roots: Vec<String>,
    /// The root file's own top-level layer.
    anonymous: Option<Arc<ast::LayerBody>>,
}

/// A layer of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerName {
    /// Its name; `anonymous` where the file is only clauses.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
}

/// So many layers are pointed at where one must be chosen.
const PLACES: usize = 4;

/// How a layer is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenLayer {
    /// Its definition, whole; then those that it is made from, nearest first.
    pub spans: Vec<Span>,
    /// The comment lines directly above these, in the same order.
    pub about: Vec<String>,
}

/// The name of a layer that has none.
pub(crate) const ANONYMOUS: &str = "anonymous";

impl Program {
    /// Reads the root file, the files it uses and the library.
    ///
    /// The library's texts are added to `sources`. Diagnostics that are errors mean that some text could
    /// not be read whole; what could be read can still be elaborated.
    pub fn load(
        sources: &mut SourceMap,
        root: FileId,
        library: &Library,
        read: &mut Reader<'_>,
    ) -> (Program, Vec<Diagnostic>) {
        let (mut program, mut problems) = Program::of_library(sources, library);
        for (index, mut file) in uses::read_all(sources, root, read, &mut problems).into_iter().enumerate() {
            if index == 0 {
                program.roots = layer_names(&file);
                program.anonymous = file.anonymous.take().map(Arc::new);
            } else if let Some(body) = &file.anonymous {
                problems.push(idle_clauses(body));
            }
            program.user.take(file.items, &mut problems);
        }
        if let (Some(body), Some(name)) = (&program.anonymous, program.roots.first()) {
            problems.push(program.both_kinds(body, name));
        }
        problems.extend(program.user.shadows(&program.library));
        (program, problems)
    }

    /// A program without a file of its own: only the library's layers.
    pub fn of_library(sources: &mut SourceMap, library: &Library) -> (Program, Vec<Diagnostic>) {
        let mut program =
            Program { user: Table::default(), library: Table::default(), roots: Vec::new(), anonymous: None };
        let mut problems = Vec::new();
        for (name, text) in library.texts() {
            let id = sources.add(name, text);
            let file = uses::parse(sources, id, &mut problems);
            program.library.take(file.items, &mut problems);
        }
        (program, problems)
    }

    /// The layers of the root file, in the order written.
    pub fn layers(&self) -> Vec<LayerName> {
        let anonymous =
            self.anonymous.iter().map(|body| LayerName { name: ANONYMOUS.to_string(), span: body.span });
        let named = self.roots.iter().filter_map(|name| {
            let item = self.user.layers.get(name)?;
            Some(LayerName { name: name.clone(), span: item.span() })
        });
        anonymous.chain(named).collect()
    }

    /// The layers of the library, by name.
    pub fn library_layers(&self) -> Vec<LayerName> {
        let layers = self.library.layers.iter();
        layers.map(|(name, item)| LayerName { name: name.clone(), span: item.span() }).collect()
    }

    /// How the layer is written that [`Program::elaborate`] takes by this name; empty where it takes none.
    pub fn written(&self, name: Option<&str>) -> WrittenLayer {
        let mut written = WrittenLayer::default();
        let mut next = self.choose(name).ok().map(|(_, item, origin)| (item, origin));
        // A chain of layers that leads back into itself ends where it was.
        while let Some((item, origin)) = next.take() {
            let (span, doc) = match &item {
                LayerItem::Full(layer) => (layer.span, layer.doc.as_slice()),
                LayerItem::Alias(alias) => (alias.span, alias.doc.as_slice()),
                LayerItem::Anonymous(body) => (body.span, [].as_slice()),
            };
            if written.spans.contains(&span) {
                break;
            }
            written.spans.push(span);
            written.about.extend_from_slice(doc);
            next = match &item {
                LayerItem::Alias(alias) => self.base_of(&alias.base.text, alias, origin),
                LayerItem::Full(_) | LayerItem::Anonymous(_) => None,
            };
        }
        written
    }

    /// The layer that an alias is made from. `layer yaad = yaad(chunk = 32);` means the library's yaad.
    fn base_of(&self, base: &str, alias: &ast::LayerAlias, origin: Origin) -> Option<(LayerItem, Origin)> {
        let own = base == alias.name.text && origin == Origin::User;
        self.find_layer(base, if own { Origin::Library } else { origin })
    }

    /// Elaborates one layer: the one called `name` (of the root file, a used file or the library), or the
    /// root file's only one.
    ///
    /// `overrides` are pairs of a name and a value in the language: `chunk` and `32`, `retention.alpha` and
    /// `0.1`, `memory` and `mlp(3)`, or a parameter of the layer. Their texts are added to `sources`, so that
    /// diagnostics can point at them. Gives the layer with notes and warnings, or the errors.
    pub fn elaborate(
        &self,
        sources: &mut SourceMap,
        name: Option<&str>,
        overrides: &[(String, String)],
    ) -> Result<(Layer, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (chosen, item, origin) = self.choose(name).map_err(|d| vec![*d])?;
        let settings = elaborate::read_overrides(sources, overrides)?;
        elaborate::layer(self, sources, elaborate::Chosen { name: chosen, item, origin }, &settings)
    }

    fn choose(&self, name: Option<&str>) -> Result<(String, LayerItem, Origin), Box<Diagnostic>> {
        match name {
            Some(ANONYMOUS) if self.anonymous.is_some() => self.only(),
            Some(name) => {
                let (item, origin) =
                    self.find_layer(name, Origin::User).ok_or_else(|| self.no_layer(name, None))?;
                Ok((name.to_string(), item, origin))
            }
            None => self.only(),
        }
    }

    fn only(&self) -> Result<(String, LayerItem, Origin), Box<Diagnostic>> {
        if let Some(body) = &self.anonymous {
            return Ok((ANONYMOUS.to_string(), LayerItem::Anonymous(body.clone()), Origin::User));
        }
        match self.roots.as_slice() {
            [name] => self.choose(Some(name)),
            [] => Err(Box::new(Diagnostic::new(code::WHICH_LAYER, "the file defines no layer").with_help(
                "add the four clauses `memory: ...; bias: ...; retention: ...; algo: ...`, or check the \
                         definitions by themselves with `miras check FILE`",
            ))),
            names => {
                let message = format!("the file defines {} layers: {}", names.len(), listed(names));
                let mut diagnostic = Diagnostic::new(code::WHICH_LAYER, message);
                for layer in self.layers().into_iter().take(PLACES) {
                    diagnostic = diagnostic.at(layer.span, "one of them");
                }
                Err(Box::new(diagnostic.with_help(format!("choose one, e.g. with `--layer {}`", names[0]))))
            }
        }
    }

    fn both_kinds(&self, body: &ast::LayerBody, name: &str) -> Diagnostic {
        let message = "the file has top-level clauses and named layers; it may have one or the other";
        let named = self.user.layers.get(name).map(LayerItem::span);
        Diagnostic::new(code::DUPLICATE, message)
            .at(body.span, "these clauses make a layer without a name")
            .at_opt(named, "a named layer")
            .with_help("put the clauses into a layer of their own: `layer name { ... }`")
    }
}

/// What a used file says at its top level about no definition: only the root file's own clauses make a layer.
fn idle_clauses(body: &ast::LayerBody) -> Diagnostic {
    Diagnostic::new(code::IDLE_CLAUSES, "the top-level clauses of a used file make no layer")
        .at(body.span, "these have no effect here")
        .with_help("give them a name, `layer name { ... }`, or move them to the file that uses this one")
}

fn layer_names(file: &ast::File) -> Vec<String> {
    let names = file.items.iter().filter_map(|item| match item {
        ast::Item::Layer(layer) => Some(layer.name.text.clone()),
        ast::Item::Alias(alias) => Some(alias.name.text.clone()),
        ast::Item::Definition(_) | ast::Item::Function(_) => None,
    });
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}
