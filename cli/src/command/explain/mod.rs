//! `miras explain`.

mod measured;

use super::session;
use crate::console::Console;
use crate::options::{Explain, Format, Layer};
use crate::{DONE, FAULT, pages, subject};
use base::diagnostic::{CATALOGUE, Entry, code};
use base::{Diagnostic, DimEnv, Fault, Severity};
use driver::{Choice, Made, Outcome, Session};
use explain::{Comparison, Counted, Document, Written};
use miras_base as base;
use miras_driver as driver;
use miras_explain as explain;
use miras_kernel as kernel;
use miras_schedule::Plan;
use miras_spec as spec;
use miras_syntax as syntax;
use miras_tensor::Sizes;
use std::path::Path;

/// dk and dv at which programs are counted.
const SHOWN: u64 = 64;

/// Explains the layers of a file, one layer against another, or a code of a diagnostic.
pub(super) fn run(options: &Explain, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    if let Some(entry) = code_of(options) {
        return match code_alone(options, entry) {
            Ok(()) => {
                console.say(&page(entry));
                DONE
            }
            Err(error) => console.tell(&[error], session.sources()).max(FAULT),
        };
    }
    let told = match &options.against {
        Some(other) => against(options, other, &mut session),
        None => layers(options, &mut session),
    };
    match told {
        Ok(made) => {
            console.tell(&made.said, session.sources());
            console.say(&made.value);
            DONE
        }
        Err(errors) => console.tell(&errors, session.sources()).max(FAULT),
    }
}

/// Every layer that is meant, on one page.
fn layers(options: &Explain, session: &mut Session<'_>) -> Outcome<String> {
    let documents = documents(&options.layer, options.measure, session)?;
    Ok(documents.map(|all| match options.format {
        Format::Text => all.iter().map(explain::text).collect::<Vec<_>>().join("\n\n"),
        Format::Latex => explain::latex(&all),
        Format::Html => explain::html(&all),
        Format::Json => explain::json(&all),
    }))
}

/// The layer against another one.
fn against(options: &Explain, other: &Path, session: &mut Session<'_>) -> Outcome<String> {
    let form: fn(&Comparison) -> String = match options.format {
        Format::Text => Comparison::text,
        Format::Html => Comparison::html,
        Format::Json => Comparison::json,
        Format::Latex => Comparison::latex,
    };
    let second = Layer { file: other.to_path_buf(), layer: options.against_layer.clone(), set: Vec::new() };
    one(&options.layer, session)?.then(|a| {
        let b = one(&second, session)?;
        Ok(b.map(|b| form(&Comparison::new(&a, &b))))
    })
}

/// The only layer that is meant.
fn one(layer: &Layer, session: &mut Session<'_>) -> Outcome<Document> {
    let subject = subject::load(session, &layer.file)?;
    let choice = subject.value.choice(layer);
    subject.then(|subject| document(&subject.program, &choice, false, session))
}

/// The layer that was named, or all of the file.
fn documents(layer: &Layer, measure: bool, session: &mut Session<'_>) -> Outcome<Vec<Document>> {
    let subject = subject::load(session, &layer.file)?;
    let chosen = subject.value.choice(layer);
    let names = match &chosen.layer {
        Some(name) => vec![Some(name.clone())],
        None => subject.value.layers().into_iter().map(Some).collect(),
    };
    // A file without layers is told of where its only one is asked for.
    let names = if names.is_empty() { vec![None] } else { names };
    subject.then(|subject| {
        let mut all = Made::new(Vec::new(), Vec::new());
        for name in names {
            let choice = Choice { layer: name, overrides: chosen.overrides.clone() };
            all = all.then(|mut documents| {
                let document = document(&subject.program, &choice, measure, session)?;
                Ok(document.map(|document| {
                    documents.push(document);
                    documents
                }))
            })?;
        }
        Ok(all)
    })
}

fn document(
    program: &spec::Program,
    choice: &Choice,
    measure: bool,
    session: &mut Session<'_>,
) -> Outcome<Document> {
    let written = written(program, choice, session);
    let rule = session.rule(program, choice)?;
    rule.then(|rule| {
        session.plan(rule, Default::default())?.then(|plan| {
            let document = Document::new(&plan, &written).counted(counted(&plan, session)?);
            Ok(Made::new(
                if measure { document.measured(measured::measured(&plan)?) } else { document },
                Vec::new(),
            ))
        })
    })
}

/// What the program takes that computes tokens together, where there is one.
fn counted(plan: &Plan, session: &mut Session<'_>) -> Result<Option<Counted>, Vec<Diagnostic>> {
    let sizes = Sizes { dims: DimEnv::from([("dk".into(), SHOWN), ("dv".into(), SHOWN)]) };
    let program = session.compile_blocks(plan, &sizes)?.value;
    Ok(program.map(|program| {
        let work = kernel::count(&program);
        Counted {
            tokens: plan.blocks.tokens,
            multiply_adds: work.multiply_adds,
            element_wise: work.element_wise,
            scratch: work.scratch,
        }
    }))
}

/// The layer's source, well set, and the comment above it.
fn written(program: &spec::Program, choice: &Choice, session: &Session<'_>) -> Written {
    let found = program.written(choice.layer.as_deref());
    let set = found.spans.iter().map(|span| {
        let text = session.sources().text(*span);
        syntax::format(text, span.file).unwrap_or_else(|_| text.to_string())
    });
    let mut source: String = set.collect::<Vec<_>>().join("\n");
    for (name, value) in &choice.overrides {
        source += &format!("\n// --set {name}={value}");
    }
    Written { source, about: found.about }
}

/// The catalogue's row, where a code is given in place of a file.
fn code_of(options: &Explain) -> Option<&'static Entry> {
    let file = &options.layer.file;
    let name = file.to_str()?.to_ascii_uppercase();
    CATALOGUE.iter().find(|e| e.code.0 == name).filter(|_| !file.exists())
}

/// A page about a code is text, and about nothing else.
fn code_alone(options: &Explain, entry: &Entry) -> Result<(), Diagnostic> {
    let given = match options.format {
        Format::Text => None,
        Format::Latex => Some("--format latex"),
        Format::Html => Some("--format html"),
        Format::Json => Some("--format json"),
    };
    let layered = options.layer.layer.is_some() || !options.layer.set.is_empty();
    let others = [
        (options.against.is_some(), "--against"),
        (options.measure, "--measure"),
        (layered, "--layer and --set"),
    ];
    let other = others.iter().find_map(|(asked, name)| asked.then_some(*name));
    let Some(option) = given.or(other) else { return Ok(()) };
    let code = entry.code.0;
    let message = format!("`{option}` is about layers; the page about `{code}` is plain text");
    Err(Diagnostic::new(code::BAD_OPTION, message).with_help(format!("write `miras explain {code}`")))
}

/// The page about a code; its catalogue row alone would say little.
fn page(entry: &Entry) -> String {
    let kind = match entry.severity {
        Severity::Note => "a note",
        Severity::Warning => "a warning",
        Severity::Error => "an error",
    };
    let fault = match entry.fault {
        Fault::Program => "about your program or data",
        Fault::Limit => "about a limit of Miras",
        Fault::Bug => "about a bug in Miras",
    };
    let text = pages::page(entry.code.0).map_or_else(String::new, pages::set);
    format!("{text}\n({kind} {fault})\n")
}
