//! Files: safetensors, and writing any file whole.

mod place;
mod read;
mod write;

pub use place::{Pending, Prepared, write_bytes, write_files};
pub use read::{parse, read};
pub use write::write;
