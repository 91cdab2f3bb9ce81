//! # miras-stdlib: the library's text
//!
//! **Purpose.** Carries every `.miras` file of the library inside the program: biases, retentions,
//! memories, algorithms and layers, written with the constructs that users have.
//!
//! **Takes** nothing. **Gives** paths and texts. **May touch** nothing. **Must not** hold logic.
//!
//! **Invariants.** One definition a file, called as its file is.

use include_dir::{Dir, include_dir};

static BIAS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/bias");
static RETENTION: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/retention");
static MEMORY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/memory");
static ALGO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/algo");
static LAYER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/layer");

/// Every file: its path inside the library (`bias/huber.miras`) and its text.
pub fn files() -> impl Iterator<Item = (String, &'static str)> {
    let folders =
        [("bias", &BIAS), ("retention", &RETENTION), ("memory", &MEMORY), ("algo", &ALGO), ("layer", &LAYER)];
    folders.into_iter().flat_map(|(folder, dir)| {
        dir.files().filter_map(move |file| {
            let path = file.path().to_str()?;
            Some((format!("{folder}/{path}"), file.contents_utf8()?))
        })
    })
}
