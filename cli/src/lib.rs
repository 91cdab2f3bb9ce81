//! # miras-cli: the command line
//!
//! **Purpose.** `miras check, explain, run` and the others: read files, ask the driver and the backends,
//! and tell the user what came of it.
//!
//! **Takes** arguments. **Gives** text on the output, diagnostics on the error output, and an exit status: 0
//! done, 1 the user's program or data is at fault, 2 wrong usage. **May touch** everything; it is the only
//! place that reads source files. **Must not** hold compiler logic.
//!
//! **Invariants.** Whatever went wrong is a diagnostic with its cause and remedy. Output files are
//! written whole or not at all.

mod backend;
mod command;
mod console;
mod examples;
mod files;
mod options;
mod pages;
mod programs;
mod render;
mod subject;

pub use backend::{Account, Asked, Backend, Finished, ScheduleName, execute};
pub use console::{Console, Messages};
pub use render::Renderer;

use clap::Parser;
use options::Options;
use std::ffi::OsString;

/// Exit status when all is done.
pub const DONE: u8 = 0;
/// Exit status when the user's program or data is at fault.
pub const FAULT: u8 = 1;
/// Exit status when the command line is not understood.
pub const USAGE: u8 = 2;

/// Runs the command line (the program's name first) and gives the exit status.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(usage) => return console.usage(&usage),
    };
    console.set(options.message_format, options.color);
    let status = command::run(&options.command, console);
    console.close(status)
}
