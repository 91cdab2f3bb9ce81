//! The kernels of every golden case, judged by whoever else reads WGSL and SPIR-V: Tint, which browsers use, and the
//! validator of SPIR-V. Judges that are not installed have their trials listed as ignored.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_driver::{Choice, Session};
use miras_emit_wgsl::{Module, Structure, Target, emit, translate};
use miras_host as host;
use miras_schedule::Request;
use miras_spec::Library;
use miras_tensor as tensor;
use miras_tests::{Verdict, entries, folder, pipeline, text};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A program that judges a language.
#[derive(Clone, Copy)]
struct Judge {
    tool: &'static str,
    options: &'static [&'static str],
    language: Target,
}

const JUDGES: [Judge; 2] = [
    Judge { tool: "tint", options: &["--format", "wgsl"], language: Target::Wgsl },
    Judge { tool: "spirv-val", options: &["--target-env", "vulkan1.1"], language: Target::Spirv },
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn trials() -> Result<Vec<Trial>, String> {
    let cases: Vec<PathBuf> = entries(&folder().join("golden"))?.into_iter().filter(|p| p.is_dir()).collect();
    let mut trials = Vec::new();
    for judge in JUDGES {
        let absent = Command::new(judge.tool).arg("--version").output().is_err();
        if absent {
            eprintln!("not run: the trials of {}, which is not installed", judge.tool);
        }
        for case in cases.clone() {
            let name = case.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let trial = Trial::test(format!("{}/{name}", judge.tool), move || {
                judge.accepts(&case).map_err(Failed::from)
            });
            trials.push(trial.with_ignored_flag(absent));
        }
    }
    Ok(trials)
}

impl Judge {
    fn accepts(self, case: &Path) -> Verdict {
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        for module in modules(case).map_err(|errors| pipeline::told(&errors))? {
            self.accepts_module(&module, place.path())?;
        }
        Ok(())
    }

    fn accepts_module(self, module: &Module, place: &Path) -> Verdict {
        for file in translate(module, self.language).map_err(|d| d.to_string())? {
            let path = place.join(&file.name);
            std::fs::write(&path, &file.bytes).map_err(|e| e.to_string())?;
            let told = Command::new(self.tool).args(self.options).arg(&path).output();
            let told = told.map_err(|e| e.to_string())?;
            if !told.status.success() {
                let why = String::from_utf8_lossy(&told.stderr);
                return Err(format!("{} refuses `{}`:\n{why}", self.tool, module.name));
            }
        }
        Ok(())
    }
}

/// The kernels of a case, by its schedule and for its sizes, by blocks where it has any, in either structure; where it has
/// gradients, those of its gradients too.
fn modules(case: &Path) -> pipeline::Fallible<Vec<Module>> {
    let one = |d| vec![d];
    let read = |name: &str| text(&case.join(name)).unwrap_or_default();
    let facts: serde_json::Value = serde_json::from_str(&read("case.json")).unwrap_or_default();
    let mut session = Session::new(Library::standard());
    let root = session.add("spec.miras", &read("spec.miras"));
    let mut nothing = |path: &str| Err(format!("nothing but this text is there, not `{path}`"));
    let program = session.load(root, &mut nothing)?.value;
    let rule = session.rule(&program, &Choice::default())?.value;
    let request = match (facts["schedule"].as_str(), facts["chunk"].as_u64()) {
        (Some("recurrent"), _) => Request::Recurrent,
        (Some("chunked"), chunk) => Request::Chunked(chunk.and_then(|c| u32::try_from(c).ok())),
        _ => Request::Default,
    };
    let plan = session.plan(rule, request)?.value;
    let schedule = plan.schedule.chunk().map_or(host::Schedule::Recurrent, host::Schedule::Chunked);
    let data = host::read(&case.join("inputs.safetensors")).map_err(one)?;
    let options = host::BindOptions {
        width: host::Width::F32,
        schedule,
        allow_extra: true,
        ..host::BindOptions::default()
    };
    let bound = host::bind(&plan.rule, &data, &options)?;
    let sizes = tensor::Sizes { dims: bound.dims.clone() };
    let start = if bound.continued { tensor::Start::State } else { tensor::Start::Weights };
    let mut programs = vec![session.compile(&plan, &sizes, start)?.value];
    let gradients = facts["grad"].as_bool() == Some(true);
    if gradients && plan.rule.layer.memory.history {
        programs.extend(session.history_back(&plan, &sizes)?.value);
    } else if gradients {
        let tokens = session.backward(&plan, &sizes, start, &[])?.value;
        for all in [Some(tokens), session.backward_blocks(&plan, &sizes)?.value].into_iter().flatten() {
            programs.extend([all.start, all.advance, all.back, all.before]);
            programs.extend(all.tape);
        }
    }
    let tokens = plan.blocks.tokens as usize;
    if bound.streams.iter().any(|s| s.len() >= tokens) {
        programs.extend(session.compile_blocks(&plan, &sizes)?.value);
    }
    let mut modules = Vec::new();
    for program in &programs {
        for structure in Structure::ALL {
            let module = emit(program, structure).map_err(one)?;
            if module.structure == structure {
                modules.push(module);
            }
        }
    }
    Ok(modules)
}
