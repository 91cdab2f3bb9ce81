//! `miras explain`.

use super::session;
use crate::console::Console;
use crate::options::{Explain, Format};
use crate::{DONE, FAULT, pages, subject};
use base::diagnostic::{CATALOGUE, Entry, code};
use base::{Diagnostic, Fault, Severity};
use driver::{Outcome, Session};
use miras_base as base;
use miras_driver as driver;
use miras_explain as explain;
use miras_schedule as schedule;

/// Explains a layer, or a code of a diagnostic.
pub(super) fn run(options: &Explain, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    if let Some(entry) = code_of(options) {
        console.say(&page(entry));
        return DONE;
    }
    match work(options, &mut session) {
        Ok(made) => {
            console.tell(&made.said, session.sources());
            console.say(&made.value);
            DONE
        }
        Err(errors) => console.tell(&errors, session.sources()).max(FAULT),
    }
}

fn work(options: &Explain, session: &mut Session<'_>) -> Outcome<String> {
    let form = form(options.format)?;
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    let rule = subject.then(|subject| session.rule(&subject.program, &choice))?;
    let plan = rule.then(|rule| session.plan(rule, Default::default()))?;
    Ok(plan.map(|plan| form(&plan)))
}

/// How a plan is told in a form.
fn form(format: Format) -> Result<fn(&schedule::Plan) -> String, Vec<Diagnostic>> {
    let name = match format {
        Format::Text => return Ok(explain::text),
        Format::Latex => return Ok(explain::latex),
        Format::Html => "HTML",
        Format::Json => "JSON",
    };
    let message = format!("explanations in {name} are not part of this version of Miras");
    Err(vec![
        Diagnostic::new(code::UNSUPPORTED, message).with_help("use `--format text` or `--format latex`"),
    ])
}

/// The catalogue's row, where a code is given in place of a file.
fn code_of(options: &Explain) -> Option<&'static Entry> {
    let file = &options.layer.file;
    let name = file.to_str()?.to_ascii_uppercase();
    CATALOGUE.iter().find(|e| e.code.0 == name).filter(|_| !file.exists())
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
