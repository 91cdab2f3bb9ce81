//! Safetensors files.

mod read;
mod write;

pub use read::{parse, read};
pub use write::{Pending, write};
