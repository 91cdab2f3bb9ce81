//! What is refused, with which code, where, and with what help.

mod common;
mod refused;

use common::{describe, load, load_with};
use miras_spec::Library;

#[test]
fn each_mistake_has_its_code_place_and_help() {
    let mut wrong = String::new();
    for (code, text, place, says) in refused::rows() {
        let mut loaded = load(text);
        let problems = match loaded.elaborate(None, &[]) {
            Ok(layer) => {
                wrong += &format!("accepted, not {code}: {text}\n{}\n\n", describe(&layer));
                continue;
            }
            Err(problems) => problems,
        };
        let shown = loaded.show(&problems);
        let found = problems.iter().any(|d| {
            let first = d.labels.first().map_or("", |l| loaded.sources.text(l.span));
            d.code.0 == *code
                && (place.is_empty() || !d.labels.is_empty())
                && d.help.is_some()
                && first.starts_with(place.trim_end_matches(';'))
                && format!("{d}{:?}{:?}", d.help, d.notes).contains(says)
        });
        if !found {
            wrong += &format!("{code} at `{place}` saying `{says}`: {text}\n{shown}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_is_legal_at_the_ends_is_not_refused() {
    for text in [
        "memory: matrix; bias: l2; retention: l2(alpha = 1); algo: gd(eta = 0)",
        "memory: matrix; bias: l2; retention: kl(alpha = learned(per = value)); algo: gd",
        "memory: mlp(2); bias: l2; retention: kl(alpha = 0); algo: gd",
        "memory: matrix; bias: l2; retention: l2(alpha = learned(per = entry)); algo: gd(learned(per = entry))",
        "memory: mlp(1); bias: l2; retention: none; algo: gd(eta = learned(per = key))",
        "memory: cache; bias: l2; retention: none; algo: nonparametric",
    ] {
        common::layer(text);
    }
}

#[test]
fn settings_that_nothing_takes_are_refused() {
    for (name, value, says) in [
        ("chnk", "8", "did you mean `chunk`?"),
        ("retention.alhpa", "0.1", "did you mean `alpha`?"),
        ("retenton.alpha", "0.1", "did you mean `retention`?"),
        ("a.b.c", "1", "not the name of a setting"),
        ("", "1", "not the name of a setting"),
    ] {
        let mut loaded = load("memory: matrix; bias: l2; retention: l2; algo: gd");
        let problems = loaded.elaborate(None, &[(name, value)]).unwrap_err();
        assert_eq!(problems[0].code.0, "E0512", "{}", loaded.show(&problems));
        assert!(loaded.show(&problems).contains(says), "{}", loaded.show(&problems));
    }
    let mut loaded = load("memory: matrix; bias: l2; retention: l2; algo: gd");
    let problems = loaded.elaborate(None, &[("chunk", "8; memory: mlp")]).unwrap_err();
    assert_eq!(problems[0].code.0, "E0001");
    let problems = loaded.elaborate(None, &[("retention.alpha", "2")]).unwrap_err();
    assert!(loaded.show(&problems).contains("--set retention.alpha:1:1 `2`"), "{}", loaded.show(&problems));
}

#[test]
fn mistakes_in_several_clauses_are_told_together() {
    let mut loaded =
        load("memory: mlp(2.5); bias: hubr; retention: l2(alpha = 2); algo: gd(eta = -1); chunk: 0");
    let problems = loaded.elaborate(None, &[]).unwrap_err();
    let codes: Vec<&str> = problems.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["E0101", "E0104", "E0104"], "{}", loaded.show(&problems));
}

#[test]
fn a_shape_error_shows_both_shapes_at_both_places() {
    let mut loaded = load(
        "memory: m; bias: l2; retention: none; algo: gd;
         memory m { weight W: [dv, 3 * dk]; slow g: [2 * dv]; read(x) = g * (W @ outer(x, x)); }",
    );
    let problems = loaded.elaborate(None, &[]).unwrap_err();
    let labels: Vec<String> =
        problems[0].labels.iter().map(|l| format!("{} {}", loaded.sources.text(l.span), l.text)).collect();
    assert_eq!(labels, ["W this is [dv, 3*dk]", "outer(x, x) this is [dk, dk]"]);
}

#[test]
fn nested_calls_end_in_a_limit_not_in_a_crash() {
    let mut text =
        String::from("memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = f0(sum(y)); }\n");
    for i in 0..2000 {
        text += &format!("fn f{i}(x) = 1 + (2 * (3 + f{}(x)));\n", i + 1);
    }
    text += "fn f2000(x) = x;";
    let mut loaded = load_with(&text, &Library::standard(), &[]);
    let problems = loaded.elaborate(None, &[]).unwrap_err();
    assert_eq!(problems[0].code.0, "E0003", "{}", loaded.show(&problems));

    let mut text =
        String::from("memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = f0(sum(y)); }\n");
    for i in 0..60 {
        text += &format!("fn f{i}(x) = f{}(x) + f{}(x + 1);\n", i + 1, i + 1);
    }
    text += "fn f60(x) = x;";
    let mut loaded = load(&text);
    let problems = loaded.elaborate(None, &[]).unwrap_err();
    assert_eq!(problems[0].code.0, "E0206", "{}", loaded.show(&problems));
}

#[test]
fn a_layer_made_from_itself_is_refused() {
    let mut loaded = load("layer a = b; layer b = c; layer c = a;");
    let problems = loaded.elaborate(Some("b"), &[]).unwrap_err();
    assert_eq!(problems[0].code.0, "E0106", "{}", loaded.show(&problems));
}

#[test]
fn definitions_that_no_layer_chooses_are_checked_alone() {
    for (text, code, says) in [
        ("bias b { loss = sum(e^2); }", "E0101", "`e` is not defined here"),
        ("bias b(delta: positive) { loss = y - v; }", "E0201", "sum it up"),
        ("retention r { local(W, P) = sum((W - Q)^2); }", "E0101", "`Q` is not defined here"),
        ("memory m { weight W: [dv, dk]; read(x) = W @ y; }", "E0101", "`y` is not defined here"),
        ("algo a(eta: positive) { direction = -eta * gard(W); }", "E0101", "did you mean `grad`?"),
        ("fn f(w) = w * lgo(w);", "E0101", "did you mean `log`?"),
        ("bias b { loss = f(sum(y)); } fn f(x) = f(x);", "E0106", "calls itself"),
        (
            "memory: matrix; bias: l2; retention: none; algo: gd; algo a { direction = W + 1 + V; }",
            "E0101",
            "`V`",
        ),
    ] {
        let mut loaded = load(text);
        let (_, problems) = loaded.program.check_alone(&mut loaded.sources, &mut |_| Vec::new());
        assert!(problems.iter().any(|d| d.code.0 == code), "{text}\n{}", loaded.show(&problems));
        assert!(loaded.show(&problems).contains(says), "{text}\n{}", loaded.show(&problems));
    }
}

#[test]
fn what_is_right_alone_is_left_in_peace() {
    let mut loaded = load(
        "bias b(p: real) { loss = sum(abs(y - v)^p); }
         retention r(f: fn, alpha: unit) { local(W, P) = bregman(f, W, P); }
         retention s(q: real) { require above_one(q); dual A' = A + u; potential(W) = norm(W, q)^2; }
         retention t(alpha: unit) on simplex(row, 1) { local(W, P) = alpha * sum(W * log(W / P)); }
         memory m(depth: nat, scale: real) { require nonzero(depth); weight W: [dv, dk]; read(x) = scale * (W @ x); }
         memory c { history k, v; }
         algo a(eta: positive, at: {here, there}) { require linear(read); state P: [dk, dk]; P' = P + outer(k, k); direction = -eta * outer(v, k) @ P; }
         algo per_channel { input c: [dv]; direction = -c * grad(W); }
         algo h(n: nat) { require cache; weigh = exp(dot(q, k)); window: n; }
         fn f(a, b) = a @ b;
         fn g(a, h) = h(a);",
    );
    let (count, problems) = loaded.program.check_alone(&mut loaded.sources, &mut |_| Vec::new());
    assert_eq!((count, problems.len()), (11, 0), "{}", loaded.show(&problems));
}

#[test]
fn clauses_of_a_used_file_are_told_of() {
    let text = "use \"other.miras\"; memory: matrix; bias: l2; retention: none; algo: gd";
    let loaded = load_with(text, &Library::standard(), &[("other.miras", "bias: l2; memory: matrix;")]);
    let told: Vec<&str> = loaded.problems.iter().map(|d| d.code.0).collect();
    assert_eq!(told, ["W0102"]);
}

#[test]
fn a_size_that_is_no_size_for_some_lengths_is_warned_of() {
    let text = "memory: m; bias: l2; retention: none; algo: gd;
                memory m { weight W: [dk - 9, dk]; weight U: [dv, dk - 9]; read(x) = U @ (W @ x); }";
    let mut loaded = load(text);
    let (_, said) = loaded.program.elaborate(&mut loaded.sources, None, &[]).unwrap();
    assert!(said.iter().all(|d| d.code.0 == "W0201" && !d.is_error()) && said.len() == 2, "{said:?}");
}

#[test]
fn every_definition_of_the_library_is_right_alone() {
    for (path, text) in miras_stdlib::files().filter(|(path, _)| !path.starts_with("layer/")) {
        let mut loaded = load(text);
        let (count, problems) = loaded.program.check_alone(&mut loaded.sources, &mut |_| Vec::new());
        assert!(count > 0 && problems.is_empty(), "{path}\n{}", loaded.show(&problems));
    }
}
