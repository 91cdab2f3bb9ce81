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
    let need = workgroup_memory(&module);
    if need > MAX_WORKGROUP_MEMORY {
        return Err(Diagnostic::bug(format!(
            "the shader of `{name}` takes {need} bytes of workgroup memory; WebGPU's default limit is {MAX_WORKGROUP_MEMORY}"
        )));
    }
    Ok(Checked { module, info })
}

/// Bytes of workgroup memory that every device allows.
pub const MAX_WORKGROUP_MEMORY: u32 = 16 << 10;

/// Bytes of workgroup memory of a module, all entry points together; wgpu does not count them.
pub(crate) fn workgroup_memory(module: &naga::Module) -> u32 {
    let mut layouter = naga::proc::Layouter::default();
    if layouter.update(module.to_ctx()).is_err() {
        return u32::MAX;
    }
    let own = module.global_variables.iter().filter(|(_, v)| v.space == naga::AddressSpace::WorkGroup);
    own.map(|(_, v)| layouter[v.ty].size.next_multiple_of(16)).fold(0, u32::saturating_add)
}

fn refused(name: &str, reason: &str) -> Diagnostic {
    Diagnostic::bug(format!("naga refuses the shader of `{name}`: {}", reason.trim()))
}
