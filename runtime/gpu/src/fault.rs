//! What can go wrong on a device, as diagnostics.

use miras_base::Diagnostic;
use miras_base::diagnostic::code;

/// The device ran out of memory while doing something.
pub(crate) fn out_of_memory(what: &str, device: &str) -> Diagnostic {
    Diagnostic::new(code::DEVICE_LOST, format!("{device} ran out of memory while {what}"))
        .with_help("run fewer streams, heads or tokens at a time, or use the cpu backend")
}

/// The device was lost.
pub(crate) fn lost(why: &str, device: &str) -> Diagnostic {
    Diagnostic::new(code::DEVICE_LOST, format!("{device} was lost: {why}"))
        .with_help("run it again; if it is lost again, update the driver or use the cpu backend")
}

/// A limit of the device.
pub(crate) fn limit(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code::DEVICE_LIMIT, what)
        .with_help("use smaller dimensions, fewer tokens at a time, or the cpu backend")
}

/// wgpu refuses what this crate asks for.
pub(crate) fn refused(what: &str, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("wgpu refuses {what}: {error}"))
}
