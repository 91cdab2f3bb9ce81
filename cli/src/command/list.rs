//! `miras list`.

use crate::DONE;
use crate::console::Console;
use crate::options::{List, Listed};
use miras_base::diagnostic::CATALOGUE;
use miras_stdlib as stdlib;
use std::collections::BTreeMap;

/// Lists the library by kind, each definition with what it is and where it comes from; or the diagnostics.
pub(super) fn list(options: &List, console: &mut Console<'_>) -> u8 {
    if options.what == Some(Listed::Codes) {
        for entry in CATALOGUE {
            console.say(&format!("{}  {}\n", entry.code, entry.title));
        }
        return DONE;
    }
    let mut kinds: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (path, text) in stdlib::files() {
        let Some((kind, file)) = path.split_once('/') else { continue };
        if options.what.is_none_or(|what| what.folder() == kind) {
            let name = file.trim_end_matches(".miras").to_string();
            kinds.entry(kind.to_string()).or_default().push((name, told(text)));
        }
    }
    for (kind, mut definitions) in kinds {
        definitions.sort();
        let longest = definitions.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        console.say(&format!("{kind}\n"));
        for (name, about) in definitions {
            console.say(&format!("  {name:longest$}  {about}\n"));
        }
    }
    DONE
}

/// What a text of the library is, and its source in brackets.
fn told(text: &str) -> String {
    let comment = comment(text);
    let about = sentence(&comment);
    match source(&comment) {
        Some(source) => format!("{about} [{source}]"),
        None => about.to_string(),
    }
}

/// The comment that a text begins with.
fn comment(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// The first sentence. `...` ends none.
fn sentence(comment: &str) -> &str {
    let ends = |(at, _): &(usize, &str)| !comment[..*at].ends_with('.');
    match comment.match_indices(". ").find(ends) {
        Some((end, _)) => &comment[..=end],
        None => comment,
    }
}

/// What follows `Source:`, without the remarks behind it.
fn source(comment: &str) -> Option<&str> {
    let (_, told) = comment.split_once("Source: ")?;
    let remarks = ["; ", " (", ", wh", " with ", ", as ", ". "];
    let end = remarks.iter().filter_map(|r| told.find(r)).min().unwrap_or(told.len());
    Some(told[..end].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_inside_a_formula_end_no_sentence() {
        let text = "// W[2] act(... W[1]\n// x). More.\nlayer";
        assert_eq!(sentence(&comment(text)), "W[2] act(... W[1] x).");
        assert_eq!(told("layer a"), "");
    }

    #[test]
    fn every_definition_has_a_line_of_its_own_with_its_source() {
        for (path, text) in stdlib::files() {
            let (told, comment) = (told(text), comment(text));
            assert!(told.ends_with(']') && source(&comment).is_some_and(|s| s.len() > 5), "{path}: {told}");
            let layer = path.starts_with("layer/");
            assert!(!layer || comment.contains("Normative: "), "{path} does not say what is normative");
        }
        let mut out = Vec::new();
        let mut console = Console::new(&mut out, Vec::new());
        assert_eq!(list(&List { what: None }, &mut console), DONE);
        drop(console);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), stdlib::files().count() + 5);
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }
}
