//! A LaTeX document for a plain article class with amsmath.

use crate::document::{Document, Part, Step};
use crate::math::{Formula, escape_latex as escape};
use std::fmt::Write;

/// Documents as one LaTeX document. The formulas need amsmath and amssymb.
pub fn latex(documents: &[Document]) -> String {
    let mut out = String::from(
        "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage[margin=2cm]{geometry}\n\\usepackage{amsmath,amssymb}\n\\allowdisplaybreaks\n\
         \\setlength{\\emergencystretch}{3em}\n\\begin{document}\n",
    );
    for document in documents {
        layer(document, &mut out);
    }
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
    steps(&document.steps, out);
    let _ = writeln!(out, "\\subsection*{{Class}}\n{}.", escape(document.class.title));
    prose(&document.class.reason, out);
    let _ = writeln!(out, "\\subsection*{{Schedule}}\n{}.", escape(&document.schedule.title));
    prose(&document.schedule.certificate, out);
    part("A chunk in parallel form", &document.chunk, out);
    part("Outer gradients", &document.backward.part, out);
    for line in &document.backward.stopped {
        prose(line, out);
    }
    prose(&document.memory.text, out);
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
