//! Lines of at most so many columns.

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

fn width(text: &str) -> usize {
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
    fn columns_line_up() {
        let rows = [vec!["a".into(), "bb".into()], vec!["ccc".to_string(), "d".into()]];
        assert_eq!(table("  ", &rows, 40), ["  a    bb", "  ccc  d"]);
    }
}
