//! Plain text for a terminal of 100 columns.

use crate::document::{Backward, Document, Measured, Part, Step};
use crate::math::Formula;
use crate::wrap::{table, width, wrap, wrap_formula};

/// Columns of the page.
pub(crate) const COLUMNS: usize = 100;

/// A document as text, lines of at most 100 columns.
pub fn text(document: &Document) -> String {
    let mut page = Page { lines: Vec::new() };
    page.heading(document);
    page.choices(document);
    page.data(document);
    page.section("Derivation");
    page.steps(&document.steps, true);
    page.section("Class");
    page.lines.push(format!("  {}", document.class.title));
    page.prose("  ", &document.class.reason);
    page.section("Schedule");
    page.lines.push(format!("  {}", document.schedule.title));
    page.prose("  ", &document.schedule.certificate);
    page.part("A chunk in parallel form", &document.chunk);
    page.backward(&document.backward);
    page.state_and_cost(document);
    if !document.forms.is_empty() {
        page.section("The same rule in other forms");
        page.steps(&document.forms, false);
    }
    page.notes(document);
    if let Some(measured) = &document.measured {
        page.measured(measured);
    }
    page.lines.join("\n") + "\n"
}

struct Page {
    lines: Vec<String>,
}

impl Page {
    fn heading(&mut self, document: &Document) {
        self.lines.push(document.name.clone());
        self.lines.push("=".repeat(document.name.chars().count()));
        if !document.about.is_empty() {
            self.prose("", &document.about);
        }
    }

    fn section(&mut self, title: &str) {
        self.lines.push(String::new());
        self.lines.push(title.into());
        self.lines.push("-".repeat(title.chars().count()));
    }

    fn prose(&mut self, indent: &str, text: &str) {
        if !text.is_empty() {
            self.lines.extend(wrap(indent, indent, text, COLUMNS));
        }
    }

    fn choices(&mut self, document: &Document) {
        self.section("The four choices");
        for choice in &document.choices {
            let first = format!("  {:<10} ", choice.clause);
            self.lines.extend(wrap(&first, &" ".repeat(13), &choice.text, COLUMNS));
            for f in &choice.contributes {
                self.formula(&" ".repeat(15), f);
            }
            self.prose(&" ".repeat(15), &choice.about);
        }
    }

    fn data(&mut self, document: &Document) {
        self.section("What the data supplies");
        let rows: Vec<Vec<String>> = (document.needed.iter())
            .map(|n| vec![n.tensor.clone(), n.shape.clone(), n.words(), n.asked_by.clone()])
            .collect();
        self.lines.extend(table("  ", &rows, COLUMNS));
        for size in &document.sizes {
            self.lines.extend(wrap("  ", "    ", size, COLUMNS));
        }
    }

    fn formula(&mut self, indent: &str, f: &Formula) {
        let start = format!("{indent}{} = ", f.left.text());
        let rest = format!("{indent}    ");
        self.lines.extend(wrap_formula(&start, &rest, &f.right.text(), COLUMNS));
        let remark = if f.remark.is_empty() { String::new() } else { format!("   ({})", f.remark) };
        match self.lines.last_mut() {
            Some(last) if width(last) + width(&remark) <= COLUMNS => last.push_str(&remark),
            _ => self.prose(&rest, remark.trim_start()),
        }
    }

    fn steps(&mut self, steps: &[Step], numbered: bool) {
        for (number, step) in steps.iter().enumerate() {
            if number > 0 {
                self.lines.push(String::new());
            }
            let number = if numbered { format!("{}. ", number + 1) } else { String::new() };
            let from = if step.choice.is_empty() || !numbered {
                String::new()
            } else {
                format!("  [{}]", step.choice)
            };
            self.lines.push(format!("  {number}{}{from}", step.title));
            for f in &step.formulas {
                self.formula("       ", f);
            }
            self.prose("     ", &step.reason);
        }
    }

    fn part(&mut self, title: &str, part: &Part) {
        self.section(title);
        self.prose("  ", &part.summary);
        if !part.steps.is_empty() {
            self.lines.push(String::new());
        }
        self.steps(&part.steps, false);
    }

    fn backward(&mut self, backward: &Backward) {
        self.part("Outer gradients", &backward.part);
        self.lines.push(String::new());
        for line in &backward.stopped {
            self.prose("  ", line);
        }
        let rows: Vec<Vec<String>> =
            (backward.reaches.iter()).map(|r| vec![format!("d.{}", r.tensor), r.words()]).collect();
        self.lines.extend(table("  ", &rows, COLUMNS));
    }

    fn state_and_cost(&mut self, document: &Document) {
        self.section("State of one stream and head");
        let rows: Vec<Vec<String>> = (document.state.iter())
            .map(|c| vec![c.tensor.clone(), c.shape.clone(), c.entries.clone(), c.what.clone()])
            .collect();
        self.lines.extend(table("  ", &rows, COLUMNS));
        self.section("Operations per token and head");
        let mut rows = Vec::new();
        for c in &document.cost {
            rows.push(vec![format!("{}, forward", c.what), at_64(&c.forward, c.forward_at_64)]);
            rows.push(vec![format!("{}, backward", c.what), at_64(&c.backward, c.backward_at_64)]);
        }
        self.lines.extend(table("  ", &rows, COLUMNS));
        self.prose("  ", &document.cost_remark);
        if let Some(counted) = &document.counted {
            self.prose("  ", &counted.text());
        }
        self.prose("  ", &document.memory.text);
    }

    fn notes(&mut self, document: &Document) {
        if document.notes.is_empty() {
            return;
        }
        self.section("Notes");
        for note in &document.notes {
            let code = note.code.as_ref().map_or_else(String::new, |c| format!("{c}: "));
            let help = note.help.as_ref().map_or_else(String::new, |h| format!(" ({h})"));
            self.lines.extend(wrap("  - ", "    ", &format!("{code}{}{help}", note.text), COLUMNS));
        }
    }

    fn measured(&mut self, measured: &Measured) {
        self.section("Measured: chunks against the recurrence");
        self.prose("  ", &measured.on);
        let rows: Vec<Vec<String>> = (measured.errors.iter())
            .map(|(c, error)| vec![format!("chunk {c}"), format!("{error:.3e}")])
            .collect();
        self.lines.extend(table("  ", &rows, COLUMNS));
    }
}

/// A count, with its value at a size that users know.
fn at_64(formula: &str, value: Option<u64>) -> String {
    match value {
        Some(n) => format!("{formula}  ({n} at dk = dv = 64)"),
        None => formula.into(),
    }
}
