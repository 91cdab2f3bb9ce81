//! `miras check`.

use super::{class, session};
use crate::console::Console;
use crate::options::Check;
use crate::{DONE, subject};
use driver::{Choice, Session};
use miras_driver as driver;
use std::path::Path;

/// Checks every layer of every file; what is wrong with one does not hide what is wrong with another.
pub(super) fn check(options: &Check, console: &mut Console<'_>) -> u8 {
    options.files.iter().map(|file| one(file, console)).max().unwrap_or(DONE)
}

fn one(file: &Path, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    let subject = match subject::load(&mut session, file) {
        Ok(subject) => subject,
        Err(errors) => return console.tell(&errors, session.sources()),
    };
    console.tell(&subject.said, session.sources());
    let subject = subject.value;
    let (mut status, mut good) = (DONE, Vec::new());
    let mut told = Vec::new();
    for layer in subject.layers() {
        let choice = Choice { layer: Some(layer.clone()), ..Choice::default() };
        let (said, kind) = derive(&mut session, &subject.program, &choice);
        // Two layers that use one definition may say the same thing of it.
        let said: Vec<_> = said.into_iter().filter(|d| !told.contains(d)).collect();
        status = status.max(console.tell(&said, session.sources()));
        told.extend(said);
        good.extend(kind.map(|kind| format!("{layer} ({kind})")));
    }
    let (alone, said) = session.check_alone(&subject.program);
    let said: Vec<_> = said.into_iter().filter(|d| !told.contains(d)).collect();
    status = status.max(console.tell(&said, session.sources()));
    let file = file.display();
    match (status, good.len()) {
        (DONE, 0) if alone > 0 => console.say(&format!("{file}: definitions only ({alone})\n")),
        (DONE, 0) => console.say(&format!("{file}: no layer to derive\n")),
        (DONE, _) => console.say(&format!("{file}: {}\n", good.join(", "))),
        _ => {}
    }
    status
}

fn derive(
    session: &mut Session<'_>,
    program: &miras_spec::Program,
    choice: &Choice,
) -> (Vec<miras_base::Diagnostic>, Option<&'static str>) {
    match session.rule(program, choice) {
        Ok(made) => (made.said, Some(class(made.value.class.kind))),
        Err(errors) => (errors, None),
    }
}
