//! What a command is about: a file, or a layer of the library.

use crate::files::{self, Used};
use base::diagnostic::code;
use base::{Diagnostic, FileId};
use driver::{Choice, Outcome, Session};
use miras_base as base;
use miras_driver as driver;
use miras_spec as spec;
use miras_stdlib as stdlib;
use std::path::Path;

use crate::options::Layer;

/// A loaded program and the layers of it that are meant.
pub(crate) struct Subject {
    pub program: spec::Program,
    /// The root text; None for a layer of the library.
    pub root: Option<FileId>,
    /// The library's layer, where one is meant.
    library_layer: Option<String>,
}

/// Loads what FILE names. A file wins over a library layer of that name.
///
/// # Errors
/// E0507 where there is neither; else those of [`Session::load`].
pub(crate) fn load(session: &mut Session<'_>, path: &Path) -> Outcome<Subject> {
    if !path.is_file()
        && let Some(name) = path.to_str()
        && is_name(name)
    {
        let library = session.load_library()?;
        let known: Vec<String> = library.value.library_layers().into_iter().map(|l| l.name).collect();
        if known.iter().any(|k| k == name) {
            let layer = Some(name.to_string());
            return Ok(library.map(|program| Subject { program, root: None, library_layer: layer }));
        }
        if !path.exists() {
            return Err(vec![neither(name, &known)]);
        }
    }
    let text = files::text(path).map_err(|d| vec![d])?;
    let root = session.add(&path.display().to_string(), &text);
    let mut used = Used::beside(path);
    let loaded = session.load(root, &mut |relative| used.read(relative))?;
    Ok(loaded.map(|program| Subject { program, root: Some(root), library_layer: None }))
}

impl Subject {
    /// The names of the layers that are meant.
    pub(crate) fn layers(&self) -> Vec<String> {
        match &self.library_layer {
            Some(name) => vec![name.clone()],
            None => self.program.layers().into_iter().map(|l| l.name).collect(),
        }
    }

    /// The choice that the options make.
    pub(crate) fn choice(&self, options: &Layer) -> Choice {
        let named = options.layer.as_deref().map(|given| self.numbered(given).unwrap_or(given.to_string()));
        let layer = named.or_else(|| self.library_layer.clone());
        Choice { layer, overrides: options.set.clone() }
    }

    /// The name of the layer that a number means, counted from 0 in the file's order.
    fn numbered(&self, given: &str) -> Option<String> {
        self.layers().into_iter().nth(given.parse().ok()?)
    }

    /// The text that holds the layers.
    pub(crate) fn file(&self) -> Option<FileId> {
        let name = self.library_layer.as_ref();
        let layers = self.program.library_layers();
        self.root.or_else(|| Some(layers.iter().find(|l| Some(&l.name) == name)?.span.file))
    }
}

/// Whether a path could be the name of a layer.
fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a name looks like the code of a diagnostic.
fn is_code(name: &str) -> bool {
    let digits = name.strip_prefix(['E', 'W', 'e', 'w']);
    digits.is_some_and(|d| d.len() == 4 && d.chars().all(|c| c.is_ascii_digit()))
}

fn neither(name: &str, known: &[String]) -> Diagnostic {
    if is_code(name) {
        let message = format!("there is no file `{name}`, and no diagnostic has that code");
        let help = "`miras list codes` shows all of them";
        return Diagnostic::new(code::READ_FILE, message).with_help(help);
    }
    if let Some(kind) = kind_of(name) {
        let message =
            format!("there is no file `{name}`, and in the library `{name}` is of the kind `{kind}`");
        let help = format!(
            "only layers stand in place of a file: choose it in one, `{kind}: {name}` beside the three other clauses; \
             `miras list` shows the library's layers"
        );
        return Diagnostic::new(code::READ_FILE, message).with_help(help);
    }
    let message = format!("there is no file `{name}`, and the library has no layer of that name");
    let near = near(name, known).join(", ");
    let help = match near.as_str() {
        "" => "give the path of a file; `miras list` shows the library's layers".into(),
        near => format!("did you mean {near}? `miras list` shows the library's layers"),
    };
    Diagnostic::new(code::READ_FILE, message).with_help(help)
}

/// The kind of a definition of the library that is no layer.
fn kind_of(name: &str) -> Option<&'static str> {
    let path = |kind: &str| format!("{kind}/{name}.miras");
    let holds = |kind: &&str| stdlib::files().any(|(file, _)| file == path(kind));
    ["bias", "retention", "memory", "algo"].into_iter().find(holds)
}

/// Layers that a name may have been meant for, in quotes: the nearest where it is a slip, else those that begin alike.
fn near(name: &str, known: &[String]) -> Vec<String> {
    let nearest = known.iter().map(|k| (strsim::damerau_levenshtein(k, name), k)).min();
    let slip = nearest.filter(|(distance, _)| *distance <= name.len() / 3 + 1).map(|(_, k)| k);
    let alike = known.iter().filter(|k| name.len() >= 3 && k.starts_with(name));
    let begun: Vec<&String> = alike.take(4).collect();
    let meant = if begun.is_empty() { slip.into_iter().collect() } else { begun };
    meant.into_iter().map(|k| format!("`{k}`")).collect()
}
