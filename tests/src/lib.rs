//! # miras-tests: what the suite is made of
//!
//! **Purpose.** The pieces that the test programs under `run/` share: programs and runs through the public
//! pipeline, comparison within tolerances, the table of known limits, snapshots, transcripts.
//!
//! **Takes** the data of this folder (`golden/`, `suite/`, `cli/`) and of `examples/`. **Gives** verdicts as
//! `Result<(), String>`. **May touch** everything, files included. **Must not** be used by any other crate.
//!
//! **Invariants.** No case is passed over: what a backend cannot do is a row of `limits.txt`, and the
//! diagnostic that the row names must appear. With `MIRAS_BLESS=1` snapshots and transcripts are rewritten,
//! never golden data.

pub mod compare;
pub mod glob;
pub mod limits;
pub mod markdown;
pub mod pipeline;
pub mod snapshot;
pub mod transcript;

use std::path::{Path, PathBuf};

/// What a trial finds: nothing wrong, or what is.
pub type Verdict = Result<(), String>;

/// This crate's folder.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The repository's root.
pub fn root() -> PathBuf {
    let here = folder();
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// Whether the GPU backend's trials shall run: there is an adapter, or one is required. Says so where they shall not.
pub fn adapter_or_required() -> bool {
    let required = std::env::var_os("MIRAS_REQUIRE_GPU").is_some_and(|v| v == "1");
    let runs = required || miras_gpu::choose(&miras_gpu::Choice::Any).is_ok();
    if !runs {
        eprintln!("not run: the GPU's trials, as there is no adapter");
    }
    runs
}

/// Whether snapshots and transcripts shall be rewritten.
pub fn bless() -> bool {
    std::env::var_os("MIRAS_BLESS").is_some_and(|v| v == "1")
}

/// The entries of a folder in the order of their names.
///
/// # Errors
/// What the operating system says.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let told = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(told)? {
        paths.push(entry.map_err(told)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The text of a file.
///
/// # Errors
/// What the operating system says.
pub fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
