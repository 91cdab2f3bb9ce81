//! A LaTeX document for a plain article class with amsmath.

mod math;

use crate::facts;
use crate::formula;
use crate::text::class_name;
use math::{left_side, math};
use miras_schedule::Plan;
use std::fmt::Write;

/// A plan as a whole LaTeX document.
pub fn latex(plan: &Plan) -> String {
    let mut out =
        String::from("\\documentclass{article}\n\\usepackage{amsmath,amssymb}\n\\begin{document}\n");
    let layer = &plan.rule.layer;
    let _ = writeln!(out, "\\section*{{{}}}", escape(&layer.name));
    out.push_str("\\begin{description}\n");
    for choice in &layer.choices {
        let _ = writeln!(out, "\\item[{}] \\texttt{{{}}}", choice.clause, escape(&choice.text));
    }
    out.push_str("\\end{description}\n");
    for step in &plan.rule.derivation.steps {
        let _ = writeln!(out, "\\subsection*{{{}}}", escape(&step.title));
        for equation in &step.equations {
            let mut names = formula::names(&plan.rule);
            if names.get(&equation.right) == Some(&equation.left) {
                names.remove(&equation.right);
            }
            let right = math(plan.rule.terms(), equation.right, &names);
            let _ = writeln!(out, "\\[ {} = {right} \\]", left_side(&equation.left));
        }
        let _ = writeln!(out, "{}.", escape(step.justification.trim_end_matches('.')));
    }
    let _ = writeln!(
        out,
        "\\subsection*{{Class}}\n{}: {}",
        class_name(plan.rule.class.kind),
        escape(&plan.rule.class.reason)
    );
    let _ = writeln!(
        out,
        "\\subsection*{{Schedule}}\n{}. {}.",
        escape(&facts::schedule(plan)),
        escape(&plan.certificate)
    );
    if !plan.rule.derivation.notes.is_empty() {
        out.push_str("\\subsection*{Notes}\n\\begin{itemize}\n");
        for note in &plan.rule.derivation.notes {
            let _ = writeln!(out, "\\item {}", escape(note));
        }
        out.push_str("\\end{itemize}\n");
    }
    out.push_str("\\end{document}\n");
    out
}

/// Text with the characters that LaTeX gives a meaning taken literally.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}
