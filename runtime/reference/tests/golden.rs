//! Every golden case through the reference, one test each: `cargo test -p miras-reference --test golden -- NAME`.
//!
//! A case fails when any step before the comparison fails, when a listed tensor is missing or has another
//! shape, or when max |out - expected| > reference_rtol * max |expected| + 1e-12. Exact cases are run by both
//! schedules and several chunk lengths.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_base::{Diagnostic, SourceMap};
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use std::path::{Path, PathBuf};

const ATOL: f64 = 1e-12;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let trials = match cases(&folder) {
        Ok(cases) => cases.into_iter().map(trial).collect(),
        Err(why) => vec![Trial::test("the folder of cases", move || Err(why.into()))],
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The folders of cases; none is an error, so that a moved folder cannot pass for a success.
fn cases(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut cases: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| p.join("case.json").is_file()).collect();
    cases.sort();
    if cases.is_empty() { Err(format!("no case in {}", folder.display())) } else { Ok(cases) }
}

fn trial(folder: PathBuf) -> Trial {
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Trial::test(name, move || run(&folder).map_err(Failed::from))
}

struct Case {
    meta: serde_json::Value,
    rule: rule::UpdateRule,
    inputs: host::Bundle,
    expected: host::Bundle,
}

fn run(folder: &Path) -> Result<(), String> {
    let case = read(folder)?;
    let mut problems = Vec::new();
    for schedule in schedules(&case)? {
        let found = results(&case, schedule).map_err(|e| format!("{schedule:?}: {e}"))?;
        let rtol = case.meta["reference_rtol"].as_f64().ok_or("no reference_rtol")?;
        let wrong = case
            .expected
            .iter()
            .filter_map(|(name, expected)| compare(name, found.get(name), expected, rtol));
        problems.extend(wrong.map(|p| format!("{schedule:?}: {p}")));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn read(folder: &Path) -> Result<Case, String> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"));
    let bundle = |name: &str| host::read(&folder.join(name)).map_err(|d| tell(&[d]));
    let meta = serde_json::from_str(&text("case.json")?).map_err(|e| format!("case.json: {e}"))?;
    let mut sources = SourceMap::new();
    let root = sources.add("spec.miras", text("spec.miras")?);
    let mut nothing = |path: &str| Err(format!("a golden case uses no files, but asks for {path}"));
    let library = spec::Library::standard();
    let (program, problems) = spec::Program::load(&mut sources, root, &library, &mut nothing);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(tell(&problems));
    }
    let (layer, _) = program.elaborate(&mut sources, None, &[]).map_err(|e| tell(&e))?;
    let rule = rule::derive(layer).map_err(|e| tell(&e))?;
    Ok(Case { meta, rule, inputs: bundle("inputs.safetensors")?, expected: bundle("expected.safetensors")? })
}

fn schedules(case: &Case) -> Result<Vec<host::Schedule>, String> {
    let chunk =
        case.meta["chunk"].as_u64().map(|c| u32::try_from(c).map_err(|e| e.to_string())).transpose()?;
    let own = match case.meta["schedule"].as_str() {
        Some("recurrent") => host::Schedule::Recurrent,
        Some("chunked") => host::Schedule::Chunked(chunk.unwrap_or(case.rule.layer.chunk)),
        other => return Err(format!("schedule {other:?}")),
    };
    let mut all = vec![own];
    if case.meta["exact"].as_bool() == Some(true) {
        all.extend([host::Schedule::Recurrent, host::Schedule::Chunked(1), host::Schedule::Chunked(5)]);
        all.dedup();
    }
    Ok(all)
}

fn results(case: &Case, schedule: host::Schedule) -> Result<host::Bundle, String> {
    let grad = case.meta["grad"].as_bool() == Some(true);
    let options = host::BindOptions { schedule, grad, ..host::BindOptions::default() };
    let bound = host::bind(&case.rule, &case.inputs, &options).map_err(|e| tell(&e))?;
    miras_reference::run(&case.rule, &bound).map_err(|e| tell(&e))
}

fn compare(
    name: &str,
    found: Option<&std::sync::Arc<host::Tensor>>,
    expected: &host::Tensor,
    rtol: f64,
) -> Option<String> {
    let Some(found) = found else { return Some(format!("{name} is missing")) };
    if found.shape != expected.shape {
        return Some(format!("{name} has shape {:?}, expected {:?}", found.shape, expected.shape));
    }
    let (Some(a), Some(b)) = (found.f64s(), expected.f64s()) else {
        return Some(format!("{name} is not of floats"));
    };
    let size = b.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let limit = rtol * size + ATOL;
    let error = a.iter().zip(b.iter()).map(|(x, y)| (x - y).abs());
    // NaN must fail, and a maximum passes over it.
    let error = error.fold(0.0_f64, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) });
    let fits = error <= limit;
    (!fits).then(|| format!("{name}: error {error:.3e}, allowed {limit:.3e}"))
}

fn tell(diagnostics: &[Diagnostic]) -> String {
    let tell = |d: &Diagnostic| match &d.help {
        Some(help) => format!("{d} ({help})"),
        None => d.to_string(),
    };
    diagnostics.iter().filter(|d| d.is_error()).map(tell).collect::<Vec<_>>().join("; ")
}
