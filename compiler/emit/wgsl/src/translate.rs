//! The module in other shading languages, by naga.

use crate::{GIVEN, Module, RUN, TASKS, WORK};
use miras_base::Diagnostic;
use naga::ResourceBinding;
use naga::back::{glsl, hlsl, msl, spv};
use std::fmt::Display;

/// A shading language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The text itself.
    Wgsl,
    /// SPIR-V 1.1, one module with all entry points; descriptor set 0, the bindings of the text.
    Spirv,
    /// Metal 2.0; buffer n is binding n. As naga writes it.
    Msl,
    /// HLSL for shader model 5.1: binding n is t, u or b register n, space 0. As naga writes it.
    Hlsl,
    /// GLSL ES 3.1, one text per entry point. As naga writes it.
    Glsl,
}

/// A file of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The files of a translation, named `kernels.*`.
///
/// # Errors
/// E0901 where naga cannot write the module in that language.
pub fn translate(module: &Module, target: Target) -> Result<Vec<File>, Diagnostic> {
    let one = |name: &str, bytes: Vec<u8>| vec![File { name: name.into(), bytes }];
    Ok(match target {
        Target::Wgsl => one("kernels.wgsl", module.wgsl.clone().into_bytes()),
        Target::Spirv => one("kernels.spv", spirv(module)?),
        Target::Msl => one("kernels.metal", metal(module)?.into_bytes()),
        Target::Hlsl => one("kernels.hlsl", directx(module)?.into_bytes()),
        Target::Glsl => {
            let files = module.stages.iter().map(|stage| {
                let text = opengl(module, &stage.entry)?;
                Ok(File { name: format!("kernels.{}.comp", stage.entry), bytes: text.into_bytes() })
            });
            files.collect::<Result<_, Diagnostic>>()?
        }
    })
}

fn refused(module: &Module, language: &str, error: &dyn Display) -> Diagnostic {
    Diagnostic::bug(format!("naga cannot write `{}` as {language}: {error}", module.name))
}

fn spirv(module: &Module) -> Result<Vec<u8>, Diagnostic> {
    let checked = &module.checked;
    let words = spv::write_vec(&checked.module, &checked.info, &spv::Options::default(), None);
    let words = words.map_err(|e| refused(module, "SPIR-V", &e))?;
    Ok(words.iter().flat_map(|w| w.to_le_bytes()).collect())
}

fn metal(module: &Module) -> Result<String, Diagnostic> {
    let slot = |binding: u32| {
        let target = msl::BindTarget {
            buffer: u8::try_from(binding).ok(),
            mutable: binding == WORK,
            ..Default::default()
        };
        (ResourceBinding { group: 0, binding }, target)
    };
    let resources = msl::EntryPointResources {
        resources: [GIVEN, WORK, RUN, TASKS].into_iter().map(slot).collect(),
        sizes_buffer: Some(8),
        ..Default::default()
    };
    let entries = module.stages.iter().map(|s| (s.entry.clone(), resources.clone())).collect();
    let options = msl::Options {
        lang_version: (2, 0),
        per_entry_point_map: entries,
        fake_missing_bindings: false,
        ..Default::default()
    };
    let checked = &module.checked;
    let written =
        msl::write_string(&checked.module, &checked.info, &options, &msl::PipelineOptions::default());
    Ok(written.map_err(|e| refused(module, "MSL", &e))?.0)
}

fn directx(module: &Module) -> Result<String, Diagnostic> {
    let slot = |binding: u32| {
        let target = hlsl::BindTarget { space: 0, register: binding, ..Default::default() };
        (ResourceBinding { group: 0, binding }, target)
    };
    let options = hlsl::Options {
        binding_map: [GIVEN, WORK, RUN, TASKS].into_iter().map(slot).collect(),
        fake_missing_bindings: false,
        ..Default::default()
    };
    let mut text = String::new();
    let pipeline = hlsl::PipelineOptions::default();
    let mut writer = hlsl::Writer::new(&mut text, &options, &pipeline);
    let checked = &module.checked;
    writer.write(&checked.module, &checked.info, None).map_err(|e| refused(module, "HLSL", &e))?;
    Ok(text)
}

fn opengl(module: &Module, entry: &str) -> Result<String, Diagnostic> {
    let slot =
        |binding: u32| (ResourceBinding { group: 0, binding }, u8::try_from(binding).unwrap_or(u8::MAX));
    let options = glsl::Options {
        version: glsl::Version::new_gles(310),
        binding_map: [GIVEN, WORK, RUN, TASKS].into_iter().map(slot).collect(),
        ..Default::default()
    };
    let pipeline = glsl::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: entry.to_string(),
        multiview: None,
    };
    let mut text = String::new();
    let checked = &module.checked;
    let policies = naga::proc::BoundsCheckPolicies::default();
    let writer = glsl::Writer::new(&mut text, &checked.module, &checked.info, &options, &pipeline, policies);
    let written = writer.and_then(|mut w| w.write());
    written.map_err(|e| refused(module, "GLSL", &e))?;
    Ok(text)
}
