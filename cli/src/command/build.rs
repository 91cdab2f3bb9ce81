//! `miras build`.

use super::session;
use crate::backend::{Asked, Backend};
use crate::console::Console;
use crate::options::{Build, Emitted};
use crate::{DONE, subject};
use base::{Diagnostic, DimEnv};
use driver::{Artefact, Made, Outcome, Session};
use emit_wgsl::{File, Structure, Target};
use miras_base as base;
use miras_driver as driver;
use miras_emit_wgsl as emit_wgsl;
use miras_host as host;
use miras_kernel as kernel;
use miras_tensor as tensor;

/// Writes a layer's kernels and plan.json.
pub(super) fn build(options: &Build, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    let made = work(options, &mut session).and_then(|made| {
        let files: Vec<(&str, &[u8])> =
            made.value.iter().map(|f| (f.name.as_str(), f.bytes.as_slice())).collect();
        host::write_files(&options.out, &files).map_err(|error| vec![error])?;
        Ok(made)
    });
    match made {
        Ok(made) => {
            for file in &made.value {
                console.say(&format!("wrote {}\n", options.out.join(&file.name).display()));
            }
            DONE
        }
        Err(errors) => console.tell(&errors, session.sources()),
    }
}

fn work(options: &Build, session: &mut Session<'_>) -> Outcome<Vec<File>> {
    asked(options).check()?;
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    let layer = subject.then(|subject| session.elaborate(&subject.program, &choice))?;
    let rule = layer.then(|layer| session.derive(layer))?;
    let plan = rule.then(|rule| session.plan(rule, asked(options).request()))?;
    plan.then(|plan| {
        let start = if options.continued { tensor::Start::State } else { tensor::Start::Weights };
        let mut said = Vec::new();
        let program = session.compile(&plan, &sizes(options), start)?.heard(&mut said);
        let one = |d| vec![d];
        let mut files = emitted(options.emit, &program).map_err(one)?;
        if let Some(program) = session.compile_blocks(&plan, &sizes(options))?.heard(&mut said) {
            files.extend(by_blocks(options.emit, &program, plan.blocks.tokens as usize).map_err(one)?);
        }
        Ok(Made::new(files, said))
    })
}

/// The files of a program by blocks, in either structure.
fn by_blocks(
    language: Emitted,
    program: &kernel::Verified<kernel::Program>,
    block: usize,
) -> Result<Vec<File>, Diagnostic> {
    let Some(target) = target(language) else {
        return Ok(vec![text_of(program, "blocks.txt")]);
    };
    let structures = [(Structure::OneKernel, "blocks"), (Structure::SeveralLaunches, "launches")];
    let mut files = Vec::new();
    for (structure, name) in structures {
        files.extend(kernels(target, program, structure, block, Some(name))?);
    }
    Ok(files)
}

/// The files of a program in a language, and the plan where the program is for a GPU.
fn emitted(language: Emitted, program: &kernel::Verified<kernel::Program>) -> Result<Vec<File>, Diagnostic> {
    match target(language) {
        Some(target) => kernels(target, program, Structure::OneKernel, 1, None),
        None => Ok(vec![text_of(program, "kernels.txt")]),
    }
}

/// The shading language; `None` for the program's own text.
fn target(language: Emitted) -> Option<Target> {
    match language {
        Emitted::Wgsl => Some(Target::Wgsl),
        Emitted::Spirv => Some(Target::Spirv),
        Emitted::Msl => Some(Target::Msl),
        Emitted::Hlsl => Some(Target::Hlsl),
        Emitted::Glsl => Some(Target::Glsl),
        Emitted::Ir => None,
    }
}

fn text_of(program: &kernel::Verified<kernel::Program>, name: &str) -> File {
    File { name: name.into(), bytes: Artefact::Program(program).text().into_bytes() }
}

/// The kernels of a program and their plan; with a name, in files of that name.
fn kernels(
    target: Target,
    program: &kernel::Verified<kernel::Program>,
    structure: Structure,
    block: usize,
    name: Option<&str>,
) -> Result<Vec<File>, Diagnostic> {
    let module = emit_wgsl::emit(program, structure)?;
    let mut files = emit_wgsl::translate(&module, target)?;
    if let Some(name) = name {
        files.iter_mut().for_each(|file| file.name = file.name.replacen("kernels", name, 1));
    }
    let plan = emit_wgsl::plan::json(&emit_wgsl::plan::plan(program, &module, block))?;
    let plan_name = name.map_or("plan.json".into(), |name| format!("{name}.plan.json"));
    files.push(File { name: plan_name, bytes: plan.into_bytes() });
    Ok(files)
}

fn asked(options: &Build) -> Asked {
    Asked {
        backend: Backend::Gpu,
        schedule: options.schedule,
        chunk: options.chunk,
        grad: false,
        allow_extra: false,
        structure: None,
    }
}

fn sizes(options: &Build) -> tensor::Sizes {
    let dims = DimEnv::from([("dk".into(), options.dk), ("dv".into(), options.dv)]);
    tensor::Sizes { dims }
}
