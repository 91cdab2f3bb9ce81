//! Diagnostics as JSON.

use base::diagnostic::{Label, entry};
use base::{Diagnostic, Fault, Severity, SourceMap};
use miras_base as base;
use serde_json::{Value, json as object};

/// A diagnostic as one line: `code`, `severity`, `fault`, `message`, `labels` (with bytes from 0 and line and
/// column from 1), `help` (or null), `notes`.
pub(crate) fn json(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let fault = entry(diagnostic.code).map(|e| match e.fault {
        Fault::Program => "program",
        Fault::Limit => "limit",
        Fault::Bug => "bug",
    });
    let labels: Vec<Value> = diagnostic.labels.iter().map(|l| label(l, sources)).collect();
    let value = object!({
        "code": diagnostic.code.0,
        "severity": severity,
        "fault": fault,
        "message": diagnostic.message,
        "labels": labels,
        "help": diagnostic.help,
        "notes": diagnostic.notes,
    });
    format!("{value}\n")
}

fn label(label: &Label, sources: &SourceMap) -> Value {
    let (line, column) = sources.line_column(label.span);
    object!({
        "file": &*sources.file(label.span.file).name,
        "start": label.span.start,
        "end": label.span.end,
        "line": line,
        "column": column,
        "text": label.text,
    })
}
