//! Transcripts: commands with what they print, in a text file or in the `console` blocks of a page.
//!
//! A line `$ miras ...` is a command; the lines up to the next one are its error output, its output, and
//! `(exit status N)` where N is not 0. Times vary and are shown as `...`. A command ends at the next line that
//! begins with `$ ` or at the end of the block. `$ cat FILE` shows a file of the folder, `$ ls` its names.

use crate::{Verdict, snapshot, text};
use std::path::Path;
use std::process::Command;

/// Runs a transcript in a copy of a folder and compares what is printed with what stands there.
///
/// # Errors
/// What differs, or why nothing could be run.
pub fn hold(transcript: &Path, files: &Path, miras: &Path) -> Verdict {
    let written = text(transcript)?;
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    copy(files, place.path())?;
    let page = transcript.extension().is_some_and(|e| e == "md");
    let run = run(&written, page, &Shell { place: place.path(), miras })?;
    snapshot::hold(transcript, &run)
}

struct Shell<'a> {
    place: &'a Path,
    miras: &'a Path,
}

/// The transcript as it comes out now.
fn run(written: &str, page: bool, shell: &Shell<'_>) -> Result<String, String> {
    let mut lines = String::new();
    let mut inside = !page;
    let mut printing = false;
    let mut commands = 0;
    for line in written.lines() {
        if page && line.trim_end() == "```console" {
            (inside, printing) = (true, false);
        } else if page && line.starts_with("```") {
            (inside, printing) = (false, false);
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            lines += &format!("{line}\n{}", shell.run(command)?);
            printing = true;
            commands += 1;
            continue;
        }
        // What stands below a command is replaced by what it prints; comments before the first one stay.
        if !printing || (!page && line.starts_with('#')) {
            lines += &format!("{line}\n");
        }
    }
    if commands == 0 { Err("there is no command in it".into()) } else { Ok(lines) }
}

impl Shell<'_> {
    fn run(&self, command: &str) -> Result<String, String> {
        let words = words(command)?;
        match words.split_first() {
            Some((first, arguments)) if first == "miras" => self.miras(arguments),
            Some((first, [file])) if first == "cat" => text(&self.place.join(file)),
            Some((first, [])) if first == "ls" => self.list(),
            Some(_) | None => Err(format!("only `miras`, `cat` and `ls` can be run: {command}")),
        }
    }

    fn list(&self) -> Result<String, String> {
        let names = crate::entries(self.place)?;
        let names = names.iter().filter_map(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
        Ok(names.collect::<Vec<_>>().join("\n") + "\n")
    }

    fn miras(&self, arguments: &[String]) -> Result<String, String> {
        let mut command = Command::new(self.miras);
        command.args(arguments).current_dir(self.place).env_remove("NO_COLOR");
        let output = command.output().map_err(|e| format!("{}: {e}", self.miras.display()))?;
        let mut said = String::new();
        for bytes in [&output.stderr, &output.stdout] {
            let part = String::from_utf8(bytes.clone()).map_err(|_| "the output is not UTF-8")?;
            for line in part.lines() {
                said += &format!("{}\n", timeless(line).trim_end());
            }
        }
        match output.status.code() {
            Some(0) => {}
            Some(status @ (1 | 2)) => said += &format!("(exit status {status})\n"),
            Some(_) | None => {
                return Err(format!("miras {}: {}\n{said}", arguments.join(" "), output.status));
            }
        }
        Ok(said)
    }
}

/// The line without what varies from run to run, from machine to machine, or with every change of a lowering.
fn timeless(line: &str) -> String {
    if line.starts_with("time      ") {
        return "time      ...".into();
    }
    let amount = |line: &str, before: &str, after: &str| {
        let (head, tail) = line.split_once(before)?;
        let (_, tail) = tail.split_once(after)?;
        Some(format!("{head}{before}...{after}{tail}"))
    };
    let machine = amount(line, "more than the ", " there are");
    machine
        .or_else(|| amount(line, "too large for a shader: ", " expressions"))
        .unwrap_or_else(|| line.into())
}

/// Words of a command; quotes keep blanks together.
fn words(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in command.chars() {
        match (c, quote) {
            (_, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is not closed: {command}"));
    }
    words.extend(word);
    Ok(words)
}

fn copy(from: &Path, to: &Path) -> Verdict {
    for path in crate::entries(from)? {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        if path.is_dir() {
            std::fs::create_dir(&target).map_err(|e| format!("{}: {e}", target.display()))?;
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        let found = words("miras run 'a b' --set \"memory=mlp(2, act=relu)\" ''").unwrap();
        assert_eq!(found, ["miras", "run", "a b", "--set", "memory=mlp(2, act=relu)", ""]);
        assert!(words("'").is_err());
    }

    #[test]
    fn only_what_stands_below_a_command_is_replaced() {
        let shell = Shell { place: Path::new("."), miras: Path::new("miras") };
        assert!(run("text\n", true, &shell).is_err());
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("a"), "new\n").unwrap();
        let shell = Shell { place: place.path(), miras: Path::new("miras") };
        let page = "# title\n```console\n$ cat a\nold\n```\nend\n";
        assert_eq!(run(page, true, &shell).unwrap(), "# title\n```console\n$ cat a\nnew\n```\nend\n");
    }
}
