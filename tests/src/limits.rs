//! What backends cannot do yet: one row for each such thing in `limits.txt`.
//!
//! A row is five columns: backend, part (`forward` or `gradient`), a pattern for cases, the code of the diagnostic
//! that must appear, and why. A case that a row speaks of must fail with exactly that code; when it passes
//! instead, the row has to go.

use crate::{folder, glob, text};

/// One row.
#[derive(Clone, Debug)]
pub struct Limit {
    backend: String,
    part: String,
    cases: String,
    /// The code that must appear.
    pub code: String,
    /// The row as it stands in the table.
    pub row: String,
}

/// The table.
///
/// # Errors
/// A row that is none.
pub fn table() -> Result<Vec<Limit>, String> {
    let lines = text(&folder().join("limits.txt"))?;
    lines.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(limit).collect()
}

fn limit(line: &str) -> Result<Limit, String> {
    let mut words = line.split_whitespace().map(String::from);
    let mut next = || words.next().ok_or_else(|| format!("limits.txt: a row lacks columns: {line}"));
    let limit =
        Limit { backend: next()?, part: next()?, cases: next()?, code: next()?, row: line.to_string() };
    next().map_err(|_| format!("limits.txt: a row does not say why: {line}"))?;
    Ok(limit)
}

impl Limit {
    /// Whether the row speaks of this backend, part and case.
    pub fn speaks_of(&self, backend: &str, part: &str, case: &str) -> bool {
        self.backend == backend && self.part == part && glob::fits(&self.cases, case)
    }
}
