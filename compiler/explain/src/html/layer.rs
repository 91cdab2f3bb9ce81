//! A layer's part of the page.

use super::{code, formulas, paragraph, step, table};
use crate::document::{Choice, Document, Measured, Note, Part};
use crate::math::escape_markup as escape;

/// How the signs of products are read.
const LEGEND: &str = "<p class=\"remark\">⊙ is a product entry by entry, ⊗ an outer product, ⟨ , ⟩ an inner product. A product \
                      without a sign is a matrix product or one with a scalar, and binds tightest. Where a vector meets a \
                      matrix, row(x) and col(x) say along which axis.</p>\n";

/// An article about one layer. Its sections' names begin with `id`.
pub(super) fn layer(document: &Document, id: &str, several: bool) -> String {
    let sections = sections(document);
    let mut out = format!("<article id=\"{id}\">\n<header>\n<h1>{}</h1>\n", escape(&document.name));
    if !document.about.is_empty() {
        out += &format!("<p class=\"lead\">{}</p>\n", escape(&document.about));
    }
    out += &badges(document);
    out += "</header>\n";
    out += &format!("<div class=\"closed\">\n<h2>The rule</h2>\n{}</div>\n", formulas(&document.closed));
    out += &contents(&sections, id, several);
    for (n, (title, body)) in sections.iter().enumerate() {
        out += &format!("<section id=\"{id}-{}\">\n<h2>{title}</h2>\n{body}</section>\n", n + 1);
    }
    out + "</article>\n"
}

fn badges(document: &Document) -> String {
    let exact = match document.schedule.exact {
        Some(false) => " class=\"approximate\"",
        Some(true) | None => "",
    };
    format!(
        "<ul class=\"badges\"><li>{}</li><li{exact}>{}</li></ul>\n",
        escape(&document.class.title),
        escape(&document.schedule.title)
    )
}

fn contents(sections: &[(&'static str, String)], id: &str, several: bool) -> String {
    let entries: String = (sections.iter().enumerate())
        .map(|(n, (title, _))| format!("<li><a href=\"#{id}-{}\">{title}</a></li>\n", n + 1))
        .collect();
    let label = if several { format!("Contents of {id}") } else { "Contents".into() };
    format!("<nav aria-label=\"{label}\">\n<ol>\n{entries}</ol>\n</nav>\n")
}

fn sections(document: &Document) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("The layer as it is written", source(document)),
        ("The four choices", choices(&document.choices)),
        ("What the data supplies", data(document)),
        ("The derivation", derivation(document)),
        ("Class and certificate", class(document)),
        ("A chunk in parallel form", part(&document.chunk)),
        ("Outer gradients", backward(document)),
        ("State and cost", state_and_cost(document)),
    ];
    if let Some(measured) = &document.measured {
        all.push(("Chunks against the recurrence, measured", measurement(measured)));
    }
    if !document.forms.is_empty() {
        let forms = document.forms.iter().map(|s| step(s, 3)).collect();
        all.push(("The same rule in other forms", forms));
    }
    if !document.notes.is_empty() {
        all.push((
            "Notes",
            format!("<ul class=\"notes\">\n{}</ul>\n", document.notes.iter().map(note).collect::<String>()),
        ));
    }
    all
}

fn source(document: &Document) -> String {
    if document.source.is_empty() {
        return paragraph("There is no source text.");
    }
    format!(
        "<pre class=\"source\" tabindex=\"0\"><code>{}</code></pre>\n",
        escape(document.source.trim_end())
    )
}

fn choices(choices: &[Choice]) -> String {
    let told: String = choices
        .iter()
        .map(|c| {
            format!(
                "<section class=\"chosen\">\n<h3><span class=\"choice\">{}</span> <code>{}</code></h3>\n{}{}</section>\n",
                c.clause,
                escape(&c.text),
                paragraph(&c.about),
                formulas(&c.contributes)
            )
        })
        .collect();
    format!("<div class=\"choices\">\n{told}</div>\n")
}

fn data(document: &Document) -> String {
    let rows: Vec<Vec<String>> = (document.needed.iter())
        .map(|n| vec![code(&n.tensor), code(&n.shape), escape(&n.words()), code(&n.asked_by)])
        .collect();
    let sizes: String = document.sizes.iter().map(|s| format!("<li>{}</li>\n", code(s))).collect();
    let sizes = if sizes.is_empty() { sizes } else { format!("<ul>\n{sizes}</ul>\n") };
    table("Tensors by name", &["Tensor", "Shape", "Values", "Asked for by"], &rows) + &sizes
}

fn derivation(document: &Document) -> String {
    let steps: String = document.steps.iter().map(|s| format!("<li>{}</li>\n", step(s, 3))).collect();
    format!("{LEGEND}<ol class=\"derivation\">\n{steps}</ol>\n")
}

fn class(document: &Document) -> String {
    format!(
        "<p><strong>{}.</strong> {}</p>\n<p><strong>{}.</strong> {}</p>\n",
        escape(&document.class.title),
        escape(&crate::sentence(&document.class.reason)),
        escape(&document.schedule.title),
        escape(&crate::sentence(&document.schedule.certificate))
    )
}

fn part(part: &Part) -> String {
    let steps: String = part.steps.iter().map(|s| step(s, 3)).collect();
    paragraph(&part.summary) + &steps
}

fn backward(document: &Document) -> String {
    let backward = &document.backward;
    let stopped: String = backward.stopped.iter().map(|s| format!("<li>{}</li>\n", escape(s))).collect();
    let rows: Vec<Vec<String>> =
        backward.reaches.iter().map(|r| vec![code(&format!("d.{}", r.tensor)), escape(&r.words())]).collect();
    format!(
        "{}<ul>\n{stopped}</ul>\n{}",
        part(&backward.part),
        table("What every input's gradient comes through", &["Gradient", "Path"], &rows)
    )
}

fn state_and_cost(document: &Document) -> String {
    let state: Vec<Vec<String>> = (document.state.iter())
        .map(|c| vec![code(&c.tensor), code(&c.shape), escape(&c.entries), escape(&c.what)])
        .collect();
    let count = |formula: &str, value: Option<u64>| {
        let value = value.map_or_else(String::new, |n| format!("<br><small>{n} at dk = dv = 64</small>"));
        format!("{}{value}", escape(formula))
    };
    let cost: Vec<Vec<String>> = (document.cost.iter())
        .map(|c| {
            vec![c.what.to_string(), count(&c.forward, c.forward_at_64), count(&c.backward, c.backward_at_64)]
        })
        .collect();
    table("State of one stream and head", &["Tensor", "Shape", "Entries", "What it is"], &state)
        + &table("Operations per token and head", &["Kind", "Forward", "Backward"], &cost)
        + &paragraph(&document.cost_remark)
        + &document.counted.as_ref().map_or_else(String::new, |c| paragraph(&c.text()))
        + &paragraph(&document.memory.text)
}

fn measurement(measured: &Measured) -> String {
    let rows: Vec<Vec<String>> =
        measured.errors.iter().map(|(c, e)| vec![c.to_string(), format!("{e:.3e}")]).collect();
    format!(
        "{}<figure>{}<figcaption>The largest difference of <code>o</code>, relative to its largest entry.</figcaption></figure>\n{}",
        paragraph(&measured.on),
        measured.chart().svg(),
        table("The same in numbers", &["Tokens in a chunk", "Relative error of o"], &rows)
    )
}

fn note(note: &Note) -> String {
    let code = note.code.as_ref().map_or_else(String::new, |c| format!("<strong>{}</strong> ", escape(c)));
    let help =
        note.help.as_ref().map_or_else(String::new, |h| format!(" <em>{}</em>", escape(&crate::sentence(h))));
    let class = if note.code.is_some() { " class=\"warning\"" } else { "" };
    format!("<li{class}>{code}{}{help}</li>\n", escape(&crate::sentence(&note.text)))
}
