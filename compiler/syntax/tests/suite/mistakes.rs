//! What is told of wrong texts.

use super::{base, programs, syntax, told};

#[test]
fn wrong_programs_are_told_of_like_this() {
    for (path, text) in programs("tests/mistakes") {
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        crate::held(&format!("told_{name}"), &told(&text));
    }
}

/// Message and help for a text with one mistake.
fn only(text: &str) -> (String, String) {
    let (_, problems) = syntax::parse(base::FileId(0), text);
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    (problems[0].message.clone(), problems[0].help.clone().unwrap_or_default())
}

#[test]
fn each_slip_is_told_of_once_and_with_a_remedy() {
    let table = [
        ("memroy mlp { read(x) = x; }", "`memroy` is not a keyword", "did you mean `memory`?"),
        ("memory: matrix\nbias: l2;", "`;` is missing after `matrix`", "write `matrix;`"),
        ("memory: matrix bias: l2;", "`;` is missing after `matrix`", "write `matrix;`"),
        ("bias: l2, algo: gd;", "a clause ends with `;`, not with `,`", "write `;` in place of `,`"),
        (
            "retention: l2(alpha = 1), algo: gd;",
            "a clause ends with `;`, not with `,`",
            "write `;` in place of `,`",
        ),
        ("let a 1;", "expected `=`, found the number `1`", "write `=` after `a`"),
        ("algo: gd(eta = );", "expected an expression, found `)`", "write an expression here, or remove `)`"),
        ("algo: gd(1", "`(` is never closed", "add `)` before the end of the file"),
        ("bias: \u{2264};", "`\u{2264}` is not part of the language", "write `<=`"),
        ("bias: l2\u{a0};", "the character U+00A0 is not part of the language", "remove it"),
        ("loss = a % b;", "the character U+0025 is not part of the language", "remove it"),
        (
            "block b { }",
            "`block` is reserved for compositions of layers",
            "write each of its layers as a `layer`",
        ),
        ("bias:", "expected an expression, found the end of the file", "write an expression at the end"),
        ("layer x", "expected `=`, `(` or `{`, found the end of the file", "write `=`, `(` or `{` after `x`"),
    ];
    for (text, message, help) in table {
        let (said, remedy) = only(text);
        assert_eq!((said.as_str(), remedy.as_str()), (message, help), "{text}");
    }
}

#[test]
fn what_is_right_beside_a_mistake_is_in_the_tree() {
    let text = "fn f(x) = x;\nbias b { loss = ; }\nfn g(x) = x;\nmemory: matrix;\nbias: ) ;\nalgo: gd;";
    let (file, problems) = syntax::parse(base::FileId(0), text);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(
        syntax::print::file(&file),
        "fn f(x) = x\nfn g(x) = x\nlayer (anonymous)\n  memory: matrix\n  algo: gd\n"
    );
}

#[test]
fn every_diagnostic_has_a_place_and_a_remedy() {
    for (path, text) in programs("tests/mistakes") {
        let (_, problems) = syntax::parse(base::FileId(0), &text);
        assert!(!problems.is_empty(), "{}", path.display());
        for problem in problems {
            assert!(!problem.labels.is_empty() && problem.help.is_some(), "{problem:?}");
            assert_ne!(problem.code, base::diagnostic::code::BUG, "{problem:?}");
        }
    }
}
