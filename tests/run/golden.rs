//! Every folder of `golden/` on every backend, by the case's schedule and, where the case is exact, by others.
//!
//! The GPU in tests is mostly one in software, whose compiler takes ten seconds for the gradients of a network: it runs
//! by the case's own schedule only, and gradients of the cases of [`GPU_GRADIENTS`] only; the others are listed as ignored,
//! and run with `--include-ignored`. Without an adapter all of the GPU's trials are listed so; with
//! `MIRAS_REQUIRE_GPU=1` they run, and fail.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_tests::compare::{Tolerance, differences};
use miras_tests::limits::{Limit, table};
use miras_tests::pipeline::{self, Loaded};
use miras_tests::{Verdict, adapter_or_required, entries, folder, text};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Cases whose gradients are run on the GPU: one for every class and kind of program.
const GPU_GRADIENTS: [&str; 8] = [
    "edge-T1-matrix",
    "edge-hard_reset-elastic",
    "packed-deltaproduct",
    "ret-kl-chunk",
    "state-mid_chunk-huber",
    "sys-gla-chunk",
    "sys-hopfield",
    "sys-mesa-rec",
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
    let limits = table()?;
    let device = adapter_or_required();
    let mut spoken = vec![false; limits.len()];
    let mut trials = Vec::new();
    for path in entries(&folder().join("golden"))?.into_iter().filter(|p| p.is_dir()) {
        for task in Case::read(&path)?.tasks() {
            let rows: Vec<usize> = (0..limits.len()).filter(|i| task.is_limited_by(&limits[*i])).collect();
            rows.iter().for_each(|i| spoken[*i] = true);
            let rows: Vec<Limit> = rows.into_iter().map(|i| limits[i].clone()).collect();
            let slow = task.grad && !GPU_GRADIENTS.contains(&task.case.name.as_str());
            let ignored = task.backend == Backend::Gpu && (!device || slow);
            let trial = Trial::test(task.name(), move || task.verdict(&rows).map_err(Failed::from));
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    trials.push(Trial::test("devices", move || devices(device).map_err(Failed::from)));
    for (limit, _) in limits.into_iter().zip(spoken).filter(|(_, spoken)| !spoken) {
        let what = format!("no golden case is limited by the row: {}", limit.row);
        trials.push(Trial::test(format!("limits/{}", limit.code), move || Err(Failed::from(what))));
    }
    Ok(trials)
}

/// `miras devices` ends well whatever is there; an adapter that there is has been opened and checked.
fn devices(there: bool) -> Verdict {
    let ran = Command::new(env!("CARGO_BIN_EXE_miras-under-test")).arg("devices").output();
    let ran = ran.map_err(|e| e.to_string())?;
    let told = String::from_utf8_lossy(&ran.stdout);
    let adapter = !there || told.contains("a known computation came out right");
    let flags = ["--backend auto: ", "--backend gpu: "].iter().all(|flag| told.contains(flag));
    if ran.status.success() && adapter && flags { Ok(()) } else { Err(format!("it says: {told}")) }
}

/// A folder of `golden/`.
#[derive(Clone)]
struct Case {
    path: PathBuf,
    name: String,
    schedule: Option<ScheduleName>,
    chunk: Option<u32>,
    grad: bool,
    exact: bool,
    /// Of the reference.
    wide: Tolerance,
    /// Of backends in float32.
    narrow: Tolerance,
}

/// The absolute part of the reference's tolerance.
const WIDE_ABSOLUTE: f64 = 1e-12;

impl Case {
    fn read(path: &Path) -> Result<Case, String> {
        let told = |what: &str| format!("{}: case.json: {what}", path.display());
        let facts: serde_json::Value =
            serde_json::from_str(&text(&path.join("case.json"))?).map_err(|e| told(&e.to_string()))?;
        let number = |key: &str| facts[key].as_f64().ok_or_else(|| told(key));
        let truth = |key: &str| facts[key].as_bool().ok_or_else(|| told(key));
        let schedule = match facts["schedule"].as_str() {
            Some("recurrent") => Some(ScheduleName::Recurrent),
            Some("chunked") => Some(ScheduleName::Chunked),
            None if facts["schedule"].is_null() => None,
            Some(_) | None => return Err(told("schedule")),
        };
        let chunk = match &facts["chunk"] {
            serde_json::Value::Null => None,
            value => Some(value.as_u64().and_then(|c| u32::try_from(c).ok()).ok_or_else(|| told("chunk"))?),
        };
        let (reference, grad) = (number("reference_rtol")?, truth("grad")?);
        let gradients = if grad { number("rtol_grad")? } else { 0.0 };
        Ok(Case {
            path: path.to_path_buf(),
            name: path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
            schedule,
            chunk,
            grad,
            exact: truth("exact")?,
            wide: Tolerance { values: reference, gradients: reference, absolute: WIDE_ABSOLUTE },
            narrow: Tolerance { values: number("rtol")?, gradients, absolute: number("atol")? },
        })
    }

    /// What is run: both backends, both parts, and all schedules that must give the case's numbers.
    fn tasks(&self) -> Vec<Task> {
        // A chunk length says nothing to the recurrent schedule, and the command refuses it there.
        let chunk = self.chunk.filter(|_| self.schedule != Some(ScheduleName::Recurrent));
        let mut schedules = vec![(self.schedule, chunk)];
        if self.exact {
            let more = [
                (ScheduleName::Recurrent, None),
                (ScheduleName::Chunked, Some(1)),
                (ScheduleName::Chunked, Some(5)),
            ];
            schedules.extend(more.map(|(name, chunk)| (Some(name), chunk)));
            schedules.dedup();
        }
        let mut tasks = Vec::new();
        for backend in [Backend::Reference, Backend::Cpu, Backend::Gpu] {
            let count = if backend == Backend::Gpu { 1 } else { schedules.len() };
            for (schedule, chunk) in schedules.iter().copied().take(count) {
                for grad in [false, true].into_iter().take(if self.grad { 2 } else { 1 }) {
                    tasks.push(Task { case: self.clone(), backend, schedule, chunk, grad });
                }
            }
        }
        tasks
    }
}

/// One run of a case.
struct Task {
    case: Case,
    backend: Backend,
    schedule: Option<ScheduleName>,
    chunk: Option<u32>,
    grad: bool,
}

impl Task {
    fn backend(&self) -> &'static str {
        match self.backend {
            Backend::Reference => "reference",
            Backend::Cpu => "cpu",
            Backend::Gpu => "gpu",
            Backend::Auto => "auto",
        }
    }

    fn part(&self) -> &'static str {
        if self.grad { "gradient" } else { "forward" }
    }

    fn name(&self) -> String {
        let schedule = match (self.schedule, self.chunk) {
            (None, _) => "default".to_string(),
            (Some(ScheduleName::Recurrent), _) => "recurrent".to_string(),
            (Some(ScheduleName::Chunked), None) => "chunked".to_string(),
            (Some(ScheduleName::Chunked), Some(c)) => format!("chunked-{c}"),
        };
        format!("{}/{}/{schedule}/{}", self.case.name, self.backend(), self.part())
    }

    fn is_limited_by(&self, limit: &Limit) -> bool {
        limit.speaks_of(self.backend(), self.part(), &self.case.name)
    }

    fn verdict(&self, limits: &[Limit]) -> Verdict {
        let results = self.results();
        let limit = match limits {
            [] => None,
            [limit] => Some(limit),
            _ => return Err("several rows of limits.txt speak of this case".into()),
        };
        match (results, limit) {
            (Ok(results), None) => self.compare(&results),
            (Err(errors), None) => Err(pipeline::told(&errors)),
            (Ok(_), Some(limit)) => {
                Err(format!("it works, so this row of limits.txt has to go: {}", limit.row))
            }
            (Err(errors), Some(limit)) => match pipeline::codes(&errors).as_slice() {
                [code] if *code == limit.code => Ok(()),
                _ => {
                    Err(format!("expected {} and nothing else, got {}", limit.code, pipeline::told(&errors)))
                }
            },
        }
    }

    fn results(&self) -> pipeline::Fallible<host::Bundle> {
        let path = |name: &str| self.case.path.join(name);
        let program = text(&path("spec.miras")).unwrap_or_default();
        let mut loaded: Loaded = pipeline::load("spec.miras", &program, &Choice::default())?;
        let mut data = host::read(&path("inputs.safetensors")).map_err(|d| vec![d])?;
        if !self.grad {
            let names: Vec<String> =
                data.names().filter(|n| n.starts_with("grad.")).map(String::from).collect();
            names.iter().for_each(|n| drop(data.remove(n)));
        }
        let asked = Asked {
            backend: self.backend,
            schedule: self.schedule,
            chunk: self.chunk,
            grad: self.grad,
            allow_extra: false,
            structure: None,
        };
        Ok(loaded.run(&data, &asked)?.results)
    }

    fn compare(&self, results: &host::Bundle) -> Verdict {
        let expected = host::read(&self.case.path.join("expected.safetensors")).map_err(|d| d.to_string())?;
        let wanted = expected.iter().filter(|(name, _)| self.grad || !name.starts_with("d."));
        let wanted: host::Bundle = wanted.map(|(name, t)| (name, host::Tensor::clone(t))).collect();
        let tolerance = match self.backend {
            Backend::Reference => self.case.wide,
            Backend::Cpu | Backend::Gpu | Backend::Auto => self.case.narrow,
        };
        let wrong = differences(results, &wanted, tolerance);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}
