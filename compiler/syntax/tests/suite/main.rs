//! Tests of the front end as a whole.

mod format;
mod limits;
mod mistakes;
mod mutation;
mod shape;

use miras_base as base;
use miras_syntax as syntax;
use std::path::{Path, PathBuf};

/// The programs under `folder` (relative to this crate), by path, in order.
fn programs(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|e| e.expect("a readable folder").path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "miras") {
            found.push((path.clone(), std::fs::read_to_string(&path).expect("a readable file")));
        }
    }
}

/// Compares a text with the file of that name under `snapshots`, or rewrites the file with `MIRAS_BLESS=1`.
fn held(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/snapshots");
    let path = folder.join(name).with_extension("snap");
    if std::env::var_os("MIRAS_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, found).expect("a writable snapshot");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(expected, found, "{} (MIRAS_BLESS=1 rewrites it)", path.display());
}

/// Every program that must be right: the snippets here, the library, the golden cases and the examples.
fn right_programs() -> Vec<(PathBuf, String)> {
    let snippets = programs("tests/snippets");
    assert!(snippets.len() >= 5, "the snippets are there");
    let others = ["../../stdlib", "../../tests/golden", "../../examples"];
    snippets.into_iter().chain(others.into_iter().flat_map(programs)).collect()
}

/// A right text as a tree, printed.
fn tree(text: &str) -> String {
    let (file, problems) = syntax::parse(base::FileId(0), text);
    assert_eq!(problems, [], "in {text}");
    syntax::print::file(&file)
}

/// Diagnostics as text, one line a fact.
fn told(text: &str) -> String {
    let mut sources = base::SourceMap::new();
    let id = sources.add("case.miras", text);
    let (_, problems) = syntax::parse(id, text);
    let mut out = String::new();
    for problem in &problems {
        out += &format!("{problem}\n");
        for label in &problem.labels {
            let (line, column) = sources.line_column(label.span);
            out += &format!("    {line}:{column} {:?} {}\n", sources.text(label.span), label.text);
        }
        if let Some(help) = &problem.help {
            out += &format!("    help: {help}\n");
        }
    }
    out
}
