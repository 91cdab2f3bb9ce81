//! The data of the rooms that have no printer of their own, as text to look at: one fact a line. Formulas are
//! cut where they are longer than [`MOST`] characters.

mod layer;
mod rule;

pub(crate) use layer::layer;
pub(crate) use rule::{plan, rule};

use miras_term::{PrintOptions, TermId, Terms, print_within};
use std::fmt::Write;

/// The longest formula that is shown whole.
const MOST: usize = 2000;

/// Lines with an indent.
#[derive(Default)]
struct Page {
    text: String,
    depth: usize,
}

impl Page {
    fn line(&mut self, line: impl AsRef<str>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:indent$}{}", "", line.as_ref(), indent = 2 * self.depth);
    }

    fn inside(&mut self, title: impl AsRef<str>, fill: impl FnOnce(&mut Page)) {
        self.line(title);
        self.depth += 1;
        fill(self);
        self.depth -= 1;
    }
}

fn formula(terms: &Terms, id: TermId) -> String {
    print_within(terms, id, &PrintOptions::default(), MOST)
}
