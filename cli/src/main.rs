//! The command `miras`.

use miras_base::Diagnostic;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Address space for the stack of the work; pages are taken as they are used.
const STACK: usize = 256 << 20;

/// What the last panic said and where.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Begins again with a runtime folder where the environment names none. To choose an adapter Mesa asks for a display, and
/// the library that it asks complains on the error output, for each adapter, where XDG_RUNTIME_DIR is unset; a folder
/// that is not there keeps it quiet. A process cannot safely change its own environment.
#[cfg(target_os = "linux")]
fn with_runtime_folder() {
    use std::os::unix::process::CommandExt;
    const NAME: &str = "XDG_RUNTIME_DIR";
    if let (None, Ok(program)) = (std::env::var_os(NAME), std::env::current_exe()) {
        let mut arguments = std::env::args_os();
        let mut again = std::process::Command::new(program);
        if let Some(name) = arguments.next() {
            again.arg0(name);
        }
        // It comes back only where it failed: then the work is done with the complaints.
        let _ = again.args(arguments).env(NAME, "/nonexistent").exec();
    }
}

/// Does the work on a thread with room for deep formulas. A panic there is a bug of ours that reached the
/// user: it is told as one, with status 1.
fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    with_runtime_folder();
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
