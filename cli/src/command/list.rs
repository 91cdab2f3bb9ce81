//! `miras list`.

use crate::DONE;
use crate::console::Console;
use miras_stdlib as stdlib;
use std::collections::BTreeMap;

/// Lists the library by kind: each definition with the first sentence of its comment.
pub(super) fn list(console: &mut Console<'_>) -> u8 {
    let mut kinds: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (path, text) in stdlib::files() {
        if let Some((kind, file)) = path.split_once('/') {
            let name = file.trim_end_matches(".miras").to_string();
            kinds.entry(kind.to_string()).or_default().push((name, first_sentence(text)));
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

/// The first sentence of the comment that a text begins with. `...` ends none.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
    let comment = lines.collect::<Vec<_>>().join(" ");
    let ends = |(at, _): &(usize, &str)| !comment[..*at].ends_with('.');
    match comment.match_indices(". ").find(ends) {
        Some((end, _)) => comment[..=end].to_string(),
        None => comment,
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn dots_inside_a_formula_end_no_sentence() {
        assert_eq!(first_sentence("// W[2] act(... W[1]\n// x). More.\nlayer"), "W[2] act(... W[1] x).");
        assert_eq!(first_sentence("layer a"), "");
    }
}
