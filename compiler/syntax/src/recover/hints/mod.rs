//! Slips that are known: what was likely meant, and how to write it.
//!
//! An ordered list of small functions, the first that recognises a mistake tells of it.

mod heads;
mod marks;
mod values;

use super::message::Mistake;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;

/// The first hint that fits.
pub fn known(mistake: &Mistake<'_>) -> Option<Diagnostic> {
    const HINTS: &[fn(&Mistake<'_>) -> Option<Diagnostic>] = &[
        marks::stray,
        heads::empty_statement,
        heads::reserved_construct,
        heads::misplaced_item,
        heads::unknown_keyword,
        heads::unquoted_path,
        heads::clause_without_colon,
        marks::foreign_operator,
        marks::number_and_name,
        marks::unfinished_number,
        values::assignment_as_comparison,
        heads::shape_without_brackets,
        values::branches,
        values::inner_if,
        heads::reserved_name,
        heads::let_with_kind,
        marks::quoted_text,
        values::block_without_value,
        heads::not_a_range,
        heads::comma_after_clause,
        heads::forgotten_semicolon,
        values::side_by_side,
        heads::comma_missing,
    ];
    HINTS.iter().find_map(|hint| hint(mistake))
}

fn syntax(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code::SYNTAX, message)
}
