//! Every definition of the library elaborates.

mod common;

use common::load;

#[test]
fn every_library_layer_elaborates() {
    let mut loaded = load("");
    let names: Vec<String> = loaded.program.library_layers().into_iter().map(|l| l.name).collect();
    assert!(names.len() > 20);
    let mut wrong = String::new();
    for name in names {
        if let Err(problems) = loaded.elaborate(Some(&name), &[]) {
            wrong += &format!("{name}\n{}\n", loaded.show(&problems));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Partners that fit a definition, whatever its kind.
const PAIRS: &[(&str, &str)] = &[
    ("bias", "memory: matrix; bias: {}; retention: none; algo: gd"),
    ("retention", "memory: mlp(2); bias: l2; retention: {}; algo: gd"),
    ("retention", "memory: vector; bias: l2; retention: {}; algo: gd"),
    ("memory", "memory: {}; bias: l2; retention: l2; algo: momentum"),
    ("algo", "memory: matrix; bias: l2; retention: none; algo: {}"),
];

/// What a definition needs that has no default.
fn with_arguments(name: &str) -> String {
    let functions = "fn f(w) = w * log(w) - w;\n";
    match name {
        "lp" => "lp(3)".into(),
        "lq_exact" => "lq_exact(1.5)".into(),
        "bregman" | "fdiv" => format!("{name}(f)\n{functions}"),
        other => other.into(),
    }
}

#[test]
fn every_definition_elaborates_with_plain_partners() {
    let mut tried = 0;
    for (path, _) in miras_stdlib::files() {
        let (kind, file) = path.split_once('/').unwrap();
        let name = file.strip_suffix(".miras").unwrap();
        for (_, frame) in PAIRS.iter().filter(|(k, _)| *k == kind) {
            let written = with_arguments(name);
            let (call, rest) = written.split_once('\n').unwrap_or((&written, ""));
            let history = matches!(name, "cache" | "nonparametric" | "hopfield");
            let text = match (history, kind) {
                (true, "memory") => {
                    "memory: cache; bias: l2; retention: none; algo: nonparametric".to_string()
                }
                (true, _) => format!("memory: cache; bias: l2; retention: none; algo: {call}"),
                (false, _) => frame.replace("{}", call),
            };
            let layer = common::layer(&format!("{rest}{text}"));
            assert_eq!(layer.choices.iter().filter(|c| c.definition == name && c.clause == kind).count(), 1);
            tried += 1;
        }
    }
    assert!(tried >= 30, "{tried}");
}

#[test]
fn every_definition_says_what_it_is() {
    for (path, text) in miras_stdlib::files() {
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("// ") && first.len() > 20, "{path}: {first}");
        assert!(text.lines().all(|l| l.len() <= 120), "{path} has a long line");
        let (kind, file) = path.split_once('/').unwrap();
        let name = file.strip_suffix(".miras").unwrap();
        let defined = text.lines().filter(|l| {
            let mut words = l.split([' ', '(', '{']);
            words.next() == Some(kind) && words.next() == Some(name)
        });
        assert_eq!(defined.count(), 1, "{path} does not define {name}");
    }
}

#[test]
fn every_golden_program_elaborates() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
    let mut seen = 0;
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let Ok(text) = std::fs::read_to_string(entry.unwrap().path().join("spec.miras")) else { continue };
        let mut loaded = load(&text);
        seen += 1;
        if let Err(problems) = loaded.elaborate(None, &[]) {
            wrong += &format!("{text}\n{}\n", loaded.show(&problems));
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(wrong.is_empty(), "{wrong}");
}
