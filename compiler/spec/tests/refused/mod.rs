//! The table of what is refused, by kind of mistake.

mod names;
mod places;
mod shapes;

/// Code, program, a text of the first label's place, a text of the message or help.
pub type Row = (&'static str, &'static str, &'static str, &'static str);

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [names::ROWS, places::ROWS, shapes::ROWS].into_iter().flatten()
}
