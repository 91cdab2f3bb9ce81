//! Every form of an explanation, over every layer of the library: it has the shape that readers rely on.

mod common;

use common::{document, names, written};
use miras_explain::{Comparison, Document, html, json, latex, text};
use serde_json::Value;

fn documents() -> Vec<Document> {
    names().iter().map(|n| document(n)).collect()
}

#[test]
fn text_fits_the_page() {
    let all = documents();
    let first = &all[0];
    for document in &all {
        for page in [text(document), Comparison::new(first, document).text()] {
            let long = page.lines().find(|l| l.chars().count() > 100);
            assert_eq!(long, None);
            assert!(!page.contains(['\u{1}', '\u{2}']), "{page}");
        }
    }
}

/// Calls `see` for every object of a value.
fn walk(value: &Value, see: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|v| walk(v, see));
        }
        Value::Array(all) => all.iter().for_each(|v| walk(v, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn json_has_every_formula_in_three_forms_and_its_fields_are_documented() {
    let page = include_str!("../../../docs/explain-json.md");
    let all = documents();
    let comparison = Comparison::new(&all[0], &all[1]).json();
    let mut formulas = 0;
    for text in [json(&all), comparison] {
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["version"], miras_explain::JSON_VERSION);
        walk(&value, &mut |object| {
            for key in object.keys() {
                assert!(page.contains(&format!("`{key}`")), "docs/explain-json.md does not name `{key}`");
            }
            if object.contains_key("latex") {
                formulas += 1;
                for form in ["text", "latex", "mathml"] {
                    let written = object[form].as_str().unwrap();
                    assert!(!written.is_empty() && !written.contains("NaN"), "{form}: {object:?}");
                }
            }
        });
    }
    assert!(formulas > 500, "{formulas}");
}

/// Checks that a formula's braces, fences and environments are closed in order.
fn balanced(latex: &str) {
    let (mut open, mut rest) = (Vec::new(), latex);
    let closes = |open: &mut Vec<String>, what: &str| {
        assert_eq!(open.pop().as_deref(), Some(what), "{latex}");
    };
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\begin{") {
            open.push(after.split('}').next().unwrap().into());
            rest = after.split_once('}').unwrap().1;
        } else if let Some(after) = rest.strip_prefix("\\end{") {
            closes(&mut open, after.split('}').next().unwrap());
            rest = after.split_once('}').unwrap().1;
        } else if let Some(after) = rest.strip_prefix("\\left") {
            if !after.starts_with(char::is_alphabetic) {
                open.push("left".into());
            }
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\\right") {
            if !after.starts_with(char::is_alphabetic) {
                closes(&mut open, "left");
            }
            rest = after;
        } else if rest.starts_with('\\') {
            let next = rest[1..].chars().next().map_or(0, char::len_utf8);
            rest = &rest[1 + next..];
        } else {
            match c {
                '{' => open.push("{".into()),
                '}' => closes(&mut open, "{"),
                _ => {}
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    assert!(open.is_empty(), "{latex}");
}

#[test]
fn latex_is_balanced() {
    let all = documents();
    let compared = all.iter().map(|document| Comparison::new(&all[0], document).latex());
    for page in compared.chain([latex(&all)]) {
        balanced(&page);
        for line in page.lines().filter(|l| l.starts_with("\\[")) {
            balanced(line);
        }
    }
}

/// Checks that every element is closed in order, and gives the names with their ancestors.
fn elements(page: &str) -> Vec<Vec<String>> {
    const EMPTY: [&str; 3] = ["meta", "br", "!DOCTYPE"];
    let (mut open, mut all): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let page = page.split_once("<style>").map_or(page.to_string(), |(before, rest)| {
        before.to_string() + rest.split_once("</style>").unwrap().1
    });
    for tag in page.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap().to_string();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "</{name}> closes another element");
        } else if !tag.ends_with('/') && !EMPTY.contains(&name.as_str()) {
            let class = tag.split_once("class=\"").map_or("", |(_, rest)| rest.split('"').next().unwrap());
            let mut path = open.clone();
            path.push(format!("{name}.{class}"));
            all.push(path);
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn pages_are_well_formed_and_stand_alone() {
    for document in documents() {
        let page = html(std::slice::from_ref(&document));
        elements(&page);
        for outside in ["<script", "<link", "<img", "src=", "url(", "@import", "href=\"http"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<h1>").count(), 1);
    }
}

/// What may be wider than a narrow page stands in a box that scrolls by itself or breaks its lines.
#[test]
fn nothing_but_formulas_scrolls_sideways() {
    let all = documents();
    let page = html(&all);
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(style.contains(".formula { overflow-x: auto;") && style.contains("overflow-wrap: anywhere"));
    assert!(style.contains("pre { overflow-x: auto;"));
    assert_eq!(
        page.matches("<math").count(),
        page.matches("<div class=\"formula\" tabindex=\"0\"><math").count()
    );
    // No length of the style forces more than 400 pixels (25rem at 16 pixels): only upper bounds are larger.
    for rule in style.split([';', '{', '}']) {
        let Some((name, value)) = rule.split_once(':') else { continue };
        if matches!(name.trim(), "width" | "min-width") {
            assert!(!value.contains("rem") && !value.contains("px") || value.contains("1px"), "{rule}");
        }
    }
}

#[test]
fn several_layers_have_one_table_of_contents() {
    let page = html(&[document("yaad"), document("memora")]);
    elements(&page);
    assert!(page.contains("<nav aria-label=\"Layers\">"));
    for target in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(page.matches(&format!("id=\"{target}\"")).count(), 1, "{target}");
    }
}

/// Spelling, defaults and names do not make a difference; numbers, granularities and another body do.
#[test]
fn choices_are_compared_by_what_they_mean() {
    let layer = |memory: &str, retention: &str| {
        written(&format!(
            "memory: {memory}; bias: l2; retention: {retention}; algo: gd(eta = learned(per = token));
             retention own(alpha: unit = learned) {{
               local(W, P) = (1 - alpha) * sum((W - P)^2) / 2;  // as the library's l2
               global(W)   = alpha * sum(W^2) / 2;
             }}"
        ))
    };
    let rows = |a: &Document, b: &Document| {
        let told: Value = serde_json::from_str(&Comparison::new(a, b).json()).unwrap();
        let row = |title: &str| {
            let rows = told["rows"].as_array().unwrap();
            rows.iter().find(|r| r["title"] == title).unwrap()["equal"] == true
        };
        ["memory", "bias", "retention", "algo"].map(row)
    };
    let plain = layer("mlp(2)", "l2");
    assert_eq!(rows(&plain, &layer("mlp(depth = 2, expand = 2 + 2, act = gelu)", "own")), [true; 4]);
    assert_eq!(rows(&plain, &layer("mlp", "l2(alpha = learned(per = token))")), [true; 4]);
    assert_eq!(rows(&plain, &layer("mlp(2, expand = 2)", "l2(0.5)")), [false, true, false, true]);
    assert_eq!(rows(&plain, &layer("mlp(2)", "l2(learned(per = channel))")), [true, true, false, true]);
    assert_eq!(rows(&plain, &layer("mlp(2)", "none")), [true, true, false, true]);
    let text = Comparison::new(&plain, &layer("mlp(2, 4)", "own")).text();
    assert!(text.contains("= memory\n      mlp(depth = 2, expand = 4, act = gelu)"), "{text}");
    assert!(text.contains("= retention\n      l2(alpha = learned)\n      own(alpha = learned)"), "{text}");
}

#[test]
fn a_layer_differs_from_another_and_not_from_itself() {
    let (a, b) = (document("deltanet"), document("gated_deltanet"));
    let same: Value = serde_json::from_str(&Comparison::new(&a, &a).json()).unwrap();
    assert!(same["rows"].as_array().unwrap().iter().all(|r| r["equal"] == true));
    let other: Value = serde_json::from_str(&Comparison::new(&a, &b).json()).unwrap();
    let row = |title: &str| {
        let rows = other["rows"].as_array().unwrap();
        rows.iter().find(|r| r["title"] == title).unwrap().clone()
    };
    assert_eq!(row("Slope of the loss")["equal"], true);
    assert_eq!(row("Retention")["equal"], false);
    let differing = &row("Retention")["sides"][1]["formulas"][0]["differing"];
    assert_eq!(differing.as_array().unwrap().len(), 1, "{differing}");
    elements(&Comparison::new(&a, &b).html());
}

/// The notes on printed formulas that docs/mathematics.md asks for, each with its layer.
#[test]
fn notes_on_printed_formulas_are_shown() {
    let notes = [
        ("gated_deltanet", "Eq 9, which lacks the eta on the write"),
        ("moneta", "Eq 25 prints eta twice"),
        ("moneta", "q = 4 lies outside the derivation's 1 < q <= 2"),
        ("moneta", "the scheme that is printed for Moneta reads the raw dual inside a chunk"),
        ("moneta", "W0305"),
        ("titans_lmm", "the row in Miras Table 1 has the wrong sign"),
        ("memora", "Eq 30 to 32) can leave the simplex and is not used"),
        ("memora", "Follow-the-regularised-leader form (Miras Proposition 3.2)"),
        ("memora", "theta[1]' = (1 - alpha) * theta[1] + u[1]"),
        ("mamba2", "alpha = (1 / alpha_G) / (1 / eta_D + 1 / alpha_G)"),
        ("mamba2", "u = -g / (1 / eta_D + 1 / alpha_G)"),
        ("yaad_printed", "Eq 16 and 26"),
        ("hgrn2", "Miras Table 1 lists the l1 bias"),
    ];
    for (layer, note) in notes {
        let page = text(&document(layer));
        let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(note), "{layer}: {note}\n{page}");
    }
}

/// Class and chunk form follow from the structure, whatever things are called.
#[test]
fn chunks_have_the_form_of_their_class() {
    let forms = [
        ("linear_attention", "o_t = W_0 @ q_t + sum_{i<=t} dot(k_i, q_t) * v_i"),
        ("gla", "o_t = W_0 @ (P(t, 0) * q_t) + sum_{i<=t} dot(k_i, P(t, i) * q_t) * v_i"),
        (
            "gated_deltanet",
            "w_t = eta_t * (v_t - (P(t, 0) * (W_0 @ k_t) + sum_{i<t} P(t, i) * dot(k_i, k_t) * w_i))",
        ),
        (
            "deltaproduct",
            "w_s = eta_s * (v_s - (P(s, 0) * (W_0 @ k_s) + sum_{i<s} P(s, i) * dot(k_i, k_s) * w_i))",
        ),
        ("rwkv7", "W_t = P(t, 0) * W_0 + sum_{i<=t} P(t, i) * outer(w_i, a_i * kappa_i)"),
        ("titans_lmm", "c(t, j) = sum_{j<=i<=t} P(t, i) * M(i, j)"),
        ("ttt_linear", "g_i = outer(delta_i, k_i)"),
        ("memora", "W[1]_t = 16 * softmax_row(theta[1]_t)"),
        ("softmax_attention", "m' = max(m, max_{i in B} a_{t,i})"),
        ("mesa", "A chunk has no parallel form of its own"),
    ];
    for (layer, form) in forms {
        let page = text(&document(layer));
        let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(form), "{layer}: {form}\n{page}");
    }
}
