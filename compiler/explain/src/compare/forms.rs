//! A comparison as text, HTML, LaTeX and JSON.

use super::{Comparison, Row, Side};
use crate::json::{formula, pretty};
use crate::math::{CLOSE, Math, OPEN};
use crate::text::COLUMNS;
use crate::wrap::{wrap, wrap_formula};
use crate::{JSON_VERSION, html, latex};
use serde_json::{Value, json};

impl Comparison {
    /// As text of at most 100 columns: equal rows once, differing ones for each layer, with `~` under what differs.
    pub fn text(&self) -> String {
        let title = format!("{} against {}", self.names[0], self.names[1]);
        let mut lines = vec![title.clone(), "=".repeat(title.chars().count())];
        let longest = self.names.iter().map(|n| n.chars().count()).max().unwrap_or(0).min(24);
        for row in &self.rows {
            lines.push(String::new());
            lines.push(format!("{} {}", if row.equal { "=" } else { "!" }, row.title));
            if row.equal {
                side(&row.both, "      ", &mut lines);
                continue;
            }
            for (name, told) in self.names.iter().zip(&row.sides) {
                side(told, &format!("    {name:<longest$}  "), &mut lines);
            }
        }
        lines.push(String::new());
        lines.push("= is equal, ! differs; ~ stands under what the other has not got.".into());
        lines.join("\n") + "\n"
    }

    /// As one HTML page.
    pub fn html(&self) -> String {
        html::comparison(self)
    }

    /// As one LaTeX document.
    pub fn latex(&self) -> String {
        latex::comparison(self)
    }

    /// As one JSON object, indented.
    pub fn json(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row(row)).collect();
        pretty(&json!({ "version": JSON_VERSION, "layers": self.names, "rows": rows }))
    }

    fn row(&self, row: &Row) -> Value {
        let sides: Vec<Value> = row.sides.iter().map(told).collect();
        json!({ "title": row.title, "equal": row.equal, "sides": sides })
    }
}

fn told(side: &Side) -> Value {
    let formulas: Vec<Value> = (side.formulas.iter())
        .map(|f| {
            let (left, right) = (f.left.clone().unmarked(), f.right.clone().unmarked());
            let plain = crate::math::Formula { left, right, ..f.clone() };
            let mut value = formula(&plain);
            value["differing"] = differing(&f.right).into();
            value
        })
        .collect();
    json!({ "text": side.text, "formulas": formulas })
}

/// The marked summands as text.
fn differing(math: &Math) -> Vec<String> {
    let marked = |m: &Math| match m {
        Math::Marked(inner) => Some(inner.text()),
        _ => None,
    };
    math.summands().iter().filter_map(|(_, part)| marked(part)).collect()
}

fn side(side: &Side, indent: &str, lines: &mut Vec<String>) {
    let rest = " ".repeat(indent.chars().count());
    let mut indent = indent.to_string();
    if side.text.is_empty() && side.formulas.is_empty() {
        lines.push(format!("{indent}(none)"));
    }
    for text in &side.text {
        lines.extend(wrap(&indent, &format!("{rest}  "), text, COLUMNS));
        indent.clone_from(&rest);
    }
    for f in &side.formulas {
        let first = format!("{indent}{} = ", f.left.text());
        let mut open = false;
        for line in wrap_formula(&first, &format!("{rest}    "), &f.right.text(), COLUMNS) {
            underlined(&line, &mut open, lines);
        }
        indent.clone_from(&rest);
    }
}

/// A line without its marks, and a line of `~` below where it had some. A mark may run over several lines.
fn underlined(line: &str, open: &mut bool, lines: &mut Vec<String>) {
    let (mut shown, mut below) = (String::new(), String::new());
    let margin = line.chars().take_while(|c| *c == ' ').count();
    for c in line.chars() {
        match c {
            OPEN => *open = true,
            CLOSE => *open = false,
            c => {
                below.push(if *open && shown.chars().count() >= margin { '~' } else { ' ' });
                shown.push(c);
            }
        }
    }
    lines.push(shown);
    if below.contains('~') {
        lines.push(below.trim_end().to_string());
    }
}
