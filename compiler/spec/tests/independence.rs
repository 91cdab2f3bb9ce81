//! The compiler knows no name of the library.

mod common;

use base::FileId;
use common::{describe, load_with};
use miras_base as base;
use miras_spec::Library;
use miras_syntax::ast;

const CLAUSES: [&str; 4] = ["memory", "bias", "retention", "algo"];

fn renamed(name: &str) -> String {
    format!("other_{name}")
}

/// The places of the names of definitions that a layer's clauses choose.
fn chosen(stmts: &[ast::Stmt]) -> Vec<base::Span> {
    let named = |stmt: &ast::Stmt| {
        let ast::StmtKind::Clause { key, value } = &stmt.kind else { return None };
        if !CLAUSES.contains(&key.text.as_str()) {
            return None;
        }
        match &value.kind {
            ast::ExprKind::Name(name) => Some(name.span),
            ast::ExprKind::Call { callee, .. } => Some(callee.span),
            other => panic!("{other:?}"),
        }
    };
    stmts.iter().filter_map(named).collect()
}

/// The same text with every definition, function and layer called otherwise.
fn rename(text: &str) -> String {
    let (file, problems) = miras_syntax::parse(FileId(0), text);
    assert!(problems.is_empty(), "{problems:?}");
    let mut spans = Vec::new();
    let mut functions = Vec::new();
    for item in &file.items {
        match item {
            ast::Item::Definition(d) => spans.push(d.name.span),
            ast::Item::Function(f) => functions.push(f.name.text.clone()),
            ast::Item::Layer(l) => {
                spans.push(l.name.span);
                spans.extend(chosen(&l.body.stmts));
            }
            ast::Item::Alias(a) => spans.extend([a.name.span, a.base.span]),
        }
    }
    spans.sort_by_key(|s| std::cmp::Reverse(s.start));
    let mut text = text.to_string();
    for span in spans {
        text.insert_str(span.start as usize, "other_");
    }
    for function in functions {
        text = text.replace(&function, &renamed(&function));
    }
    text
}

#[test]
fn a_renamed_library_gives_the_same_layers() {
    let other = Library::from_texts(miras_stdlib::files().map(|(path, text)| (path, rename(text))));
    let mut plain = load_with("", &Library::standard(), &[]);
    let mut changed = load_with("", &other, &[]);
    assert!(changed.problems.is_empty(), "{}", changed.show(&changed.problems));
    let names: Vec<String> = plain.program.library_layers().into_iter().map(|l| l.name).collect();
    assert!(names.len() > 20);
    for name in names {
        let a = plain.elaborate(Some(&name), &[]).unwrap();
        let b = match changed.elaborate(Some(&renamed(&name)), &[]) {
            Ok(layer) => layer,
            Err(problems) => panic!("{name}\n{}", changed.show(&problems)),
        };
        assert_eq!(describe(&a), describe(&b), "{name}");
        assert_ne!(a.choices[0].definition, b.choices[0].definition);
    }
}

#[test]
fn a_file_that_defines_what_it_uses_needs_no_library() {
    let text = "
        memory box { weight U: [dv, dk] = 0; read(z) = U @ z; }
        bias near { let e = y - v; loss = sum(e * e) / 2; }
        retention keep(rate: unit = learned) {
          local(A, B) = (1 - rate) * sum((A - B)^2) / 2;
          global(A) = rate * sum(A^2) / 2;
        }
        algo step(size: positive = learned) { direction = -size * grad(W); }
        memory: box; bias: near; retention: keep; algo: step";
    let mut loaded = load_with(text, &Library::empty(), &[]);
    let own = loaded.elaborate(None, &[]).unwrap();
    let names: Vec<&str> = own.params.iter().map(|p| p.tensor.as_str()).collect();
    assert_eq!(names, ["retention.rate", "algo.size"]);
    assert_eq!(own.memory.weights[0].name, "U");
}

#[test]
fn without_its_file_a_definition_is_unknown_and_nothing_else_changes() {
    let texts = miras_stdlib::files().filter(|(path, _)| path != "bias/huber.miras");
    let library = Library::from_texts(texts);
    let mut loaded = load_with("", &library, &[]);
    let mut whole = load_with("", &Library::standard(), &[]);
    for layer in whole.program.library_layers() {
        let uses = whole.elaborate(Some(&layer.name), &[]).unwrap();
        let without = loaded.elaborate(Some(&layer.name), &[]);
        if uses.choices[1].definition == "huber" {
            let problems = without.unwrap_err();
            assert_eq!(problems[0].code.0, "E0101");
            assert!(problems[0].message.contains("`huber`"));
        } else {
            assert_eq!(describe(&uses), describe(&without.unwrap()));
        }
    }
}
