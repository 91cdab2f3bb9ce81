//! `miras fmt`.

use super::session;
use crate::console::Console;
use crate::options::Fmt;
use crate::{DONE, FAULT, files};
use miras_host as host;
use miras_syntax as syntax;
use std::path::Path;

/// Sets every file; one that cannot be read or parsed does not keep the others from being set.
pub(super) fn fmt(options: &Fmt, console: &mut Console<'_>) -> u8 {
    options.files.iter().map(|file| one(file, options.check, console)).max().unwrap_or(DONE)
}

fn one(path: &Path, check: bool, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    let set = files::text(path).map_err(|d| vec![d]).and_then(|text| {
        let file = session.add(&path.display().to_string(), &text);
        syntax::format(&text, file).map(|set| (text, set))
    });
    let (text, set) = match set {
        Ok(both) => both,
        Err(errors) => return console.tell(&errors, session.sources()),
    };
    if text == set {
        return DONE;
    }
    if check {
        console.say(&format!("{}: not well set\n", path.display()));
        return FAULT;
    }
    match host::write_bytes(path, set.as_bytes()) {
        Ok(()) => {
            console.say(&format!("{}: set\n", path.display()));
            DONE
        }
        Err(error) => console.tell(&[error], session.sources()),
    }
}
