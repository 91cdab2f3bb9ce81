//! The texts that a diagnostic points into, as miette wants them: one range of offsets over several files.

use super::{WIDTH, folded};
use base::{Diagnostic, FileId, Severity, SourceMap, Span};
use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use miras_base as base;
use std::fmt;

/// Columns that miette puts before a message, and before a help.
const MESSAGE: usize = 4;
const HELP: usize = 8;

/// The longest line of source that is drawn, in bytes.
const LONGEST_LINE: usize = 500;

/// The files of a diagnostic's labels, laid end to end in the order of their first label.
pub(super) struct Excerpts {
    files: Vec<Excerpt>,
}

struct Excerpt {
    id: FileId,
    name: String,
    /// Where the file begins in the common range.
    start: usize,
    text: String,
}

impl Excerpts {
    pub(super) fn new(diagnostic: &Diagnostic, sources: &SourceMap) -> Excerpts {
        let mut excerpts = Excerpts { files: Vec::new() };
        let mut start = 0;
        for label in diagnostic.labels.iter().filter(|l| can_be_drawn(l.span, sources)) {
            let id = label.span.file;
            if excerpts.files.iter().any(|f| f.id == id) {
                continue;
            }
            let file = sources.file(id);
            let text = harmless(&file.text);
            let length = text.len();
            excerpts.files.push(Excerpt { id, name: file.name.to_string(), start, text });
            // One more, so that the end of a file is not the start of the next.
            start += length + 1;
        }
        excerpts
    }

    /// A place in the common range; the end of the file where the span does not fit it.
    fn place(&self, span: Span) -> Option<SourceSpan> {
        let file = self.files.iter().find(|f| f.id == span.file)?;
        let start = (span.start as usize).min(file.text.len());
        let end = (span.end as usize).clamp(start, file.text.len());
        Some(SourceSpan::new((file.start + start).into(), end - start))
    }
}

/// Whether the lines of a place are short enough to be drawn.
pub(super) fn can_be_drawn(span: Span, sources: &SourceMap) -> bool {
    let text = sources.file(span.file).text.as_bytes();
    let (start, end) = (text.len().min(span.start as usize), text.len().min(span.end as usize));
    let before = text[..start].iter().rev().take_while(|b| **b != b'\n').count();
    let after = text[end.max(start)..].iter().take_while(|b| **b != b'\n').count();
    let inside = text[start..end.max(start)].split(|b| *b == b'\n').map(<[u8]>::len);
    before + after + inside.max().unwrap_or(0) <= LONGEST_LINE
}

/// The text with everything that could steer a terminal replaced, byte for byte.
fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let line_end = c == '\n' || (c == '\r' && characters.peek() == Some(&'\n'));
        let steers = c.is_control() && !line_end && c != '\t';
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if steers || turns {
            (0..c.len_utf8()).for_each(|_| clean.push('?'));
        } else {
            clean.push(c);
        }
    }
    clean
}

impl SourceCode for Excerpts {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let holds = |f: &&Excerpt| (f.start..=f.start + f.text.len()).contains(&span.offset());
        let file = self.files.iter().find(holds).ok_or(MietteError::OutOfBounds)?;
        let own = SourceSpan::new((span.offset() - file.start).into(), span.len());
        let contents = file.text.read_span(&own, before, after)?;
        let shown = *contents.span();
        let shown = SourceSpan::new((shown.offset() + file.start).into(), shown.len());
        Ok(Box::new(MietteSpanContents::new_named(
            file.name.clone(),
            contents.data(),
            shown,
            contents.line(),
            contents.column(),
            contents.line_count(),
        )))
    }
}

/// A diagnostic in miette's protocol.
pub(super) struct Shown<'a> {
    pub diagnostic: &'a Diagnostic,
    pub excerpts: &'a Excerpts,
    pub sources: &'a SourceMap,
}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Note => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.diagnostic.help.as_ref()?;
        Some(Box::new(folded(help, WIDTH - HELP)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.excerpts.files.is_empty()).then_some(self.excerpts as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.diagnostic.labels.iter().enumerate().filter_map(|(n, label)| {
            if !can_be_drawn(label.span, self.sources) {
                return None;
            }
            let place = self.excerpts.place(label.span)?;
            let text = Some(label.text.clone());
            // The first label is the cause.
            Some(match n {
                0 => LabeledSpan::new_primary_with_span(text, place),
                _ => LabeledSpan::new_with_span(text, place),
            })
        });
        Some(Box::new(labels))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&folded(&self.diagnostic.message, WIDTH - MESSAGE))
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Shown<'_> {}
