//! `use` lines: finding the files that a program is made of.

use super::Reader;
use base::diagnostic::code;
use base::{Diagnostic, FileId, SourceMap};
use miras_base as base;
use miras_syntax::ast;
use std::collections::HashSet;

/// More files than a program may have.
const MAX_FILES: usize = 256;

/// The root file and, breadth first, all that it uses, each once.
pub(super) fn read_all(
    sources: &mut SourceMap,
    root: FileId,
    read: &mut Reader<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<ast::File> {
    let mut files: Vec<(Vec<String>, ast::File)> = vec![(Vec::new(), parse(sources, root, problems))];
    let mut known: HashSet<Vec<String>> = HashSet::from([base_name(sources, root)]);
    let mut next = 0;
    while next < files.len() {
        let (folder, lines) = (files[next].0.clone(), files[next].1.uses.clone());
        next += 1;
        for line in lines {
            let Some(parts) = resolve(&folder, &line, problems) else { continue };
            if !known.insert(parts.clone()) {
                continue;
            }
            if files.len() == MAX_FILES {
                problems.push(refuse(&line, format!("a program has at most {MAX_FILES} files")));
                return files.into_iter().map(|(_, file)| file).collect();
            }
            match read(&parts.join("/")) {
                Ok((name, text)) => {
                    let id = sources.add(name, text);
                    let folder = parts[..parts.len() - 1].to_vec();
                    files.push((folder, parse(sources, id, problems)));
                }
                Err(why) => problems.push(refuse(&line, why)),
            }
        }
    }
    files.into_iter().map(|(_, file)| file).collect()
}

/// The name of the root file in its folder, so that a cycle of `use` lines through it is seen.
fn base_name(sources: &SourceMap, root: FileId) -> Vec<String> {
    let name = &sources.file(root).name;
    vec![name.rsplit(['/', '\\']).next().unwrap_or(name).to_string()]
}

pub(super) fn parse(sources: &SourceMap, id: FileId, problems: &mut Vec<Diagnostic>) -> ast::File {
    let text = sources.file(id).text.clone();
    let (file, found) = miras_syntax::parse(id, &text);
    problems.extend(found);
    file
}

/// The parts of a used path, counted from the root file's folder; None (and a diagnostic) where it leaves
/// the folder of the file that uses it.
fn resolve(folder: &[String], line: &ast::Use, problems: &mut Vec<Diagnostic>) -> Option<Vec<String>> {
    let mut inner: Vec<String> = Vec::new();
    let refusal = if line.path.is_empty() {
        Some("the path is empty")
    } else if line.path.starts_with('/') || line.path.contains(':') {
        Some("the path is absolute")
    } else if line.path.contains('\\') || line.path.contains('\0') {
        Some("the path has a character that no portable path has; write `/` between folders")
    } else {
        line.path.split('/').find_map(|part| match part {
            "" | "." => None,
            ".." if inner.pop().is_none() => Some("the path leaves the folder of the file that uses it"),
            ".." => None,
            name => {
                inner.push(name.to_string());
                None
            }
        })
    };
    let refusal = refusal.or(if inner.is_empty() { Some("the path names no file") } else { None });
    if let Some(why) = refusal {
        problems.push(refuse(line, why.to_string()));
        return None;
    }
    Some([folder, &inner].concat())
}

fn refuse(line: &ast::Use, why: String) -> Diagnostic {
    Diagnostic::new(code::USE_FILE, format!("cannot use \"{}\": {why}", line.path))
        .at(line.path_span, "used here")
        .with_help(
            "a used file lies in the folder of the file that uses it, or below; give its path from there",
        )
}
