//! Every golden case: its inputs bind, and the results' names and shapes are the expected ones.

use miras_base::{Diagnostic, SourceMap};
use miras_host::{BindOptions, Bundle, Schedule, Synthetic, Width, bind, layout, read, synthetic};
use miras_rule::UpdateRule;
use miras_spec::{Library, Program};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

struct Case {
    name: String,
    folder: PathBuf,
    schedule: Schedule,
    grad: bool,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|f| f.join("case.json").is_file());
    folders.sort();
    let case = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("case.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let chunk = json["chunk"].as_u64().map(|c| u32::try_from(c).unwrap());
        let schedule = match json["schedule"].as_str() {
            Some("recurrent") => Schedule::Recurrent,
            _ => Schedule::Chunked(chunk.unwrap_or(64)),
        };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        Case { name, folder, schedule, grad: json["grad"].as_bool().unwrap() }
    };
    folders.into_iter().map(case).collect()
}

fn rule(case: &Case) -> Result<UpdateRule, Vec<Diagnostic>> {
    let mut sources = SourceMap::new();
    let root = sources.add("spec.miras", fs::read_to_string(case.folder.join("spec.miras")).unwrap());
    let nothing = &mut |path: &str| Err(format!("golden cases use no other file, not `{path}`"));
    let (program, problems) = Program::load(&mut sources, root, &Library::standard(), nothing);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(problems);
    }
    miras_rule::derive(program.elaborate(&mut sources, None, &[])?.0)
}

/// All cases with their rules.
fn derived() -> Vec<(Case, UpdateRule)> {
    let derive = |case: Case| {
        let rule = rule(&case).unwrap_or_else(|p| panic!("{}: {}", case.name, problems(&p)));
        (case, rule)
    };
    let all: Vec<(Case, UpdateRule)> = cases().into_iter().map(derive).collect();
    assert!(all.len() > 100, "the golden cases are not there: {} found", all.len());
    all
}

fn problems(problems: &[Diagnostic]) -> String {
    problems.iter().map(|d| format!("{d} {:?}", d.notes)).collect::<Vec<_>>().join("\n")
}

#[test]
fn inputs_bind_and_results_have_the_expected_names_and_shapes() {
    for (case, rule) in derived() {
        let inputs = read(&case.folder.join("inputs.safetensors")).unwrap();
        let expected = read(&case.folder.join("expected.safetensors")).unwrap();
        for width in [Width::F32, Width::F64] {
            let options =
                BindOptions { width, schedule: case.schedule, grad: case.grad, ..BindOptions::default() };
            let bound =
                bind(&rule, &inputs, &options).unwrap_or_else(|p| panic!("{}: {}", case.name, problems(&p)));
            assert!(bound.notes.is_empty(), "{}: {}", case.name, problems(&bound.notes));
            let results: BTreeMap<String, Vec<usize>> =
                layout(&rule, &bound).into_iter().map(|o| (o.name, o.shape)).collect();
            for (name, tensor) in expected.iter() {
                assert_eq!(results.get(name), Some(&tensor.shape), "{}: {name}", case.name);
            }
            let listed = |n: &&String| expected.has(n);
            let gradients = results.keys().filter(|n| n.starts_with("d.")).filter(|n| !listed(n)).count();
            assert_eq!(gradients, 0, "{}: gradients that the case does not list", case.name);
            for (stream, head) in (0..bound.streams.len()).flat_map(|s| (0..bound.heads).map(move |h| (s, h)))
            {
                let carried = bound.carried_at_start(&rule, stream, head).unwrap();
                assert!(carried.iter().all(|t| t.data.iter().all(|x| x.is_finite())), "{}", case.name);
            }
        }
    }
}

#[test]
fn without_any_one_tensor_or_with_any_one_axis_too_many_a_case_is_refused_or_runs() {
    for (case, rule) in derived() {
        let inputs = read(&case.folder.join("inputs.safetensors")).unwrap();
        let options = BindOptions { schedule: case.schedule, grad: case.grad, ..BindOptions::default() };
        for (name, tensor) in inputs.iter() {
            let mut spoilt: Bundle = inputs.clone();
            spoilt.remove(name);
            // Some tensors are optional: then it binds. It never fails without naming a tensor.
            if let Err(problems) = bind(&rule, &spoilt, &options) {
                let told = problems.iter().all(|p| p.message.contains('`') && p.code.0 != "E0901");
                assert!(told, "{}: {problems:?}", case.name);
            }
            let mut larger = tensor.as_ref().clone();
            larger.shape.push(1);
            spoilt.insert(name, larger);
            let problems = bind(&rule, &spoilt, &options).expect_err("an axis too many");
            let told = problems.iter().any(|p| p.code.0 == "E0502" && p.message.contains(name));
            assert!(told, "{} {name}: {problems:?}", case.name);
        }
    }
}

#[test]
fn synthetic_inputs_of_every_rule_bind() {
    for (case, rule) in derived() {
        let wanted = Synthetic { seed: 3, batch: 2, heads: 2, tokens: 5, dk: 8, dv: 8, grad: true };
        let inputs = synthetic(&rule, &wanted).unwrap();
        for width in [Width::F32, Width::F64] {
            let options = BindOptions { width, grad: true, ..BindOptions::default() };
            let bound = bind(&rule, &inputs, &options);
            assert!(bound.is_ok(), "{}: {}", case.name, problems(&bound.err().unwrap_or_default()));
        }
    }
}
