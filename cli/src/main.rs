//! The command `miras`.

use miras_base::Diagnostic;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Address space for the stack of the work; pages are taken as they are used.
const STACK: usize = 256 << 20;

/// What the last panic said and where.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Does the work on a thread with room for deep formulas. A panic there is a bug of ours that reached the
/// user: it is told as one, with status 1.
fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let work = || miras_cli::main_with(std::env::args_os(), &mut miras_cli::Console::of_process());
    let done = match std::thread::Builder::new().name("miras".into()).stack_size(STACK).spawn(work) {
        Ok(thread) => thread.join(),
        Err(_) => std::panic::catch_unwind(work),
    };
    ExitCode::from(done.unwrap_or_else(|_| {
        let what = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone();
        miras_cli::Console::of_process().report_bug(&Diagnostic::bug(what));
        1
    }))
}
