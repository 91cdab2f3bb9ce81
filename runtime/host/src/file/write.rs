//! Writing: a whole file, or none and the old one untouched.

use super::read::reason;
use crate::bundle::Bundle;
use crate::tensor::{Data, Tensor, count};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::borrow::Cow;
use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes tensors to a safetensors file, whole or not at all. E0508 where it cannot.
pub fn write(path: &Path, bundle: &Bundle) -> Result<(), Diagnostic> {
    Pending::open(path)?.commit(bundle)
}

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

    /// Writes the tensors and moves the file to its place.
    pub fn commit(self, bundle: &Bundle) -> Result<(), Diagnostic> {
        for (name, tensor) in bundle.iter() {
            if count(&tensor.shape) != Some(tensor.len()) {
                let what = format!("`{name}` has {} entries in shape {:?}", tensor.len(), tensor.shape);
                return Err(Diagnostic::bug(what));
            }
        }
        let file = temporary(&self.folder).map_err(|e| fail(&self.shown, &reason(&e), PLACE))?;
        fill(&file, self.old.as_ref(), bundle).map_err(|e| {
            fail(
                &self.shown,
                &reason(&e),
                "check the space left on the disk; what was there before is untouched",
            )
        })?;
        let help = "check that you may replace it; what was there before is untouched";
        let Pending { shown, target, .. } = self;
        file.persist(target).map(|_| ()).map_err(|e| fail(&shown, &reason(&e.error), help))
    }
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

/// Writes the tensors; the file that replaces another is as open to others as that was.
fn fill(file: &NamedTempFile, old: Option<&Permissions>, bundle: &Bundle) -> std::io::Result<()> {
    if let Some(old) = old {
        file.as_file().set_permissions(old.clone())?;
    }
    let views: Vec<(&str, Bytes<'_>)> = bundle.iter().map(|(n, t)| (n, Bytes(t))).collect();
    let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
    write_views(views, &mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_data()
}

/// The format: the header's length (8 bytes, little endian), the header, the entries in the header's order.
fn write_views(mut views: Vec<(&str, Bytes<'_>)>, out: &mut impl Write) -> std::io::Result<()> {
    // Widest elements first, so that every tensor is aligned to its element.
    views.sort_by(|a, b| b.1.dtype().cmp(&a.1.dtype()).then(a.0.cmp(b.0)));
    let header = Metadata::new(None, offsets(&views)).map_err(std::io::Error::other)?;
    let mut text = serde_json::to_vec(&header).map_err(std::io::Error::other)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(&text)?;
    for (_, view) in &views {
        out.write_all(&view.bytes())?;
    }
    Ok(())
}

fn offsets(views: &[(&str, Bytes<'_>)]) -> Vec<(String, TensorInfo)> {
    let mut end = 0;
    let entry = |(name, view): &(&str, Bytes<'_>)| {
        let start = end;
        end += view.len();
        let info =
            TensorInfo { dtype: view.dtype(), shape: view.0.shape.clone(), data_offsets: (start, end) };
        ((*name).to_string(), info)
    };
    views.iter().map(entry).collect()
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

struct Bytes<'a>(&'a Tensor);

impl Bytes<'_> {
    fn dtype(&self) -> Dtype {
        match &self.0.data {
            Data::F32(_) => Dtype::F32,
            Data::F64(_) => Dtype::F64,
            Data::I64(_) => Dtype::I64,
        }
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0.data {
            Data::F32(x) => little_endian(x, |x| x.to_le_bytes()),
            Data::F64(x) => little_endian(x, |x| x.to_le_bytes()),
            Data::I64(x) => little_endian(x, |x| x.to_le_bytes()),
        }
    }

    fn len(&self) -> usize {
        let width = match &self.0.data {
            Data::F32(_) => 4,
            Data::F64(_) | Data::I64(_) => 8,
        };
        self.0.len() * width
    }
}

fn little_endian<const N: usize, T: bytemuck::NoUninit>(
    x: &[T],
    bytes: impl Fn(&T) -> [u8; N],
) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(x))
    } else {
        Cow::Owned(x.iter().flat_map(bytes).collect())
    }
}
