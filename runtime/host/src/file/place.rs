//! Writing a file whole, or not at all with the old one untouched.

use super::read::reason;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The remedy where no file can be made.
const PLACE: &str = "check that its folder exists and that you may write there";

/// Links that are followed from one to the next.
const LONGEST_CHAIN: usize = 40;

/// A file to be written: shown to be writable before the work whose results it will hold.
#[derive(Debug)]
pub struct Pending {
    shown: PathBuf,
    target: PathBuf,
    /// The folder of `target`.
    folder: PathBuf,
    /// The permissions of the file that will be replaced.
    old: Option<Permissions>,
}

/// A file that is written, and not yet in its place. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Prepared {
    shown: PathBuf,
    target: PathBuf,
    file: NamedTempFile,
}

/// Writes a file, whole or not at all. E0508 where it cannot.
///
/// # Errors
/// E0508 where the file cannot be written; what was there is as it was.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    Pending::open(path)?.prepare(|out| out.write_all(bytes))?.place()
}

/// Writes files into a folder, which is made where it is missing: all of them are written before the first is put in
/// its place, so that none is ever seen in part.
///
/// # Errors
/// E0508 where the folder or a file cannot be written.
pub fn write_files(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(folder)
        .map_err(|e| fail(folder, &reason(&e), "give a folder that you may write to"))?;
    let prepare = |(name, bytes): &(&str, &[u8])| {
        Pending::open(&folder.join(name))?.prepare(|out| out.write_all(bytes))
    };
    let prepared = files.iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
    prepared.into_iter().try_for_each(Prepared::place)
}

impl Pending {
    /// Tries whether a file can be made beside `path`, and leaves nothing behind: a run that is stopped
    /// from outside while it computes leaves no litter. E0508 where `path` cannot be written.
    pub fn open(path: &Path) -> Result<Pending, Diagnostic> {
        // Through a symbolic link the file that it points to is replaced, not the link.
        let target = followed(path).ok_or_else(|| {
            fail(path, "its symbolic links lead round in a circle", "give the path of a file to write")
        })?;
        let old = std::fs::metadata(&target).ok();
        if let Some(old) = &old {
            if old.is_dir() {
                return Err(fail(
                    path,
                    "it is a folder",
                    "give the path of a file, e.g. `out.safetensors` inside it",
                ));
            }
            if !old.is_file() {
                return Err(fail(
                    path,
                    "it is not a regular file",
                    "write to a file, which can be replaced as a whole",
                ));
            }
            if old.permissions().readonly() {
                return Err(fail(
                    path,
                    "the file there is read-only",
                    "make it writable, remove it, or choose another path",
                ));
            }
        }
        if target.file_name().is_none() {
            return Err(fail(path, "it names no file", "give the path of a file to write"));
        }
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            Some(_) | None => PathBuf::from("."),
        };
        temporary(&folder).and_then(NamedTempFile::close).map_err(|e| fail(path, &reason(&e), PLACE))?;
        Ok(Pending { shown: path.to_path_buf(), target, folder, old: old.map(|m| m.permissions()) })
    }

    /// Writes the file beside its place. The file that replaces another is as open to others as that was.
    ///
    /// # Errors
    /// E0508 where it cannot be written.
    pub fn prepare(
        self,
        fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
    ) -> Result<Prepared, Diagnostic> {
        let Pending { shown, target, folder, old } = self;
        let file = temporary(&folder).map_err(|e| fail(&shown, &reason(&e), PLACE))?;
        let help = "check the space left on the disk; what was there before is untouched";
        filled(&file, old, fill).map_err(|e| fail(&shown, &reason(&e), help))?;
        Ok(Prepared { shown, target, file })
    }
}

impl Prepared {
    /// Moves the file to its place.
    ///
    /// # Errors
    /// E0508 where what is there cannot be replaced.
    pub fn place(self) -> Result<(), Diagnostic> {
        let Prepared { shown, target, file } = self;
        let help = "check that you may replace it; what was there before is untouched";
        file.persist(target).map(|_| ()).map_err(|e| fail(&shown, &reason(&e.error), help))
    }
}

fn filled(
    file: &NamedTempFile,
    old: Option<Permissions>,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if let Some(old) = old {
        file.as_file().set_permissions(old)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_data()
}

/// Where a path leads: through symbolic links, also to a file that is not there yet. None where they lead
/// round in a circle.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LONGEST_CHAIN {
        if let Ok(found) = std::fs::canonicalize(&path) {
            return Some(found);
        }
        match std::fs::read_link(&path) {
            // A relative link counts from the folder that holds it; an absolute one replaces the path.
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Some(path),
        }
    }
    None
}

fn fail(path: &Path, why: &str, help: &str) -> Diagnostic {
    Diagnostic::new(code::WRITE_FILE, format!("cannot write `{}`: {why}", path.display())).with_help(help)
}

/// A temporary file that becomes an ordinary one: with the permissions that a new file would have.
fn temporary(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".miras-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
