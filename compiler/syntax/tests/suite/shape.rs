//! What the grammar takes, and the tree it becomes.

use super::{base, right_programs, syntax, tree};

#[test]
fn every_right_program_is_read_whole() {
    for (path, text) in right_programs() {
        let (_, problems) = syntax::parse(base::FileId(0), &text);
        assert_eq!(problems, [], "{}", path.display());
    }
}

#[test]
fn snippets_become_these_trees() {
    for (path, text) in super::programs("tests/snippets") {
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        crate::held(&format!("tree_{name}"), &tree(&text));
    }
}

/// An expression with all its parentheses.
fn grouped(text: &str) -> String {
    match syntax::parse_expr(base::FileId(0), text) {
        Ok(expr) => syntax::print::expr(&expr),
        Err(problems) => panic!("{text}: {problems:?}"),
    }
}

#[test]
fn operators_bind_as_the_table_says() {
    let table = [
        ("a + b * c", "(a + (b * c))"),
        ("a * b + c", "((a * b) + c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b @ c * d", "(((a / b) @ c) * d)"),
        ("a ^ b ^ c", "(a ^ (b ^ c))"),
        ("-x ^ 2", "(-(x ^ 2))"),
        ("-x * y", "((-x) * y)"),
        ("-x + y", "((-x) + y)"),
        ("a - -b", "(a - (-b))"),
        ("--x", "(-(-x))"),
        ("2 ^ -3", "(2 ^ (-3))"),
        ("2 ^ -3 ^ 2", "(2 ^ (-(3 ^ 2)))"),
        ("2 ^ -3 * 4", "((2 ^ (-3)) * 4)"),
        ("2 ^ (-5 - head)", "(2 ^ ((-5) - head))"),
        ("a + b < c * d", "((a + b) < (c * d))"),
        ("a @ b == -c", "((a @ b) == (-c))"),
        ("x >= 1 - y", "(x >= (1 - y))"),
        ("if a < b then c + d else e != f", "(if (a < b) then (c + d) else (e != f))"),
        ("if a then b else if c then d else e", "(if a then b else (if c then d else e))"),
        ("if if a then b else c then d else e", "(if (if a then b else c) then d else e)"),
        ("W[l] @ h ^ 2", "(W[l] @ (h ^ 2))"),
        ("-f(x)[1].a ^ S'", "(-(f(x)[1].a ^ S'))"),
        ("a.b . c", "a.b.c"),
        ("max(norm(A', q), 1e-6)^(2 - q)", "(max(norm(A', q), 1e-6) ^ (2 - q))"),
        ("f(a = b == c, d,)", "f(a = (b == c), d)"),
        (".5 + 1.25e+3 - 2E-2", "((.5 + 1.25e+3) - 2E-2)"),
        ("a // comment\n + b", "(a + b)"),
    ];
    for (text, expected) in table {
        assert_eq!(grouped(text), expected, "{text}");
    }
}

#[test]
fn contextual_keywords_may_name_anything() {
    let words = [
        "use",
        "bias",
        "retention",
        "memory",
        "algo",
        "fn",
        "layer",
        "on",
        "weight",
        "slow",
        "state",
        "input",
        "trained",
        "dual",
        "history",
        "require",
        "read",
        "kl",
        "unit",
        "block",
        "model",
        "iff",
        "letter",
        "inn",
    ];
    for w in words {
        let text = format!(
            "fn {w}({w}) = {w};\nlayer {w} = {w};\nbias {w}({w}: {w} = {w}) {{ let {w} = {w}; {w} = {w}({w} = {w}); {w}({w}) = {w};\n\
             {w}' = {w}'; dual {w}' = {w}; state {w} = {w}; input {w}: {w} [{w}]; for {w} in {w}..{w} {{ {w} = {w}; }}\n\
             history {w}; require {w}({w}); {w}: {w} }}"
        );
        let shown = tree(&text);
        assert_eq!(shown.lines().count(), 15, "{shown}");
    }
}

#[test]
fn reserved_words_name_nothing() {
    for w in ["if", "then", "else", "let", "for", "in"] {
        let (_, problems) = syntax::parse(base::FileId(0), &format!("let {w} = 1;"));
        assert_eq!(problems.len(), 1, "{w}: {problems:?}");
        assert!(problems[0].message.contains("reserved"), "{w}: {problems:?}");
    }
}

#[test]
fn blanks_line_ends_and_marks_do_not_matter() {
    let text = "// note\nmemory: mlp(2);\nbias: l2; // trailing\n\nretention: kl";
    let plain = tree(text);
    assert_eq!(tree(&text.replace('\n', "\r\n")), plain);
    assert_eq!(tree(&text.replace('\n', "\r")), plain);
    assert_eq!(tree(&format!("\u{feff}{text}\n\n")), plain);
    assert_eq!(tree(""), "");
    assert_eq!(tree("\u{feff}"), "");
    assert_eq!(tree(" \n// only a comment, not ASCII: \u{3b1} \u{2264} 1"), "");
}

#[test]
fn places_are_those_of_the_text() {
    let text = "\u{feff}// \u{3b1}\nlet  x = ( a + b )  // c\n ;\nbias  b ( d : unit = 1 ) { loss = e ; }  ";
    let mut sources = base::SourceMap::new();
    let id = sources.add("case.miras", text);
    let (file, problems) = syntax::parse(id, text);
    assert_eq!(problems, []);
    let stmt = &file.anonymous.as_ref().expect("a layer").stmts[0];
    assert_eq!(sources.text(stmt.span), "let  x = ( a + b )");
    let syntax::ast::StmtKind::Let { name, value } = &stmt.kind else { panic!("{stmt:?}") };
    assert_eq!((sources.text(name.span), sources.text(value.span)), ("x", "( a + b )"));
    let syntax::ast::Item::Definition(bias) = &file.items[0] else { panic!("{file:?}") };
    assert_eq!(sources.text(bias.span), "bias  b ( d : unit = 1 ) { loss = e ; }");
    assert_eq!(sources.text(bias.params[0].span), "d : unit = 1");
    assert_eq!(sources.text(bias.body[0].span), "loss = e");
}

#[test]
fn comments_above_an_item_document_it() {
    let text =
        "// far\n\n// one\n//two\n//\nfn f(x) = x; // trailing\nfn g(x) = x;\n  // three\n  layer l = m;";
    let (file, _) = syntax::parse(base::FileId(0), text);
    let docs: Vec<_> = file
        .items
        .iter()
        .map(|item| match item {
            syntax::ast::Item::Definition(d) => d.doc.clone(),
            syntax::ast::Item::Function(f) => f.doc.clone(),
            syntax::ast::Item::Layer(l) => l.doc.clone(),
            syntax::ast::Item::Alias(a) => a.doc.clone(),
        })
        .collect();
    assert_eq!(docs, [vec!["one", "two", ""], vec![], vec!["three"]]);
}

#[test]
fn numbers_are_the_nearest_float_or_refused() {
    let value = |text: &str| match syntax::parse_expr(base::FileId(0), text).map(|e| e.kind) {
        Ok(syntax::ast::ExprKind::Number { value, .. }) => Ok(value),
        Ok(other) => panic!("{other:?}"),
        Err(problems) => Err(problems[0].code),
    };
    assert_eq!(value("0.1"), Ok(0.1));
    assert_eq!(value("1.7976931348623157e308"), Ok(f64::MAX));
    assert_eq!(value("0.0e-999"), Ok(0.0));
    let refused = Err(base::diagnostic::code::NUMBER);
    assert_eq!(value("1e309"), refused);
    assert_eq!(value("1e-400"), refused);
    assert_eq!(value(&"9".repeat(400)), refused);
}
