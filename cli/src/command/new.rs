//! `miras new`.

use super::session;
use crate::console::Console;
use crate::options::New;
use crate::{DONE, files};
use base::diagnostic::code;
use base::{Diagnostic, SourceMap};
use miras_base as base;
use miras_driver as driver;
use miras_host as host;
use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};

/// Words that cannot name a layer.
const RESERVED: [&str; 6] = ["if", "then", "else", "let", "for", "in"];

/// The starter project; NAME stands for the layer's name.
const LAYER: &str = include_str!("new/layer.miras");
const README: &str = include_str!("new/README.md");

/// Writes the folder NAME with a layer, tensors to run it on, and what to do with them; an existing folder is
/// left alone.
pub(super) fn new(options: &New, console: &mut Console<'_>) -> u8 {
    match create(&options.name) {
        Ok(folder) => {
            let folder = folder.display();
            console.say(&format!(
                "wrote {folder}/{folder}.miras, {folder}/inputs.safetensors, {folder}/README.md\n"
            ));
            console.say(&format!(
                "next: read {folder}/README.md, or\n  miras explain {folder}/{folder}.miras\n"
            ));
            DONE
        }
        Err(errors) => console.tell(&errors, &SourceMap::new()),
    }
}

fn create(name: &str) -> Result<PathBuf, Vec<Diagnostic>> {
    check_name(name).map_err(|d| vec![d])?;
    let text = LAYER.replace("NAME", name);
    let inputs = inputs(name, &text)?;
    let folder = PathBuf::from(name);
    let fail = |error: Error| {
        let message = format!("cannot write `{name}`: {}", files::reason(&error));
        let help = "choose another name, or another folder to work in";
        vec![Diagnostic::new(code::WRITE_FILE, message).with_help(help)]
    };
    fs::create_dir(&folder).map_err(fail)?;
    let (file, page) = (format!("{name}.miras"), README.replace("NAME", name));
    let texts = [(file.as_str(), text.as_bytes()), ("README.md", page.as_bytes())];
    let written = host::write_files(&folder, &texts)
        .and_then(|()| host::write(&folder.join("inputs.safetensors"), &inputs));
    if let Err(error) = written {
        // The folder was made here, a moment ago.
        let _ = fs::remove_dir_all(&folder);
        return Err(vec![error]);
    }
    Ok(folder)
}

fn check_name(name: &str) -> Result<(), Diagnostic> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let starts = name.chars().next().is_some_and(letter);
    let goes_on = name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if starts && goes_on && name.len() <= 64 && !RESERVED.contains(&name) {
        return Ok(());
    }
    let message = format!("`{}` cannot be the name of a layer", name.escape_debug());
    let help = "use up to 64 letters, digits and `_`, not beginning with a digit, e.g. `my_memory`";
    Err(Diagnostic::new(code::BAD_OPTION, message).with_help(help))
}

/// Tensors for the layer: one row, two heads, forty tokens of length 8.
fn inputs(name: &str, text: &str) -> Result<host::Bundle, Vec<Diagnostic>> {
    let mut session = session();
    let root = session.add(&Path::new(name).with_extension("miras").display().to_string(), text);
    let mut read = |path: &str| Err(format!("`{path}` is not part of a new project"));
    let program = session.load(root, &mut read)?;
    let rule = program.then(|program| session.rule(&program, &driver::Choice::default()))?.value;
    let sizes = host::Synthetic { seed: 1, batch: 1, heads: 2, tokens: 40, dk: 8, dv: 8, grad: false };
    host::synthetic(&rule, &sizes).map_err(|d| vec![d])
}
