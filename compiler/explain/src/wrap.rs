//! Lines of at most so many columns.

use crate::math::{CLOSE, OPEN};

/// Breaks text at spaces: the first line after `first`, the others after `rest`.
pub(crate) fn wrap(first: &str, rest: &str, text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::replace(&mut line, rest.to_string()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.iter().map(|l| l.trim_end().to_string()).collect()
}

/// Breaks a formula before its operators and after its commas, the outermost ones first. Marks take no room.
///
/// A line that has no such place is broken at a space, and one without a space where it is full.
pub(crate) fn wrap_formula(first: &str, rest: &str, text: &str, columns: usize) -> Vec<String> {
    let mut left: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    let mut start = first;
    loop {
        let room = columns.saturating_sub(width(start)).max(8);
        if shown(&left) <= room {
            lines.push(format!("{start}{}", left.iter().collect::<String>()));
            return lines;
        }
        let (at, next) = place(&left, room);
        lines.push(format!("{start}{}", left[..at].iter().collect::<String>()).trim_end().to_string());
        left.drain(..next);
        start = rest;
    }
}

/// Where a line of at most `room` columns ends and the next one begins.
fn place(text: &[char], room: usize) -> (usize, usize) {
    let (mut depth, mut column) = (0usize, 0usize);
    let mut best: Option<(usize, usize)> = None;
    let mut space = None;
    let mut full = text.len();
    for (n, c) in text.iter().enumerate() {
        if column >= room && !matches!(*c, OPEN | CLOSE | ' ') {
            full = n;
            break;
        }
        match *c {
            OPEN | CLOSE => continue,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if n > 0 => {
                space = Some(n);
                let late = column * 5 >= room * 2;
                if late && breaks(text, n) && best.is_none_or(|(least, _)| depth <= least) {
                    best = Some((depth, n));
                }
            }
            _ => {}
        }
        column += 1;
    }
    match best.map(|(_, n)| n).or(space) {
        Some(n) => (n, n + 1),
        None => (full.max(1), full.max(1)),
    }
}

/// Whether a space stands before an operator or after a comma.
fn breaks(text: &[char], n: usize) -> bool {
    let after: String = text[n + 1..].iter().filter(|c| **c != OPEN).take(5).collect();
    let operator = ["+ ", "- ", "* ", "/ ", "@ ", "= ", "else "].iter().any(|o| after.starts_with(o));
    operator || text[..n].iter().rev().find(|c| **c != CLOSE) == Some(&',')
}

/// Columns that a text takes.
fn shown(text: &[char]) -> usize {
    text.iter().filter(|c| !matches!(**c, OPEN | CLOSE)).count()
}

pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Rows of cells, padded to the widest of each column; the last column is wrapped.
pub(crate) fn table(indent: &str, rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| width(t)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count.saturating_sub(1)).map(widest).collect();
    let mut lines = Vec::new();
    for row in rows {
        let mut start = indent.to_string();
        for (cell, width) in row.iter().zip(&widths) {
            start.push_str(&format!("{cell:<width$}  "));
        }
        let last = if row.len() == count { row.last().map_or("", String::as_str) } else { "" };
        let blank = " ".repeat(width(&start));
        lines.extend(wrap(&start, &blank, last, columns));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_their_columns() {
        let text = "one two three four five six seven eight nine ten";
        let lines = wrap("> ", "  ", text, 16);
        assert!(lines.iter().all(|l| l.chars().count() <= 16), "{lines:?}");
        let joined: Vec<&str> =
            lines.iter().flat_map(|l| l.trim_start_matches("> ").split_whitespace()).collect();
        assert_eq!(joined.join(" "), text);
    }

    #[test]
    fn formulas_break_at_their_outermost_operators() {
        let text = "alpha * (one + two * three) + beta * (four + five)";
        let lines = wrap_formula("x = ", "    ", text, 36);
        assert_eq!(lines, ["x = alpha * (one + two * three)", "    + beta * (four + five)"]);
        let narrow = wrap_formula("", "  ", "abcdefghijklmnopqrstuvw", 10);
        assert!(narrow.iter().all(|l| l.chars().count() <= 10), "{narrow:?}");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".into(), "bb".into()], vec!["ccc".to_string(), "d".into()]];
        assert_eq!(table("  ", &rows, 40), ["  a    bb", "  ccc  d"]);
    }
}
