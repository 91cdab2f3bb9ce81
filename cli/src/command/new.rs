//! `miras new`.

use crate::console::Console;
use crate::options::New;
use crate::{DONE, files};
use base::diagnostic::code;
use base::{Diagnostic, SourceMap};
use miras_base as base;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Words that cannot name a layer.
const RESERVED: [&str; 5] = ["if", "then", "else", "let", "for"];

/// Writes NAME.miras with a layer to start from; an existing file is left alone.
pub(super) fn new(options: &New, console: &mut Console<'_>) -> u8 {
    match create(&options.name) {
        Ok(path) => {
            let path = path.display();
            console.say(&format!("wrote {path}\nnext: miras explain {path}\n"));
            DONE
        }
        Err(error) => console.tell(&[error], &SourceMap::new()),
    }
}

fn create(name: &str) -> Result<PathBuf, Diagnostic> {
    let mut characters = name.chars();
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let starts = characters.next().is_some_and(letter);
    if !starts
        || !characters.all(|c| letter(c) || c.is_ascii_digit())
        || RESERVED.contains(&name)
        || name == "in"
    {
        let message = format!("`{}` cannot be the name of a layer", name.escape_debug());
        return Err(Diagnostic::new(code::BAD_OPTION, message)
            .with_help("use letters, digits and `_`, not beginning with a digit, e.g. `my_memory`"));
    }
    let path = PathBuf::from(format!("{name}.miras"));
    let fail = |error: std::io::Error| {
        let message = format!("cannot write `{}`: {}", path.display(), files::reason(&error));
        Diagnostic::new(code::WRITE_FILE, message)
            .with_help("choose another name, or another folder to work in")
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(fail)?;
    file.write_all(template(name).as_bytes()).map_err(fail)?;
    Ok(path)
}

/// A layer with all four choices.
fn template(name: &str) -> String {
    format!(
        "// What the memory is, what it is trained on while it reads, how it forgets, and how it learns.
layer {name} {{
  memory:    matrix;
  bias:      l2;
  retention: l2(alpha = learned);
  algo:      gd(eta = learned);
}}
"
    )
}
