//! `miras build`.

use super::session;
use crate::backend::{Asked, Backend};
use crate::console::Console;
use crate::options::{Build, Emitted};
use crate::{DONE, subject};
use base::{Diagnostic, DimEnv};
use driver::{Artefact, Made, Outcome, Session};
use emit_wgsl::{File, Target};
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
        let program = session.compile(&plan, &sizes(options), start)?;
        program
            .then(|program| Ok(Made::new(emitted(options.emit, &program).map_err(|d| vec![d])?, Vec::new())))
    })
}

/// The files of a program in a language, and the plan where the program is for a GPU.
fn emitted(language: Emitted, program: &kernel::Verified<kernel::Program>) -> Result<Vec<File>, Diagnostic> {
    let target = match language {
        Emitted::Wgsl => Target::Wgsl,
        Emitted::Spirv => Target::Spirv,
        Emitted::Msl => Target::Msl,
        Emitted::Hlsl => Target::Hlsl,
        Emitted::Glsl => Target::Glsl,
        Emitted::Ir => {
            let text = Artefact::Program(program).text();
            return Ok(vec![File { name: "kernels.txt".into(), bytes: text.into_bytes() }]);
        }
    };
    let module = emit_wgsl::emit(program)?;
    let mut files = emit_wgsl::translate(&module, target)?;
    let plan = emit_wgsl::plan::json(&emit_wgsl::plan::plan(program, &module))?;
    files.push(File { name: "plan.json".into(), bytes: plan.into_bytes() });
    Ok(files)
}

fn asked(options: &Build) -> Asked {
    Asked {
        backend: Backend::Gpu,
        schedule: options.schedule,
        chunk: options.chunk,
        grad: false,
        allow_extra: false,
    }
}

fn sizes(options: &Build) -> tensor::Sizes {
    let dims = DimEnv::from([("dk".into(), options.dk), ("dv".into(), options.dv)]);
    tensor::Sizes { dims }
}
