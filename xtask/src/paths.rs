//! A clone stands alone: no text names a place outside it, and every relative link leads somewhere.

use crate::Finding;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are not ours to read.
const SKIPPED: &[&str] = &["target", ".git", "node_modules"];

/// Endings of files that people read.
const TEXT: &[&str] = &["md", "rs", "miras", "pest", "toml", "txt", "json", "sh"];

/// Beginnings of places that exist on one machine only, and documents that a clone does not have. Written in pieces,
/// since this file is read too.
const OUTSIDE: &[[&str; 2]] = &[
    ["../", "shared"],
    ["/", "work/"],
    ["/", "root/"],
    ["/", "home/"],
    ["/", "tmp/target"],
    ["SP", "EC section"],
];

/// Texts with a path out of the clone, and links of documents that lead nowhere.
pub fn check(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files(root) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (number, line) in text.lines().enumerate() {
            for pieces in OUTSIDE {
                if line.contains(&pieces.concat()) {
                    findings.push(Finding::new(
                        format!("{shown}:{}", number + 1),
                        "names a place outside the clone",
                    ));
                }
            }
        }
        if file.extension().is_some_and(|e| e == "md") {
            findings.extend(
                dead_links(&file, &text)
                    .into_iter()
                    .map(|l| Finding::new(&shown, format!("link to {l} leads nowhere"))),
            );
        }
    }
    findings
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().map(|n| n.to_string_lossy().to_string()).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                found.extend(files(&path));
            }
        } else if path.extension().is_some_and(|e| TEXT.iter().any(|t| e == *t)) {
            found.push(path);
        }
    }
    found
}

/// Targets of `](target)` that are relative paths and do not exist.
fn dead_links(file: &Path, text: &str) -> Vec<String> {
    let folder = file.parent().unwrap_or(file);
    (text.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .map(|link| link.split('#').next().unwrap_or(""))
        .filter(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:"))
        .filter(|link| !folder.join(link).exists())
        .map(str::to_string)
        .collect()
}
