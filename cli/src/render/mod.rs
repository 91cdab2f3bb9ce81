//! Diagnostics as text for people, and as JSON for programs.

mod json;
mod source;

pub(crate) use json::json;

use base::diagnostic::Label;
use base::{Diagnostic, Severity, SourceMap};
use miette::{GraphicalReportHandler, GraphicalTheme};
use miras_base as base;
use source::{Excerpts, Shown, can_be_drawn};

/// Columns that text is set in.
const WIDTH: usize = 100;

/// Draws diagnostics with the source beside them.
pub struct Renderer {
    handler: GraphicalReportHandler,
}

impl Renderer {
    /// Without colours.
    pub fn plain() -> Renderer {
        Renderer::themed(GraphicalTheme::unicode_nocolor())
    }

    /// With colours.
    pub fn coloured() -> Renderer {
        Renderer::themed(GraphicalTheme::unicode())
    }

    fn themed(theme: GraphicalTheme) -> Renderer {
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(WIDTH)
            .with_links(false)
            .with_wrap_lines(false);
        Renderer { handler }
    }

    /// A diagnostic as text that ends with a line break: a note as one paragraph, others with their source.
    pub fn render(&self, diagnostic: &Diagnostic, sources: &SourceMap) -> String {
        match diagnostic.severity {
            Severity::Note => note(diagnostic, sources),
            Severity::Warning | Severity::Error => self.drawn(diagnostic, sources),
        }
    }

    fn drawn(&self, diagnostic: &Diagnostic, sources: &SourceMap) -> String {
        let excerpts = Excerpts::new(diagnostic, sources);
        let mut text = String::new();
        let shown = Shown { diagnostic, excerpts: &excerpts, sources };
        if self.handler.render_report(&mut text, &shown).is_err() {
            // Drawing failed; the words are what matters.
            text = format!("{diagnostic}\n");
        }
        for label in diagnostic.labels.iter().filter(|l| !can_be_drawn(l.span, sources)) {
            text += &paragraph("  at ", &format!("{}: {}", place(label, sources), label.text));
        }
        for fact in &diagnostic.notes {
            text += &paragraph("  note: ", fact);
        }
        text.push('\n');
        text
    }
}

/// A note in a few lines: what, where, and what can be done.
fn note(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let mut said = diagnostic.message.clone();
    if let Some(label) = diagnostic.labels.first() {
        said += &format!(" ({})", place(label, sources));
    }
    for more in diagnostic.help.iter().chain(&diagnostic.notes) {
        said += &format!("; {more}");
    }
    paragraph(&format!("note[{}]: ", diagnostic.code), &said)
}

/// `file:line:column`.
fn place(label: &Label, sources: &SourceMap) -> String {
    let (line, column) = sources.line_column(label.span);
    format!("{}:{line}:{column}", sources.file(label.span.file).name)
}

/// A titled paragraph; later lines are indented as far as the title goes.
fn paragraph(title: &str, text: &str) -> String {
    let indent = title.chars().count();
    let lines = folded(text, WIDTH.saturating_sub(indent)).replace('\n', &format!("\n{:indent$}", ""));
    format!("{title}{lines}\n")
}

/// Text in lines of at most so many columns, where its words allow; words are not broken, so that what is to
/// be typed can be copied.
fn folded(text: &str, columns: usize) -> String {
    let (mut set, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > columns {
            set.push('\n');
            used = 0;
        } else if used > 0 {
            set.push(' ');
            used += 1;
        }
        set += word;
        used += length;
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::diagnostic::code;
    use base::{FileId, Span};

    fn two_files() -> (SourceMap, FileId, FileId) {
        let mut sources = SourceMap::new();
        let a = sources.add("a.miras", "memory: matrix;\nbias: hubr;\n");
        let b = sources.add("stdlib/bias/huber.miras", "bias huber(delta: positive = learned) {\n}\n");
        (sources, a, b)
    }

    #[test]
    fn both_places_are_shown_with_their_files() {
        let (sources, a, b) = two_files();
        let diagnostic = Diagnostic::new(code::UNKNOWN_NAME, "`hubr` is not a bias")
            .at(Span::new(a, 22, 26), "not known")
            .at(Span::new(b, 5, 10), "this one is")
            .with_help("did you mean `huber`?")
            .with_note("names are told apart by place");
        let text = Renderer::plain().render(&diagnostic, &sources);
        for part in ["E0101", "a.miras:2:7", "stdlib/bias/huber.miras:1:6", "help: did you", "note: names"] {
            assert!(text.contains(part), "{part} is missing from\n{text}");
        }
    }

    #[test]
    fn the_end_of_a_file_and_odd_characters_can_be_shown() {
        let mut sources = SourceMap::new();
        let file = sources.add("x", "a\u{1b}[31m\u{202e}b\r\n");
        for (start, end) in [(0, 1), (9, 11), (11, 11), (10, 10)] {
            let diagnostic = Diagnostic::new(code::SYNTAX, "odd").at(Span::new(file, start, end), "here");
            let text = Renderer::plain().render(&diagnostic, &sources);
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
            assert!(text.contains("here"), "{text}");
        }
    }

    #[test]
    fn endless_lines_are_not_drawn() {
        let mut sources = SourceMap::new();
        let file = sources.add("x", format!("a\n{}", "y+".repeat(100_000)));
        let diagnostic = Diagnostic::new(code::NESTING, "deep").at(Span::new(file, 6, 7), "here");
        let text = Renderer::plain().render(&diagnostic, &sources);
        assert!(text.len() < 200 && text.contains("x:2:5: here"), "{text}");
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(folded("pass `--allow-extra` to", 12), "pass\n`--allow-extra`\nto");
        assert_eq!(paragraph("ab: ", "c d"), "ab: c d\n");
    }

    #[test]
    fn a_note_is_one_paragraph() {
        let (sources, a, _) = two_files();
        let note = Diagnostic::new(code::SHADOWS, "`huber` stands for your own").at(Span::new(a, 0, 6), "x");
        let text = Renderer::plain().render(&note, &sources);
        assert_eq!(text, "note[W0101]: `huber` stands for your own (a.miras:1:1)\n");
    }
}
