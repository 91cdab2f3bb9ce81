//! One self-contained page: no network, no script; MathML with its LaTeX beside it.

mod compare;
mod layer;

pub(crate) use compare::comparison;

use crate::document::{Document, Step};
use crate::math::{Formula, escape_markup as escape};

/// Documents as one HTML page; with several layers it begins with a table of contents.
pub fn html(documents: &[Document]) -> String {
    let names: Vec<&str> = documents.iter().map(|d| d.name.as_str()).collect();
    let mut body = String::new();
    if documents.len() > 1 {
        body += &contents(documents);
    }
    for (n, document) in documents.iter().enumerate() {
        body += &layer::layer(document, &format!("layer-{}", n + 1), documents.len() > 1);
    }
    page(&names.join(", "), &body)
}

/// A whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} - Miras</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n<footer><p>Written by \
         <code>miras explain</code>. Formulas are made from the terms that are compiled and run.</p></footer>\n</body>\n\
         </html>\n",
        escape(title),
        include_str!("style.css")
    )
}

fn contents(documents: &[Document]) -> String {
    let entries = documents.iter().enumerate().map(|(n, d)| {
        format!(
            "<li><a href=\"#layer-{}\">{}</a> <span>{}</span></li>\n",
            n + 1,
            escape(&d.name),
            escape(&d.class.title)
        )
    });
    format!(
        "<nav aria-label=\"Layers\">\n<h2>Layers</h2>\n<ul>\n{}</ul>\n</nav>\n",
        entries.collect::<String>()
    )
}

/// Formulas, each in a box that scrolls by itself, with their LaTeX folded below.
pub(crate) fn formulas(all: &[Formula]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let boxes: String = all.iter().map(boxed).collect();
    let latex: Vec<String> = all.iter().map(|f| escape(&f.latex())).collect();
    format!(
        "{boxes}<details class=\"tex\"><summary>LaTeX</summary><pre tabindex=\"0\">{}</pre></details>\n",
        latex.join("\n")
    )
}

fn boxed(f: &Formula) -> String {
    let remark = if f.remark.is_empty() {
        String::new()
    } else {
        format!("<p class=\"remark\">{}</p>", escape(&f.remark))
    };
    format!("<div class=\"formula\" tabindex=\"0\">{}</div>{remark}\n", f.mathml())
}

/// A step with its title one level below a section's.
pub(crate) fn step(step: &Step, level: usize) -> String {
    let from = if step.choice.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"choice\">{}</span>", step.choice)
    };
    format!(
        "<section class=\"step\">\n<h{level}>{}{from}</h{level}>\n{}{}</section>\n",
        escape(&step.title),
        formulas(&step.formulas),
        paragraph(&step.reason)
    )
}

/// A paragraph; nothing where there is nothing to say.
pub(crate) fn paragraph(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<p>{}</p>\n", escape(&crate::sentence(text))) }
}

/// A table whose rows stand under each other where the page is narrow.
pub(crate) fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let heads: String =
        head.iter().map(|h| format!("<th scope=\"col\" role=\"columnheader\">{h}</th>")).collect();
    let rows: String = rows
        .iter()
        .map(|cells| {
            let cells: String = cells
                .iter()
                .zip(head)
                .map(|(c, h)| format!("<td role=\"cell\" data-label=\"{h}\">{c}</td>"))
                .collect();
            format!("<tr role=\"row\">{cells}</tr>\n")
        })
        .collect();
    format!(
        "<table role=\"table\"><caption>{caption}</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">{heads}</tr></thead>\n\
         <tbody role=\"rowgroup\">\n{rows}</tbody></table>\n"
    )
}

/// Text as code.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<code>{}</code>", escape(text)) }
}
