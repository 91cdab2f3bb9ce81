//! The crates of the workspace and what they depend on, as their manifests say.

use crate::Finding;
use std::fs;
use std::path::Path;

/// A crate of the workspace.
pub struct Crate {
    /// Folder, relative to the root.
    pub folder: String,
    /// Package name.
    pub name: String,
    /// Names under `[dependencies]`.
    pub dependencies: Vec<String>,
}

/// All members of the workspace.
pub fn crates(root: &Path) -> Result<Vec<Crate>, Finding> {
    let text = read(root, "Cargo.toml")?;
    let members = text.split("members = [").nth(1).and_then(|t| t.split(']').next()).unwrap_or("");
    let folders: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    if folders.is_empty() {
        return Err(Finding::new("Cargo.toml", "no workspace members were found"));
    }
    folders.into_iter().map(|folder| one(root, folder)).collect()
}

fn one(root: &Path, folder: &str) -> Result<Crate, Finding> {
    let file = format!("{folder}/Cargo.toml");
    let text = read(root, &file)?;
    let (mut section, mut name, mut dependencies) = (String::new(), None, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_string();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().split('.').next().unwrap_or("").to_string();
        match section.as_str() {
            "package" if key == "name" => name = Some(value.trim().trim_matches('"').to_string()),
            "dependencies" if !line.starts_with('#') => dependencies.push(key),
            _ => {}
        }
    }
    let name = name.ok_or_else(|| Finding::new(file, "has no package name"))?;
    Ok(Crate { folder: folder.to_string(), name, dependencies })
}

fn read(root: &Path, file: &str) -> Result<String, Finding> {
    fs::read_to_string(root.join(file)).map_err(|e| Finding::new(file, e.to_string()))
}
