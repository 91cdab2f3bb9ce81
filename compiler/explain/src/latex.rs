//! A LaTeX document for a plain article class with amsmath.

use crate::compare::{Comparison, Side};
use crate::document::{Document, Part, Step};
use crate::math::{Formula, escape_latex as escape};
use std::fmt::Write;

/// Documents as one LaTeX document. The formulas need amsmath and amssymb.
pub fn latex(documents: &[Document]) -> String {
    whole(|out| documents.iter().for_each(|document| layer(document, out)))
}

/// Two layers side by side: what both say once, else what each says.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    whole(|out| {
        let [a, b] = &comparison.names;
        let _ = writeln!(out, "\\section*{{{}}}", escape(&format!("{a} against {b}")));
        prose(
            "What both have in common is told once; in formulas what the other has not got is framed.",
            out,
        );
        for row in &comparison.rows {
            let _ = writeln!(out, "\\subsection*{{{}}}", escape(row.title));
            if row.equal {
                side(&row.both, out);
                continue;
            }
            for (name, told) in comparison.names.iter().zip(&row.sides) {
                let _ = writeln!(out, "\\paragraph{{{}}}", escape(name));
                side(told, out);
            }
        }
    })
}

fn side(side: &Side, out: &mut String) {
    if side.text.is_empty() && side.formulas.is_empty() {
        out.push_str("none\n\n");
    }
    for line in &side.text {
        let _ = writeln!(out, "{}\n", code(line));
    }
    for f in &side.formulas {
        formula(f, out);
    }
}

/// A whole document with this body.
fn whole(body: impl FnOnce(&mut String)) -> String {
    let mut out = String::from(
        "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage[margin=2cm]{geometry}\n\\usepackage{amsmath,amssymb}\n\\allowdisplaybreaks\n\
         \\setlength{\\emergencystretch}{3em}\n\\begin{document}\n",
    );
    body(&mut out);
    out.push_str("\\end{document}\n");
    out
}

// Writing to a string cannot fail.
fn layer(document: &Document, out: &mut String) {
    let _ = writeln!(out, "\\section*{{{}}}", escape(&document.name));
    prose(&document.about, out);
    out.push_str("\\begin{description}\n");
    for choice in &document.choices {
        let _ = writeln!(out, "\\item[{}] \\texttt{{{}}}", choice.clause, escape(&choice.text));
    }
    out.push_str("\\end{description}\n");
    let needed = document.needed.iter().map(|n| [code(&n.tensor), code(&n.shape), escape(&n.words())]);
    table("What the data supplies", &["Tensor", "Shape", "Values"], needed, out);
    out.push_str("\\section*{Derivation}\n");
    steps(&document.steps, out);
    let _ = writeln!(out, "\\subsection*{{Class}}\n{}.", escape(&document.class.title));
    prose(&document.class.reason, out);
    let _ = writeln!(out, "\\subsection*{{Schedule}}\n{}.", escape(&document.schedule.title));
    prose(&document.schedule.certificate, out);
    part("A chunk in parallel form", &document.chunk, out);
    part("Outer gradients", &document.backward.part, out);
    for line in &document.backward.stopped {
        prose(line, out);
    }
    let reaches =
        document.backward.reaches.iter().map(|r| [code(&format!("d.{}", r.tensor)), escape(&r.words())]);
    table("What every input's gradient comes through", &["Gradient", "Path"], reaches, out);
    let state = document.state.iter().map(|c| [code(&c.tensor), code(&c.shape), escape(&c.what)]);
    table("State of one stream and head", &["Tensor", "Shape", "What it is"], state, out);
    let cost = document.cost.iter().map(|c| [c.what.to_string(), escape(&c.forward), escape(&c.backward)]);
    table("Operations per token and head", &["Kind", "Forward", "Backward"], cost, out);
    prose(&document.cost_remark, out);
    if let Some(counted) = &document.counted {
        prose(&counted.text(), out);
    }
    prose(&document.memory.text, out);
    if let Some(measured) = &document.measured {
        let errors = measured.errors.iter().map(|(c, e)| [c.to_string(), format!("{e:.3e}")]);
        table("Chunks against the recurrence", &["Tokens in a chunk", "Relative error of o"], errors, out);
        prose(&measured.on, out);
    }
    if !document.forms.is_empty() {
        out.push_str("\\section*{The same rule in other forms}\n");
        steps(&document.forms, out);
    }
    notes(document, out);
}

fn prose(text: &str, out: &mut String) {
    if !text.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&crate::sentence(text)));
    }
}

/// Text as code, which may break at dots and commas.
fn code(text: &str) -> String {
    format!("\\texttt{{{}}}", escape(text).replace('.', ".\\allowbreak{}").replace(", ", ", \\allowbreak{}"))
}

/// A table whose columns share the line.
fn table<const N: usize>(
    title: &str,
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    out: &mut String,
) {
    let column = format!("p{{{:.2}\\linewidth}}", 0.92 / N as f64);
    let _ = writeln!(out, "\\subsection*{{{}}}", escape(title));
    let _ = writeln!(out, "\\noindent\\begin{{tabular}}{{@{{}}{}@{{}}}}", column.repeat(N));
    let _ = writeln!(out, "{} \\\\ \\hline", head.join(" & "));
    for row in rows {
        let _ = writeln!(out, "{} \\\\", row.join(" & "));
    }
    out.push_str("\\end{tabular}\n\n");
}

fn part(title: &str, part: &Part, out: &mut String) {
    let _ = writeln!(out, "\\section*{{{}}}", escape(title));
    prose(&part.summary, out);
    steps(&part.steps, out);
}

fn steps(steps: &[Step], out: &mut String) {
    for step in steps {
        let _ = writeln!(out, "\\subsection*{{{}}}", escape(&step.title));
        for f in &step.formulas {
            formula(f, out);
        }
        prose(&step.reason, out);
    }
}

fn formula(f: &Formula, out: &mut String) {
    let remark = if f.remark.is_empty() {
        String::new()
    } else {
        format!(" \\qquad\\text{{({})}}", escape(&f.remark))
    };
    let _ = writeln!(out, "\\[ {}{remark} \\]", f.latex());
}

fn notes(document: &Document, out: &mut String) {
    if document.notes.is_empty() {
        return;
    }
    out.push_str("\\subsection*{Notes}\n\\begin{itemize}\n");
    for note in &document.notes {
        let code = note.code.as_ref().map_or_else(String::new, |c| format!("{c}: "));
        let _ = writeln!(out, "\\item {}", escape(&format!("{code}{}", note.text)));
    }
    out.push_str("\\end{itemize}\n");
}
