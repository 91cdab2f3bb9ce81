//! Loading programs from strings.
#![allow(dead_code)]

mod describe;

#[allow(unused_imports)]
pub use describe::describe;

use base::{Diagnostic, SourceMap};
use miras_base as base;
use miras_spec::{Layer, Library, Program};

/// A loaded program with its sources.
pub struct Loaded {
    pub sources: SourceMap,
    pub program: Program,
    pub problems: Vec<Diagnostic>,
}

/// Loads a text with a library; `files` are what it can use.
pub fn load_with(text: &str, library: &Library, files: &[(&str, &str)]) -> Loaded {
    let mut sources = SourceMap::new();
    let root = sources.add("test.miras", text);
    let mut read = |path: &str| match files.iter().find(|(name, _)| *name == path) {
        Some((name, text)) => Ok((name.to_string(), text.to_string())),
        None => Err("there is no such file".to_string()),
    };
    let (program, problems) = Program::load(&mut sources, root, library, &mut read);
    Loaded { sources, program, problems }
}

/// Loads a text with the standard library.
pub fn load(text: &str) -> Loaded {
    load_with(text, &Library::standard(), &[])
}

impl Loaded {
    /// The errors of loading, or of elaborating.
    pub fn elaborate(&mut self, name: Option<&str>, set: &[(&str, &str)]) -> Result<Layer, Vec<Diagnostic>> {
        let errors: Vec<Diagnostic> = self.problems.iter().filter(|d| d.is_error()).cloned().collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        let set: Vec<(String, String)> = set.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        self.program.elaborate(&mut self.sources, name, &set).map(|(layer, _)| layer)
    }

    /// Diagnostics as text with their places.
    pub fn show(&self, problems: &[Diagnostic]) -> String {
        let mut text = String::new();
        for d in problems {
            text += &format!("{d}\n");
            for label in &d.labels {
                let (line, column) = self.sources.line_column(label.span);
                let file = &self.sources.file(label.span.file).name;
                let code = self.sources.text(label.span).lines().next().unwrap_or("");
                text += &format!("  {file}:{line}:{column} `{code}`: {}\n", label.text);
            }
            if let Some(help) = &d.help {
                text += &format!("  help: {help}\n");
            }
            for note in &d.notes {
                text += &format!("  note: {note}\n");
            }
        }
        text
    }
}

/// The layer of a text that must be right.
pub fn layer(text: &str) -> Layer {
    let mut loaded = load(text);
    match loaded.elaborate(None, &[]) {
        Ok(layer) => layer,
        Err(problems) => panic!("{text}\n{}", loaded.show(&problems)),
    }
}
