//! Reading source texts.

use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest source that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// The text of a source file.
///
/// # Errors
/// E0507 where the path cannot be read or the bytes are no text.
pub(crate) fn text(path: &Path) -> Result<String, Diagnostic> {
    read(path).map_err(|unreadable| {
        Diagnostic::new(code::READ_FILE, format!("cannot read `{}`: {}", path.display(), unreadable.why))
            .with_help(unreadable.help)
    })
}

/// Why a file cannot be read.
struct Unreadable {
    why: String,
    help: &'static str,
}

fn read(path: &Path) -> Result<String, Unreadable> {
    let fail = |why: String, help| Err(Unreadable { why, help });
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return fail(reason(&error), "check the path and that you may read the file"),
    };
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return fail("it is a folder".into(), "give the path of a .miras file inside it");
    }
    let mut bytes = Vec::new();
    if let Err(error) = file.take(LONGEST + 1).read_to_end(&mut bytes) {
        return fail(reason(&error), "check that the file can be read as a whole");
    }
    if bytes.len() as u64 > LONGEST {
        return fail("it is longer than 64 MiB".into(), "give a file of Miras source text");
    }
    String::from_utf8(bytes).or_else(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|b| **b == b'\n').count() + 1;
        fail(format!("it is not UTF-8 text (byte {good}, in line {line})"), "save it as UTF-8 text")
    })
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
