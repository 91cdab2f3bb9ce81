//! Reading source texts.

use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use miras_syntax as syntax;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The text of a source file.
///
/// # Errors
/// E0507 where the path cannot be read or the bytes are no text, E0004 where they are too many.
pub(crate) fn text(path: &Path) -> Result<String, Diagnostic> {
    read(path).map_err(|unreadable| match unreadable.long {
        true => syntax::refuse_length(&format!("`{}`", path.display())),
        false => {
            Diagnostic::new(code::READ_FILE, format!("cannot read `{}`: {}", path.display(), unreadable.why))
                .with_help(unreadable.help)
        }
    })
}

/// Why a file cannot be read.
struct Unreadable {
    why: String,
    help: &'static str,
    /// Whether it is too long and nothing else.
    long: bool,
}

fn read(path: &Path) -> Result<String, Unreadable> {
    const LONGEST: usize = syntax::MAX_LENGTH;
    let fail = |why: String, help| Err(Unreadable { why, help, long: false });
    let unopened = |error| fail(reason(&error), "check the path and that you may read the file");
    // Asked before opening: opening a pipe would wait for its writer.
    match std::fs::metadata(path) {
        Err(error) => return unopened(error),
        Ok(kind) if kind.is_dir() => {
            return fail("it is a folder".into(), "give the path of a .miras file inside it");
        }
        Ok(kind) if !kind.is_file() && !is_open(path) => {
            return fail(
                "it is not a regular file".into(),
                "give a file, or `/dev/stdin` for what is piped in",
            );
        }
        Ok(_) => {}
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return unopened(error),
    };
    let mut bytes = Vec::new();
    if let Err(error) = file.take(LONGEST as u64 + 1).read_to_end(&mut bytes) {
        return fail(reason(&error), "check that the file can be read as a whole");
    }
    if bytes.len() > LONGEST {
        let why = format!("it is longer than {} MiB", LONGEST >> 20);
        return Err(Unreadable { why, help: "", long: true });
    }
    String::from_utf8(bytes).or_else(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|b| **b == b'\n').count() + 1;
        fail(format!("it is not UTF-8 text (byte {good}, in line {line})"), "save it as UTF-8 text")
    })
}

/// Whether a path names what this process was given open: its input, or a pipe of the shell's `<(...)`.
fn is_open(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// The reason of an i/o error without the operating system's number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Reads the files that a root file uses: only such as lie inside its folder.
pub(crate) struct Used {
    folder: PathBuf,
}

impl Used {
    pub(crate) fn beside(root: &Path) -> Used {
        let folder = root.parent().filter(|p| !p.as_os_str().is_empty());
        Used { folder: folder.unwrap_or(Path::new(".")).to_path_buf() }
    }

    /// Name for messages and text of a used file, or why there is none.
    pub(crate) fn read(&mut self, relative: &str) -> Result<(String, String), String> {
        let path = self.folder.join(relative);
        let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
        let inside = |p: &Path| p.canonicalize().map_err(|e| format!("`{shown}`: {}", reason(&e)));
        if !inside(&path)?.starts_with(inside(&self.folder)?) {
            return Err(format!("`{shown}` leads out of the folder `{}`", self.folder.display()));
        }
        let text = read(&path).map_err(|unreadable| format!("`{shown}`: {}", unreadable.why))?;
        Ok((shown, text))
    }
}
