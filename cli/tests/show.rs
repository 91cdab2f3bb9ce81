//! `miras show` shows every stage, and `miras explain` every form.

use miras_cli::{Console, main_with};

/// Output of a command that succeeds.
fn miras(arguments: &[&str]) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let given = std::iter::once("miras").chain(arguments.iter().copied()).map(Into::into);
    let status = main_with(given, &mut Console::new(&mut out, &mut err));
    assert_eq!(status, 0, "{arguments:?}: {}", String::from_utf8_lossy(&err));
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn every_stage_is_shown() {
    let stages = [
        ("ast", "layer gated_deltanet"),
        ("spec", "retention: l2(alpha = learned)"),
        ("rule", "outer("),
        ("plan", "ChunkedExact(64)"),
        ("tensor", "input memory.W"),
        ("kernel", "gated_deltanet"),
        ("clif", "block0"),
        ("wgsl", "@compute"),
    ];
    for (stage, part) in stages {
        let text = miras(&["show", stage, "gated_deltanet"]);
        assert!(text.contains(part), "{stage}: {part}\n{text}");
    }
}

#[test]
fn the_measured_error_is_drawn_and_is_0_for_chunks_of_one_token() {
    let page = miras(&["explain", "titans_lmm", "--measure", "--format", "html", "--set", "chunk=4"]);
    assert_eq!(page.matches("<svg").count(), 1);
    let text = miras(&["explain", "titans_lmm", "--measure", "--format", "json", "--set", "chunk=4"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let errors = value["layers"][0]["measured"]["errors"].as_array().unwrap();
    let error = |at: usize| errors[at]["error"].as_f64().unwrap();
    assert!(error(0) < 1e-12 && error(errors.len() - 1) > 1e-9, "{errors:?}");
}

#[test]
fn all_layers_of_a_file_are_on_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.miras");
    let layers = "layer a = yaad(chunk = 8);\nlayer b { memory: matrix; bias: dot; retention: none; algo: gd(eta = 1); }\n";
    std::fs::write(&file, layers).unwrap();
    let path = file.to_str().unwrap();
    let page = miras(&["explain", path, "--format", "html"]);
    assert!(page.contains("<h1>a</h1>") && page.contains("<h1>b</h1>"), "{page}");
    // The source of a layer that is made from another shows both.
    assert!(page.contains("layer a = yaad(chunk = 8);") && page.contains("layer yaad"), "{page}");
    let page = miras(&["explain", path, "--format", "html", "--layer", "b"]);
    assert!(!page.contains("<h1>a</h1>"), "{page}");
}
