//! A user's file with all that it uses, and the library beside it.

mod library;

pub use library::Library;

use base::{Diagnostic, FileId, SourceMap, Span};
use miras_base as base;

use crate::layer::Layer;

/// Gives the name (for messages) and the text of a used file.
///
/// The argument is the path of the file relative to the folder of the program's root file, with `/`
/// between its parts and no `.` or `..` among them. What a link in the file system may lead to is the
/// reader's to judge; an error is a sentence without a full stop.
pub type Reader<'a> = dyn FnMut(&str) -> Result<(String, String), String> + 'a;

/// A loaded program: its layers can be elaborated one by one.
#[derive(Debug)]
pub struct Program {}

/// A layer of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerName {
    /// Its name; `anonymous` where the file is only clauses.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
}

impl Program {
    /// Reads the root file, the files it uses and the library.
    ///
    /// The library's texts are added to `sources`. Diagnostics that are errors mean that some text could
    /// not be read whole; what could be read can still be elaborated.
    pub fn load(
        _sources: &mut SourceMap,
        _root: FileId,
        _library: &Library,
        _read: &mut Reader<'_>,
    ) -> (Program, Vec<Diagnostic>) {
        (Program {}, Vec::new())
    }

    /// A program without a file of its own: only the library's layers.
    pub fn of_library(_sources: &mut SourceMap, _library: &Library) -> (Program, Vec<Diagnostic>) {
        (Program {}, Vec::new())
    }

    /// The layers of the root file, in the order written.
    pub fn layers(&self) -> Vec<LayerName> {
        Vec::new()
    }

    /// The layers of the library, by name.
    pub fn library_layers(&self) -> Vec<LayerName> {
        Vec::new()
    }

    /// Elaborates one layer: the one called `name`, or the only one.
    ///
    /// `overrides` are pairs of a name and a value in the language: `chunk` and `32`, `retention.alpha` and
    /// `0.1`, `memory` and `mlp(3)`, or a parameter of the layer. Their texts are added to `sources`, so that
    /// diagnostics can point at them. Gives the layer with notes and warnings, or the errors.
    pub fn elaborate(
        &self,
        _sources: &mut SourceMap,
        _name: Option<&str>,
        _overrides: &[(String, String)],
    ) -> Result<(Layer, Vec<Diagnostic>), Vec<Diagnostic>> {
        Err(vec![Diagnostic::bug("elaboration is not there yet")])
    }
}
