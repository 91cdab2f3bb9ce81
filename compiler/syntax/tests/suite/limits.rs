//! Texts that would overflow a careless reader.

use super::{base, syntax};
use base::diagnostic::code;

/// What a reader with a small stack says of a text.
fn codes(text: String) -> Vec<base::Code> {
    let read = move || syntax::parse(base::FileId(0), &text).1.iter().map(|p| p.code).collect();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(read).expect("a thread");
    thread.join().expect("no overflow and no panic")
}

#[test]
fn deep_nesting_is_refused() {
    let n = 100_000;
    let texts = [
        ("parentheses", format!("let x = {}1{};", "(".repeat(n), ")".repeat(n))),
        ("brackets", format!("let x = {}1{};", "a[".repeat(n), "]".repeat(n))),
        ("calls", format!("let x = {}1{};", "f(".repeat(n), ")".repeat(n))),
        ("blocks", format!("let x = {}1{};", "{ let a = 1; ".repeat(n), "}".repeat(n))),
        ("loops", format!("{}{}", "for l in 1..2 {".repeat(n), "}".repeat(n))),
        ("ifs", format!("let x = {}1;", "if a then b else ".repeat(n))),
        ("ifs in conditions", format!("let x = {}1;", "if ".repeat(n))),
        ("minus", format!("let x = {}1;", "-".repeat(n))),
        ("powers", format!("let x = 1{};", "^2".repeat(n))),
        ("sums", format!("let x = 1{};", "+a".repeat(n))),
        ("fields", format!("let x = a{};", ".b".repeat(n))),
        ("indices", format!("let x = a{};", "[0]".repeat(n))),
        ("unclosed", "(".repeat(n)),
        ("unclosed braces", "layer a {".repeat(n)),
        ("mixed", format!("let x = {}1", "({[f(-".repeat(n))),
    ];
    for (name, text) in texts {
        assert_eq!(codes(text), [code::NESTING], "{name}");
    }
}

#[test]
fn long_texts_are_refused_unread() {
    let start = std::time::Instant::now();
    assert_eq!(codes("a".repeat(50 << 20)), [code::TOO_LONG]);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert_eq!(codes(format!("// {}", "a".repeat(syntax::MAX_LENGTH - 3))), []);
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let n = syntax::MAX_DEPTH;
    let texts = [
        ("parentheses", format!("let x = {}1{};", "(".repeat(n), ")".repeat(n))),
        ("calls", format!("let x = {}1{};", "f(".repeat(n - 1), ")".repeat(n - 1))),
        ("indices", format!("let x = {}1{};", "a[".repeat(n - 1), "]".repeat(n - 1))),
        ("blocks", format!("let x = {}1{};", "{ let a = 1; ".repeat(n - 1), "}".repeat(n - 1))),
        ("loops", format!("{}{}", "for l in 1..2 {".repeat(n), "}".repeat(n))),
        ("ifs", format!("let x = {}1;", "if a then b else ".repeat(n - 1))),
        ("ifs in conditions", format!("let x = {}a{};", "if ".repeat(n - 1), " then b else c".repeat(n - 1))),
        ("minus", format!("let x = {}1;", "-".repeat(n - 1))),
        ("powers", format!("let x = 1{};", "^2".repeat(n - 1))),
        ("sums", format!("let x = 1{};", "+a".repeat(n - 1))),
        (
            "ifs in parentheses",
            format!("let x = {}1{};", "if a then b else (".repeat(n / 2), ")".repeat(n / 2)),
        ),
    ];
    for (name, text) in texts {
        assert_eq!(codes(text.clone()), [], "{name}");
        let again = syntax::format(&text, base::FileId(0)).expect("it is right");
        assert_eq!(syntax::format(&again, base::FileId(0)).as_ref(), Ok(&again), "{name}");
    }
}

#[test]
fn one_step_past_the_limit_is_refused() {
    let n = syntax::MAX_DEPTH;
    assert_eq!(codes(format!("let x = 1{};", "+a".repeat(n))), [code::NESTING]);
    assert_eq!(codes(format!("let x = {}1;", "-".repeat(n))), [code::NESTING]);
    assert_eq!(codes(format!("let x = {}1{};", "(".repeat(n + 1), ")".repeat(n + 1))), [code::NESTING]);
}

#[test]
fn each_statement_that_is_too_deep_is_told_of() {
    let sum = format!("1{}", "+a".repeat(1000));
    assert_eq!(codes(format!("x = {sum};\ny = 1;\nz = {sum};")), [code::NESTING; 2]);
}

#[test]
fn long_texts_take_time_in_proportion() {
    let n = 20_000;
    let right = "let a = f(b, c) + 1;\n".repeat(n);
    let wrong = "let a = f(b, c + 1;\n".repeat(n);
    let one_line = "a: b ".repeat(n);
    let open = "f(a, ".repeat(100) + &"x y, ".repeat(n);
    let start = std::time::Instant::now();
    assert_eq!(codes(right), []);
    for text in [wrong, one_line, open] {
        let told = codes(text).len();
        assert!((1..=50).contains(&told), "{told}");
    }
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn nested_mistakes_do_not_multiply_the_work() {
    let n = 120;
    let texts = [
        format!("let x = {}!{};", "f(".repeat(n), ")".repeat(n)),
        format!("let x = {}!{};", "(".repeat(n), ")".repeat(n)),
        format!("let x = {}!{};", "{ a = ".repeat(n), "; 1 }".repeat(n)),
        format!("let x = {}!{};", "if a then (".repeat(n / 2), ") else b".repeat(n / 2)),
        format!("let x = {}!;", "f(a, {let b = if c then d else g(h = ".repeat(n / 3)),
    ];
    let start = std::time::Instant::now();
    for text in texts {
        assert!(!codes(text.clone()).is_empty(), "{text}");
    }
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
