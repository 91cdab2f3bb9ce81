//! `miras show`.

use super::session;
use crate::backend::{Asked, Backend};
use crate::console::Console;
use crate::options::{Show, Shown};
use crate::{DONE, subject};
use base::{Diagnostic, DimEnv};
use driver::{Artefact, Outcome, Session};
use miras_base as base;
use miras_cpu as cpu;
use miras_driver as driver;
use miras_emit_wgsl as emit_wgsl;
use miras_tensor as tensor;

/// Shows one stage; the rooms behind it are not run.
pub(super) fn show(options: &Show, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    match work(options, &mut session) {
        // Notes and warnings are for `check` and `explain` to tell.
        Ok(made) => {
            console.say(&made.value);
            DONE
        }
        Err(errors) => console.tell(&errors, session.sources()),
    }
}

fn work(options: &Show, session: &mut Session<'_>) -> Outcome<String> {
    asked(options).check()?;
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    if options.stage == Shown::Ast {
        let file = subject.value.file().ok_or_else(|| vec![Diagnostic::bug("the program has no file")])?;
        return Ok(session.parse(file)?.map(|tree| Artefact::Tree(&tree).text()));
    }
    let layer = subject.then(|subject| session.elaborate(&subject.program, &choice))?;
    if options.stage == Shown::Spec {
        return Ok(layer.map(|layer| Artefact::Layer(&layer).text()));
    }
    let rule = layer.then(|layer| session.derive(layer))?;
    if options.stage == Shown::Rule {
        return Ok(rule.map(|rule| Artefact::Rule(&rule).text()));
    }
    let plan = rule.then(|rule| session.plan(rule, asked(options).request()))?;
    if options.stage == Shown::Plan {
        return Ok(plan.map(|plan| Artefact::Plan(&plan).text()));
    }
    plan.then(|plan| {
        let graph = session.graph(&plan, &sizes(options), tensor::Start::Weights)?;
        if options.stage == Shown::Tensor {
            return Ok(graph.map(|graph| Artefact::Graph(graph.graph()).text()));
        }
        let program = graph.then(|graph| session.program(&graph, &plan.rule.layer.name))?;
        if options.stage == Shown::Kernel {
            return Ok(program.map(|program| Artefact::Program(&program).text()));
        }
        program.then(|program| {
            let text = match options.stage {
                Shown::Wgsl => emit_wgsl::emit(&program, emit_wgsl::Structure::OneKernel)
                    .and_then(|module| wgsl(&module)),
                _ => cpu::listing(&program),
            };
            Ok(driver::Made::new(text.map_err(|d| vec![d])?, Vec::new()))
        })
    })
}

/// The text of a module, one file after the other.
fn wgsl(module: &emit_wgsl::Module) -> Result<String, Diagnostic> {
    let files = emit_wgsl::translate(module, emit_wgsl::Target::Wgsl)?;
    Ok(files.iter().map(|f| String::from_utf8_lossy(&f.bytes).into_owned()).collect::<Vec<_>>().join("\n"))
}

fn asked(options: &Show) -> Asked {
    Asked {
        backend: Backend::Cpu,
        schedule: options.schedule,
        chunk: options.chunk,
        grad: false,
        allow_extra: false,
        structure: None,
    }
}

fn sizes(options: &Show) -> tensor::Sizes {
    let mut dims = DimEnv::new();
    dims.insert("dk".into(), options.dk);
    dims.insert("dv".into(), options.dv);
    tensor::Sizes { dims }
}
