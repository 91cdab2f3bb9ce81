//! Every text is parsed and validated by naga before anybody sees it.

use miras_base::Diagnostic;
use naga::front::wgsl;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

/// A module as naga read it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub module: naga::Module,
    pub info: ModuleInfo,
}

/// Refuses what is not WGSL under WebGPU's defaults: a mistake of this crate.
pub(crate) fn check(name: &str, text: &str) -> Result<Checked, Diagnostic> {
    let module = wgsl::parse_str(text).map_err(|e| refused(name, &e.emit_to_string(text)))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module).map_err(|e| refused(name, &e.emit_to_string(text)))?;
    Ok(Checked { module, info })
}

fn refused(name: &str, reason: &str) -> Diagnostic {
    Diagnostic::bug(format!("naga refuses the shader of `{name}`: {}", reason.trim()))
}
