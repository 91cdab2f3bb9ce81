//! Repository chores. `cargo xtask tidy` checks what no compiler checks: that dependencies follow the layers,
//! that every crate opens with its door sign, and that the text names nothing outside the clone.
//! `cargo xtask example NAME` explains and runs one of the shipped examples.
//!
//! **May touch** the file system. **Must not** depend on any crate of the project.

mod door;
mod example;
mod layers;
mod manifest;
mod paths;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A finding: where, and what is wrong.
struct Finding {
    place: String,
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { place: place.into(), what: what.into() }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["example", name] => example::run(&root(), name),
        _ => {
            eprintln!("usage: cargo xtask tidy | cargo xtask example NAME");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let root = root();
    let mut findings = Vec::new();
    match manifest::crates(&root) {
        Ok(crates) => {
            findings.extend(layers::check(&crates));
            findings.extend(door::check(&root, &crates));
        }
        Err(finding) => findings.push(finding),
    }
    findings.extend(paths::check(&root));
    for finding in &findings {
        eprintln!("tidy: {}: {}", finding.place, finding.what);
    }
    if findings.is_empty() {
        println!("tidy: nothing to say");
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} findings", findings.len());
        ExitCode::FAILURE
    }
}

/// The repository's root: the folder above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
