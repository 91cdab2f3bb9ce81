//! Snapshots: text that must come out as it did when somebody looked at it.

use crate::{Verdict, bless, text};
use std::path::Path;

/// Compares a text with a file, or rewrites the file with `MIRAS_BLESS=1`.
///
/// # Errors
/// The differences, with how to accept them.
pub fn hold(path: &Path, found: &str) -> Verdict {
    let expected = text(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    if bless() {
        return std::fs::write(path, found).map_err(|e| format!("{}: {e}", path.display()));
    }
    let shown = differences(&expected, found);
    Err(format!("{} differs (MIRAS_BLESS=1 accepts it):\n{shown}", path.display()))
}

/// The differences of two texts by line.
pub fn differences(expected: &str, found: &str) -> String {
    let diff = similar::TextDiff::from_lines(expected, found);
    diff.unified_diff().context_radius(2).header("expected", "found").to_string()
}
