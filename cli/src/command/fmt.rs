//! `miras fmt`.

use super::session;
use crate::console::Console;
use crate::options::Fmt;
use crate::{DONE, FAULT, files};
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
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
    match replace(path, &set) {
        Ok(()) => {
            console.say(&format!("{}: set\n", path.display()));
            DONE
        }
        Err(error) => console.tell(&[error], session.sources()),
    }
}

/// Writes a file beside the old one and moves it into place, so that nothing is lost half way.
fn replace(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let fail = |error: std::io::Error| {
        let message = format!("cannot write `{}`: {}", path.display(), files::reason(&error));
        Diagnostic::new(code::WRITE_FILE, message)
            .with_help("check that you may write there; the file is as it was")
    };
    // Through a symbolic link the file that it points to is replaced.
    let target = path.canonicalize().map_err(fail)?;
    let mode = std::fs::metadata(&target).map_err(fail)?.permissions();
    if mode.readonly() {
        return Err(fail(std::io::Error::from(std::io::ErrorKind::PermissionDenied)));
    }
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = target.with_file_name(name);
    let written = std::fs::write(&beside, text)
        .and_then(|()| std::fs::set_permissions(&beside, mode))
        .and_then(|()| std::fs::rename(&beside, &target));
    written.map_err(|error| {
        // It may not be there at all.
        let _ = std::fs::remove_file(&beside);
        fail(error)
    })
}
