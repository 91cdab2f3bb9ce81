//! The page of a comparison.

use super::{code, formulas, page};
use crate::compare::{Comparison, Row, Side};
use crate::math::escape_markup as escape;

/// Two layers side by side as one page.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let [a, b] = &comparison.names;
    let title = format!("{a} against {b}");
    let mut body = format!(
        "<article>\n<header>\n<h1>{}</h1>\n<p class=\"lead\">What both have in common is told once; in formulas \
         what the other has not got is marked.</p>\n</header>\n",
        escape(&title)
    );
    for r in &comparison.rows {
        body += &row(r, &comparison.names);
    }
    body += "</article>\n";
    page(&title, &body)
}

fn row(row: &Row, names: &[String; 2]) -> String {
    let mark = if row.equal {
        "<span class=\"mark same\">equal</span>"
    } else {
        "<span class=\"mark other\">differs</span>"
    };
    let sides = if row.equal {
        format!("<div class=\"side\">{}</div>", side(&row.both))
    } else {
        let both = names.iter().zip(&row.sides);
        both.map(|(n, s)| format!("<div class=\"side\"><h4>{}</h4>{}</div>\n", escape(n), side(s))).collect()
    };
    let title = escape(row.title);
    format!(
        "<section class=\"row\">\n<h3>{title} {mark}</h3>\n<div class=\"sides\">\n{sides}</div>\n</section>\n"
    )
}

fn side(side: &Side) -> String {
    if side.text.is_empty() && side.formulas.is_empty() {
        return "<p>none</p>".into();
    }
    let text: String = side.text.iter().map(|t| format!("<div>{}</div>\n", code(t))).collect();
    text + &formulas(&side.formulas)
}
