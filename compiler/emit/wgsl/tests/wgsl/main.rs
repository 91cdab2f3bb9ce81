//! What is emitted: as text, in other languages, as a plan; judged by whoever is installed to judge it.

mod programs;

use miras_emit_wgsl::{File, Module, Structure, Target, emit, plan, translate};
use miras_kernel::verify;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compares with a file beside this one; `MIRAS_BLESS=1` writes it instead.
fn expect(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wgsl/expected").join(name);
    if std::env::var_os("MIRAS_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} has changed; MIRAS_BLESS=1 accepts it");
}

#[test]
fn the_text_and_the_plan_read_like_what_is_computed() {
    let program = verify(programs::sample()).unwrap();
    let module = emit(&program, Structure::OneKernel).unwrap();
    expect("sample.wgsl", &module.wgsl);
    let plan = plan::plan(&program, &module, 1);
    let text = plan::json(&plan).unwrap();
    expect("sample.plan.json", &text);
    assert_eq!(serde_json::from_str::<plan::Plan>(&text).unwrap(), plan);
}

#[test]
fn sums_that_lanes_share_are_added_in_order() {
    let module = emit(&verify(programs::sums()).unwrap(), Structure::OneKernel).unwrap();
    expect("sums.wgsl", &module.wgsl);
}

#[test]
fn tokens_that_pass_the_past_have_a_kernel_of_their_own() {
    let program = verify(programs::passes(4)).unwrap();
    let module = emit(&program, Structure::OneKernel).unwrap();
    expect("passes.wgsl", &module.wgsl);
    expect("passes.plan.json", &plan::json(&plan::plan(&program, &module, 1)).unwrap());
}

/// Products in tiles with what follows, sequential statements in one workgroup, a repetition around them.
#[test]
fn several_launches_read_like_what_is_computed() {
    let program = verify(programs::block()).unwrap();
    let module = emit(&program, Structure::SeveralLaunches).unwrap();
    expect("launches.wgsl", &module.wgsl);
    expect("launches.plan.json", &plan::json(&plan::plan(&program, &module, 32)).unwrap());
}

#[test]
fn programs_without_a_loop_over_tokens_or_with_a_past_stay_one_kernel() {
    for (program, several) in
        [(programs::block(), true), (programs::passes(4), false), (programs::echoes(), false)]
    {
        let module = emit(&verify(program).unwrap(), Structure::SeveralLaunches).unwrap();
        assert_eq!(module.structure == Structure::SeveralLaunches, several);
    }
}

#[test]
fn equal_programs_give_equal_text() {
    let text = || emit(&verify(programs::sample()).unwrap(), Structure::OneKernel).unwrap().wgsl;
    assert_eq!(text(), text());
}

#[test]
fn arrays_may_be_called_like_anything() {
    let mut p = programs::sample();
    let names = ["first", "groups", "for", "f32", "lane", "r_0"];
    for (array, name) in p.arrays.iter_mut().zip(names) {
        array.name = name.to_string();
        array.doc = "one\ntwo\u{2028}three".to_string();
    }
    for (var, name) in p.vars.iter_mut().zip(["work", "λ", "lane", "sum"]) {
        var.name = name.to_string();
    }
    emit(&verify(p).unwrap(), Structure::OneKernel).unwrap();
}

/// Every program in every structure.
fn modules() -> Vec<Module> {
    let both = |program| {
        let program = verify(program).unwrap();
        Structure::ALL.map(|structure| emit(&program, structure).unwrap())
    };
    programs::all().into_iter().flat_map(both).collect()
}

#[test]
fn every_language_has_a_translation() {
    for module in modules() {
        for target in [Target::Wgsl, Target::Spirv, Target::Msl, Target::Hlsl, Target::Glsl] {
            let files = translate(&module, target).unwrap();
            let expected = if target == Target::Glsl { module.stages.len() } else { 1 };
            assert_eq!(files.len(), expected, "{target:?}");
            assert!(files.iter().all(|f| !f.bytes.is_empty()));
        }
    }
}

/// Browsers are stricter than naga about barriers.
#[test]
fn browsers_accept_the_text() {
    judge("tint", Target::Wgsl, &["--format", "wgsl"]);
}

#[test]
fn the_validator_of_vulkan_accepts_the_module() {
    judge("spirv-val", Target::Spirv, &["--target-env", "vulkan1.1"]);
}

/// Lets a tool judge every program, where the tool is installed.
fn judge(tool: &str, target: Target, options: &[&str]) {
    if Command::new(tool).arg("--version").output().is_err() {
        eprintln!("not run: {tool} is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (at, module) in modules().into_iter().enumerate() {
        for file in translate(&module, target).unwrap() {
            let path = write(folder.path(), at, &file);
            let output = Command::new(tool).args(options).arg(&path).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{tool} refuses {}:\n{told}", module.name);
        }
    }
}

fn write(folder: &Path, at: usize, file: &File) -> PathBuf {
    let path = folder.join(format!("{at}.{}", file.name));
    std::fs::write(&path, &file.bytes).unwrap();
    path
}
