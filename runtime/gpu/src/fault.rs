//! What can go wrong on a device, as diagnostics.

use miras_base::Diagnostic;
use miras_base::diagnostic::code;

/// What wgpu reports of something that was being done.
pub(crate) fn of(error: &wgpu::Error, what: &str, device: &str) -> Diagnostic {
    match error {
        wgpu::Error::OutOfMemory { .. } => {
            Diagnostic::new(code::DEVICE_LOST, format!("{device} ran out of memory while {what}"))
                .with_help("run fewer streams, heads or tokens at a time, or use the cpu backend")
        }
        wgpu::Error::Internal { description, .. } => {
            Diagnostic::new(code::DEVICE_LOST, format!("{device} failed while {what}: {description}"))
                .with_help("update the driver, or use the cpu backend")
        }
        wgpu::Error::Validation { description, .. } => refused(what, description),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// No test can make a device run out of memory for certain; what is said then is tested here.
    #[test]
    fn missing_memory_is_told_from_a_mistake_of_ours() {
        let source = || "because".into();
        let told = |error: wgpu::Error| of(&error, "making buffers", "a device");
        let memory = told(wgpu::Error::OutOfMemory { source: source() });
        assert_eq!(memory.code, code::DEVICE_LOST);
        assert!(memory.message.contains("ran out of memory while making buffers"), "{memory}");
        let inside = told(wgpu::Error::Internal { source: source(), description: "no compiler".into() });
        assert!(inside.code == code::DEVICE_LOST && inside.message.contains("no compiler"), "{inside}");
        let ours = told(wgpu::Error::Validation { source: source(), description: "no layout".into() });
        assert_eq!(ours.code, code::BUG);
    }
}
