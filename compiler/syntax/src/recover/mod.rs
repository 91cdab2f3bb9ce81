//! What to say about a file that does not follow the grammar.

use crate::build::{Built, Source, Top};
use crate::grammar::Rule;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use pest::error::{Error, ErrorVariant, InputLocation};

pub fn recover(source: Source<'_>, error: &Error<Rule>) -> Built<Vec<Top>> {
    Built {
        tree: Vec::new(),
        problems: vec![explain(source, error)],
    }
}
pub fn explain(source: Source<'_>, error: &Error<Rule>) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(p) => p,
        InputLocation::Span((p, _)) => p,
    };
    let v = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => format!("{positives:?}"),
        ErrorVariant::CustomError { message } => message.clone(),
    };
    Diagnostic::new(code::SYNTAX, v).at(base::Span::new(source.file, at, at), "here")
}
