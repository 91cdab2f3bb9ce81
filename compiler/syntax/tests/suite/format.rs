//! Setting texts.

use super::mutation::Dice;
use super::{base, right_programs, syntax, tree};

fn set(text: &str) -> String {
    syntax::format(text, base::FileId(0)).expect("a right text")
}

#[test]
fn every_right_program_keeps_its_tree_and_comments_and_is_set_once() {
    for (path, text) in right_programs() {
        let once = set(&text);
        assert_eq!(set(&once), once, "{}", path.display());
        assert_eq!(tree(&once), tree(&text), "{}", path.display());
        let comments = |text: &str| {
            text.lines()
                .filter_map(|l| l.split_once("//"))
                .map(|c| c.1.trim_end().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(comments(&once), comments(&text), "{}", path.display());
        assert!(once.lines().all(|l| l.trim_end() == l), "{}", path.display());
    }
}

#[test]
fn snippets_are_set_like_this() {
    for (path, text) in super::programs("tests/snippets") {
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        crate::held(&format!("set_{name}"), &set(&text));
    }
}

#[test]
fn small_things_are_set_like_this() {
    let table = [
        ("let  x=-a*- b ^ - 2;", "let x = -a * -b^-2;\n"),
        ("x = W [ l ] @ f ( a,b ) . c", "x = W[l] @ f(a, b).c;\n"),
        ("x=if(a)then(b)else(c);", "x = if (a) then (b) else (c);\n"),
        ("x = {let a=1;a}", "x = { let a = 1; a };\n"),
        (
            "input dt:positive[dv];input a:[dk];\nstate S=z[1];",
            "input dt: positive [dv];\ninput a: [dk];\nstate S = z[1];\n",
        ),
        ("for l in 1 ..= n{weight W[l]:[dv,dk]}", "for l in 1..=n { weight W[l]: [dv, dk]; }\n"),
        (
            "layer a{\n\n\nmemory:m;\n\n\n// c\nbias:b\n\n}",
            "layer a {\n  memory: m;\n\n  // c\n  bias: b;\n}\n",
        ),
        ("layer a\n{\n}", "layer a {}\n"),
        ("algo: f(\na=1,// one\nb=2\n);", "algo: f(\n  a = 1,  // one\n  b = 2\n);\n"),
        ("loss = a\n+ b\n// c\n+ d;", "loss = a\n  + b\n  // c\n  + d;\n"),
        ("algo: gd // last", "algo: gd;  // last\n"),
        ("\u{feff}// a\r\nmemory: m\r\n", "// a\nmemory: m;\n"),
        ("bias b(at:{x,y}=x){loss=1}", "bias b(at: {x, y} = x) { loss = 1; }\n"),
        ("memory:m;bias:b(x=1);algo:gd // c", "memory: m; bias: b(x = 1); algo: gd;  // c\n"),
        ("memory: m; bias b { loss = 1 }", "memory: m;\nbias b { loss = 1; }\n"),
        ("", ""),
        ("// only", "// only\n"),
    ];
    for (text, expected) in table {
        assert_eq!(set(text), expected, "{text}");
        assert_eq!(set(expected), expected, "{text}");
    }
}

#[test]
fn columns_that_the_author_set_stay_columns() {
    let table = [
        ("memory:   m;\nbias:     b;\nread:after;\n", "memory: m;\nbias:   b;\nread: after;\n"),
        ("memory: m;\nbias: b;\n", "memory: m;\nbias: b;\n"),
        ("let e = y;\nloss  = 1;\nslope = 2;\n", "let e = y;\nloss  = 1;\nslope = 2;\n"),
        (
            "f(W, P)    = 1;\ng(W)       = 2;\n\nh(W)       = 3;\n",
            "f(W, P) = 1;\ng(W)    = 2;\n\nh(W) = 3;\n",
        ),
        ("a: 1;    // x\nbcd: 22; // y\ne: 3;  // z\n", "a: 1;     // x\nbcd: 22;  // y\ne: 3;  // z\n"),
        ("layer a {\nm:   1;  // x\n  long: 2;\n}", "layer a {\n  m: 1;  // x\n  long: 2;\n}\n"),
        ("a = f(\n  x   = 1,\n  yyy = 2\n);\nb   = 1;\n", "a = f(\n  x = 1,\n  yyy = 2\n);\nb = 1;\n"),
    ];
    for (text, expected) in table {
        assert_eq!(set(text), expected, "{text}");
        assert_eq!(set(expected), expected, "{text}");
    }
}

/// Whatever blanks stand between words, setting a text twice changes nothing more, and the tree stays.
#[test]
fn columns_by_chance_are_set_once() {
    let mut dice = Dice(7);
    for (path, text) in right_programs().into_iter().filter(|(_, t)| !t.contains('"')) {
        for _ in 0..8 {
            let spread: String = text
                .chars()
                .map(|c| match (c, dice.below(4)) {
                    (' ', 0) => " ".repeat(1 + dice.below(4)),
                    (c, _) => c.to_string(),
                })
                .collect();
            let once = set(&spread);
            assert_eq!(set(&once), once, "{}:\n{spread}", path.display());
            assert_eq!(tree(&once), tree(&spread), "{}:\n{spread}", path.display());
        }
    }
}

#[test]
fn every_shipped_program_is_as_it_is_set() {
    let folders = ["../../stdlib", "../../examples", "../../cli/src/command/new"];
    let shipped: Vec<_> = folders.into_iter().flat_map(super::programs).collect();
    assert!(shipped.len() > 50, "{} programs", shipped.len());
    let wrong: Vec<_> = shipped.iter().filter(|(_, text)| set(text) != *text).map(|(path, _)| path).collect();
    assert!(wrong.is_empty(), "`miras fmt` would change {wrong:?}");
}

#[test]
fn a_file_of_clauses_on_one_line_stays_on_it_while_it_fits() {
    let long = format!("memory: m; bias: b({}1)", "x + ".repeat(20));
    let expected = format!("memory: m;\nbias: b({}1);\n", "x + ".repeat(20));
    assert_eq!(set(&long), expected);
}

#[test]
fn braces_that_do_not_fit_are_opened_from_the_outside() {
    let long = "alpha + beta * ".repeat(4) + "gamma";
    let text = format!("memory m {{ read(x) = {{ let h = {long}; let g = {long}; h + g }}; chunk: 1 }}");
    let expected = format!(
        "memory m {{\n  read(x) = {{\n    let h = {long};\n    let g = {long};\n    h + g\n  }};\n  chunk: 1;\n}}\n"
    );
    assert_eq!(set(&text), expected);
}

#[test]
fn a_wrong_text_is_left_alone() {
    let (_, problems) = syntax::parse(base::FileId(0), "let a = ;");
    assert_eq!(syntax::format("let a = ;", base::FileId(0)), Err(problems));
}
