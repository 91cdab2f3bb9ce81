//! The pages about diagnostics, `docs/errors/*.md`, carried inside the command and set for a terminal.

use include_dir::{Dir, include_dir};

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../docs/errors");

/// The page about a code, as Markdown.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    PAGES.get_file(format!("{code}.md"))?.contents_utf8()
}

/// Markdown as these pages use it, without its marks: headings underlined, programs and transcripts set in.
pub(crate) fn set(markdown: &str) -> String {
    let (mut text, mut fenced) = (String::new(), false);
    for line in markdown.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && line.is_empty() {
            text.push('\n');
        } else if fenced {
            text += &format!("    {line}\n");
        } else if let Some((marks, title)) = heading(line) {
            let under = if marks == 1 { "=" } else { "-" };
            text += &format!("{title}\n{}\n", under.repeat(title.chars().count()));
        } else {
            text += &format!("{line}\n");
        }
    }
    text
}

/// How deep a heading is, and its words.
fn heading(line: &str) -> Option<(usize, &str)> {
    let words = line.trim_start_matches('#');
    let marks = line.len() - words.len();
    (marks > 0).then(|| (marks, words.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_base::diagnostic::CATALOGUE;

    #[test]
    fn every_code_has_a_page_that_a_terminal_can_show() {
        for entry in CATALOGUE {
            let page =
                page(entry.code.0).unwrap_or_else(|| panic!("docs/errors/{}.md is missing", entry.code));
            let shown = set(page);
            assert!(shown.starts_with(&format!("{}: {}\n====", entry.code, entry.title)), "{shown}");
            assert!(!shown.contains("```"), "{shown}");
        }
    }

    #[test]
    fn programs_are_set_in_and_headings_underlined() {
        assert_eq!(set("# A b\n\n```miras\nx\n\n#\n```\nend"), "A b\n===\n\n    x\n\n    #\nend\n");
    }
}
