//! Every golden case that has a kernel program, forward, by the case's schedule.

use crate::device;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_driver::{Choice, Session};
use miras_gpu::{Compiled, Device, execute};
use miras_host as host;
use miras_schedule::{Request, Schedule};
use miras_spec::Library;
use miras_tensor as tensor;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[test]
fn golden_cases_come_out_on_the_device() {
    let Some(device) = device() else { return };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(golden).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|f| f.is_dir());
    folders.sort();
    let (mut good, mut limited, mut wrong) = (0, Vec::new(), Vec::new());
    for folder in &folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        match run(&device, folder) {
            Ok(found) => match differences(folder, &found) {
                None => good += 1,
                Some(what) => wrong.push(format!("{name}: {what}")),
            },
            // What has no kernel program runs on no device; the suite knows these cases by name.
            Err(errors) if errors.iter().all(|d| d.code == code::UNSUPPORTED) => limited.push(name),
            Err(errors) => wrong.push(format!("{name}: {errors:?}")),
        }
    }
    eprintln!("{good} cases are right; without a kernel program: {limited:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), folders.len(), wrong.join("\n"));
    assert!(good > 0);
}

fn facts(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("case.json")).unwrap()).unwrap()
}

fn run(device: &Arc<Device>, folder: &Path) -> Result<host::Bundle, Vec<Diagnostic>> {
    let mut session = Session::new(Library::standard());
    let root = session.add("spec.miras", &std::fs::read_to_string(folder.join("spec.miras")).unwrap());
    let mut nothing = |path: &str| Err(format!("nothing but this text is there, not `{path}`"));
    let program = session.load(root, &mut nothing)?.value;
    let rule = session.rule(&program, &Choice::default())?.value;
    let facts = facts(folder);
    let request = match (facts["schedule"].as_str(), facts["chunk"].as_u64()) {
        (Some("recurrent"), _) => Request::Recurrent,
        (Some("chunked"), chunk) => Request::Chunked(chunk.and_then(|c| u32::try_from(c).ok())),
        _ => Request::Default,
    };
    let plan = session.plan(rule, request)?.value;
    let schedule = match plan.schedule {
        Schedule::Recurrent => host::Schedule::Recurrent,
        Schedule::ChunkedExact(c) | Schedule::ChunkedFrozen(c) => host::Schedule::Chunked(c),
    };
    let mut data = host::read(&folder.join("inputs.safetensors")).map_err(|d| vec![d])?;
    let gradients: Vec<String> = data.names().filter(|n| n.starts_with("grad.")).map(String::from).collect();
    gradients.iter().for_each(|n| drop(data.remove(n)));
    let options = host::BindOptions { width: host::Width::F32, schedule, ..host::BindOptions::default() };
    let bound = host::bind(&plan.rule, &data, &options)?;
    let sizes = tensor::Sizes { dims: bound.dims.clone() };
    let start = if bound.continued { tensor::Start::State } else { tensor::Start::Weights };
    let program = session.compile(&plan, &sizes, start)?.value;
    let compiled = Compiled::new(device, &program).map_err(|d| vec![d])?;
    judge(&compiled);
    execute(&compiled, &plan.rule, &bound).map_err(|d| vec![d])
}

/// Browsers are stricter than naga about barriers; their compiler judges every text where it is installed.
fn judge(compiled: &Compiled) {
    let text = tempfile::NamedTempFile::with_suffix(".wgsl").unwrap();
    std::fs::write(text.path(), &compiled.module().wgsl).unwrap();
    // Where tint is not installed it cannot be started.
    if let Ok(told) = Command::new("tint").args(["--format", "wgsl"]).arg(text.path()).output() {
        let why = String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success(), "tint refuses {}:\n{why}", compiled.module().name);
    }
}

/// What is wrong: `max |found - expected| <= rtol * max |expected| + atol`, tensor by tensor.
fn differences(folder: &Path, found: &host::Bundle) -> Option<String> {
    let facts = facts(folder);
    let (relative, absolute) = (facts["rtol"].as_f64().unwrap(), facts["atol"].as_f64().unwrap());
    let expected = host::read(&folder.join("expected.safetensors")).unwrap();
    expected.iter().filter(|(name, _)| !name.starts_with("d.")).find_map(|(name, expected)| {
        let Some(found) = found.get(name) else { return Some(format!("`{name}` is missing")) };
        let (Some(a), Some(b)) = (found.f64s(), expected.f64s()) else {
            return (found.i64s() != expected.i64s()).then(|| format!("`{name}` has other integers"));
        };
        let allowed = relative * b.iter().fold(0.0_f64, |m, x| m.max(x.abs())) + absolute;
        let near = |(x, y): (&f64, &f64)| (x - y).abs() <= allowed;
        let good = found.shape == expected.shape && a.iter().zip(b.iter()).all(near);
        let worst = a.iter().zip(b.iter()).map(|(x, y)| (x - y).abs()).fold(0.0_f64, f64::max);
        (!good).then(|| format!("`{name}` is off by {worst:.3e}, allowed {allowed:.3e}"))
    })
}
