//! Every crate opens with its door sign.

use crate::Finding;
use crate::manifest::Crate;
use std::fs;
use std::path::Path;

/// What a sign says.
const SIGNS: &[&str] = &["**May touch**", "**Must not**"];

/// Crates whose first file lacks a sign.
pub fn check(root: &Path, crates: &[Crate]) -> Vec<Finding> {
    crates.iter().flat_map(|c| one(root, c)).collect()
}

fn one(root: &Path, one: &Crate) -> Vec<Finding> {
    let files = ["src/lib.rs", "src/main.rs"].map(|f| format!("{}/{f}", one.folder));
    let Some((file, text)) = files.iter().find_map(|f| Some((f, fs::read_to_string(root.join(f)).ok()?)))
    else {
        return vec![Finding::new(&one.folder, "has neither src/lib.rs nor src/main.rs")];
    };
    let sign: String = text.lines().take_while(|l| l.starts_with("//!")).collect::<Vec<_>>().join(" ");
    (SIGNS.iter())
        .filter(|s| !sign.contains(**s))
        .map(|s| Finding::new(file, format!("its door sign lacks {s}")))
        .collect()
}
