//! `miras completions` and `miras man`: what a shell and `man` know of the command line, from its definition.

use crate::DONE;
use crate::console::Console;
use crate::options::{Completions, Man, Options};
use base::{Diagnostic, SourceMap};
use clap::CommandFactory;
use miras_base as base;
use miras_host as host;
use std::path::Path;

/// Prints the completions of a shell.
pub(super) fn completions(options: &Completions, console: &mut Console<'_>) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Options::command(), "miras", &mut script);
    console.say(&String::from_utf8_lossy(&script));
    DONE
}

/// Writes a manual page for the command and for each of its subcommands.
pub(super) fn man(options: &Man, console: &mut Console<'_>) -> u8 {
    match write(&options.out) {
        Ok(count) => {
            console.say(&format!("wrote {count} pages to {}\n", options.out.display()));
            DONE
        }
        Err(error) => console.tell(&[error], &SourceMap::new()),
    }
}

fn write(folder: &Path) -> Result<usize, Diagnostic> {
    // Written to memory, which does not fail.
    let pages = manual().map_err(|e| Diagnostic::bug(format!("the manual cannot be made: {e}")))?;
    let files: Vec<(&str, &[u8])> =
        pages.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
    host::write_files(folder, &files)?;
    Ok(pages.len())
}

/// The manual: names of pages, and their text.
fn manual() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Options::command().disable_help_subcommand(true);
    command.build();
    let subcommands = command.get_subcommands().cloned().map(|c| {
        let name = format!("miras-{}", c.get_name());
        // The page's title; clap wants names that live as long as the program.
        c.name(&*name.leak())
    });
    let all: Vec<clap::Command> = std::iter::once(command.clone()).chain(subcommands).collect();
    let mut pages = Vec::new();
    for command in all {
        let (name, mut text) = (format!("{}.1", command.get_name()), Vec::new());
        clap_mangen::Man::new(command).render(&mut text)?;
        pages.push((name, text));
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_manual_has_a_page_for_every_command() {
        let pages = manual().unwrap();
        assert_eq!(pages.len(), 1 + Options::command().get_subcommands().count());
        for (name, text) in pages {
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(".TH ") && text.contains(".SH NAME"), "{name}");
            assert!(name == "miras.1" || text.contains("Examples"), "{name}");
        }
    }

    #[test]
    fn every_shell_has_completions_that_know_the_commands() {
        for shell in clap_complete::Shell::value_variants() {
            let mut out = Vec::new();
            let mut console = Console::new(&mut out, Vec::new());
            assert_eq!(completions(&Completions { shell: *shell }, &mut console), DONE);
            assert_eq!(console.close(DONE), DONE);
            drop(console);
            let script = String::from_utf8(out).unwrap();
            assert!(script.contains("explain") && script.contains("devices"), "{shell}");
        }
    }
}
