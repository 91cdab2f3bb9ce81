//! What is refused, with which code, where, and with what help.

mod common;

use common::{describe, load, load_with};
use miras_spec::Library;

/// Code, program, a text of the first label's place, a text of the message or help.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    // names
    ("E0101", "memory: matrix; bias: hubr; retention: none; algo: gd", "hubr", "did you mean `huber`?"),
    (
        "E0101",
        "memory: matrix; bias: momentum; retention: none; algo: gd",
        "momentum",
        "`momentum` is an algo, not a bias",
    ),
    (
        "E0101",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(lef); let left = y; }",
        "lef",
        "not defined here",
    ),
    (
        "E0101",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { let left = y; loss = sum(lefd); }",
        "lefd",
        "did you mean `left`?",
    ),
    (
        "E0101",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = summ(y); }",
        "summ",
        "did you mean `sum`?",
    ),
    (
        "E0101",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { los = sum(y); }",
        "los",
        "did you mean `loss`?",
    ),
    (
        "E0101",
        "memory: matrix; bias: b(d = 1); retention: none; algo: gd; bias b(d: positve) { loss = sum(y); }",
        "positve",
        "did you mean `positive`?",
    ),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: l2(alpha = learned + 1); algo: gd",
        "learned",
        "declare `input name",
    ),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: none; algo: gd; chunks: 8",
        "chunks",
        "did you mean `chunk`?",
    ),
    ("E0101", "layer a = yad();", "yad", "did you mean `yaad`?"),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { state S; S' = grad(W); direction = T'; }",
        "T",
        "has no value here",
    ),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { S' = grad(W); direction = W; }",
        "S",
        "there is no state",
    ),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r on simplx(row, 1) { global(W) = sum(W); }",
        "simplx",
        "did you mean `simplex`?",
    ),
    (
        "E0101",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W[1]: [dv, dk]; read(x) = W[2] @ x; }",
        "W[2]",
        "declared: W[1]",
    ),
    (
        "E0101",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { require lineer(read); direction = W; }",
        "lineer",
        "did you mean `linear`?",
    ),
    ("E0101", "memory: matrix; bias: l2; retention: none; algo: gd(eta = inpt.x)", "x", "no tensor"),
    (
        "E0101",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(frobnicate(y)); }",
        "frobnicate",
        "fn frobnicate(x)",
    ),
    // twice
    (
        "E0102",
        "memory m { weight W: [dv, dk]; slow W: [dv, dk] = 1; read(x) = W @ x; } memory: m; bias: l2; retention: none; algo: gd",
        "W",
        "choose another name",
    ),
    (
        "E0102",
        "algo r { state W = zeros(W); W' = W - grad(W); direction = W'; } memory: matrix; bias: l2; retention: none; algo: r",
        "W",
        "choose another name",
    ),
    (
        "E0102",
        "memory: matrix; memory: matrix; bias: l2; retention: none; algo: gd",
        "memory: matrix;",
        "given twice",
    ),
    (
        "E0102",
        "layer a { memory: matrix; bias: l2; retention: none; algo: gd } layer a { memory: matrix; bias: l2; retention: none; algo: gd }",
        "a",
        "defined twice",
    ),
    (
        "E0102",
        "memory: matrix; bias: huber(delta = 1, delta = 2); retention: none; algo: gd",
        "delta = 2",
        "given twice",
    ),
    (
        "E0102",
        "input a; input a; memory: matrix; bias: l2; retention: none; algo: gd",
        "input a;",
        "`input.a`",
    ),
    (
        "E0102",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W[1]: [dv, dk]; slow W1: [dv]; weight W1: [dv]; read(x) = x; }",
        "weight W1: [dv];",
        "`memory.W1`",
    ),
    (
        "E0102",
        "memory: matrix; bias: l2; retention: r(u = 1); algo: gd; retention r(u: real) { global(W) = sum(W); }",
        "u",
        "meaning of its own",
    ),
    (
        "E0102",
        "fn f(x) = x; fn f(x) = x; memory: matrix; bias: l2; retention: none; algo: gd",
        "f",
        "defined twice",
    ),
    (
        "E0102",
        "memory: matrix; bias: l2; retention: none; algo: gd; layer b = yaad;",
        "memory",
        "one or the other",
    ),
    (
        "E0102",
        "input q: [dk]; memory: matrix; bias: l2; retention: none; algo: gd",
        "q",
        "has a meaning of its own here",
    ),
    // missing
    ("E0103", "memory: matrix; bias: l2; algo: gd", "memory", "add `retention: ...;`"),
    (
        "E0109",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { slope = y - v; }",
        "b",
        "has no `loss`",
    ),
    (
        "E0109",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [dv]; }",
        "m",
        "has no `read`",
    ),
    (
        "E0109",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { read(x) = x; }",
        "m",
        "has no weights",
    ),
    (
        "E0109",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r { let a = 1; }",
        "r",
        "says nothing",
    ),
    (
        "E0109",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r { dual A' = A + u; }",
        "dual",
        "leads to no weights",
    ),
    (
        "E0109",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r { potential(W) = sum(W^2); }",
        "potential",
        "needs a dual",
    ),
    (
        "E0109",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { let b = 1; }",
        "a",
        "says nothing",
    ),
    (
        "E0109",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { state S; direction = S; }",
        "state S;",
        "never renewed",
    ),
    // arguments
    (
        "E0104",
        "memory: matrix; bias: l2; retention: l2(alpha = 2); algo: gd",
        "alpha = 2",
        "`alpha` = 2 is not in [0, 1]",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = 1 - 3)",
        "eta = 1 - 3",
        "not in [0, inf)",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = 1 / 0)",
        "eta = 1 / 0",
        "not in [0, inf)",
    ),
    // starts of trained values are held to the kind of the parameter too
    (
        "E0104",
        "memory: matrix; bias: l2; retention: l2(alpha = trained(init = 1.5)); algo: gd",
        "alpha = trained(init = 1.5)",
        "`alpha` = 1.5 is not in [0, 1]",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = trained(init = -1))",
        "eta = trained(init = -1)",
        "give it a value that is in [0, inf)",
    ),
    (
        "E0104",
        "trained A: positive [dv] = -2; memory: matrix; bias: l2; retention: none; algo: gd(eta = sum(A))",
        "-2",
        "`A` = -2 is not in [0, inf)",
    ),
    ("E0104", "memory: matrix; bias: lp; retention: none; algo: gd", "bias: lp;", "`p` needs a value"),
    ("E0104", "memory: matrix; bias: lp(0); retention: none; algo: gd", "bias: lp(0);", "`p` must not be 0"),
    (
        "E0104",
        "memory: matrix; bias: huber(dleta = 1); retention: none; algo: gd",
        "dleta",
        "did you mean `delta`?",
    ),
    ("E0104", "memory: matrix; bias: huber(1, 2); retention: none; algo: gd", "2", "has 1 parameters"),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = 1, previous)",
        "previous",
        "without a name",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(at = retaind)",
        "at = retaind",
        "did you mean `retained`?",
    ),
    ("E0104", "memory: mlp(act = 3); bias: l2; retention: none; algo: gd", "act = 3", "must be a function"),
    ("E0104", "memory: mlp(2.5); bias: l2; retention: none; algo: gd", "2.5", "whole number"),
    (
        "E0104",
        "memory: m(learned); bias: l2; retention: none; algo: gd; memory m(a: real) { weight W: [dv, dk]; read(x) = a * W @ x; }",
        "learned",
        "cannot vary by token",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = learned(per = chanel))",
        "chanel",
        "did you mean `channel`?",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = learned(init = 1))",
        "init = 1",
        "takes only `per = ...`",
    ),
    (
        "E0104",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(y, v, y); }",
        "sum(y, v, y)",
        "takes 1 arguments",
    ),
    (
        "E0104",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = f(y); } fn f(a, b) = a;",
        "f(y)",
        "takes 2 arguments",
    ),
    ("E0104", "memory: matrix; bias: l2; retention: none; algo: gd; chunk: 0", "chunk: 0", "1 to 65536"),
    ("E0104", "memory: matrix; bias: l2; retention: none; algo: gd; read: later", "read: later", "`after`"),
    ("E0104", "layer a = yaad(depth = 3);", "depth = 3", "nothing called `depth`"),
    ("E0104", "layer a = yaad(3);", "3", "has 0 parameters"),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: none; algo: newton(forget = 1)",
        "algo: newton(forget = 1)",
        "less than 1",
    ),
    (
        "E0104",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r on interval(1, 0) { global(W) = sum(W); }",
        "1, 0",
        "empty",
    ),
    // use
    (
        "E0105",
        "use \"nothing.miras\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"nothing.miras\"",
        "there is no such file",
    ),
    (
        "E0105",
        "use \"../up.miras\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"../up.miras\"",
        "leaves the folder",
    ),
    (
        "E0105",
        "use \"a/../../up.miras\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"a/../../up.miras\"",
        "leaves the folder",
    ),
    (
        "E0105",
        "use \"/etc/passwd\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"/etc/passwd\"",
        "absolute",
    ),
    (
        "E0105",
        "use \"C:/x.miras\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"C:/x.miras\"",
        "absolute",
    ),
    (
        "E0105",
        "use \"..\\\\x.miras\"; memory: matrix; bias: l2; retention: none; algo: gd",
        "\"..",
        "portable",
    ),
    // recursion
    (
        "E0106",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = f(sum(y)); } fn f(x) = g(x); fn g(x) = f(x);",
        "f",
        "calls itself",
    ),
    ("E0107", "memory: matrix; bias: l2; retention: none; algo: gd; block b { }", "block", "reserved"),
    ("E0108", "layer a = yaad; layer b = yaad;", "a", "choose one"),
    ("E0108", "fn f(x) = x;", "", "`miras check FILE`"),
    // places
    (
        "E0110",
        "state S; memory: matrix; bias: l2; retention: none; algo: gd",
        "state S;",
        "declares no `state`",
    ),
    (
        "E0110",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { state S; loss = sum(y); }",
        "state S;",
        "no state",
    ),
    (
        "E0110",
        "memory: m; bias: l2; retention: none; algo: nonparametric; memory m { history k, v; weight W: [dv]; }",
        "history k, v;",
        "no place for a weight",
    ),
    (
        "E0110",
        "memory: matrix; bias: l2; retention: r; algo: gd; retention r { W' = W + u; global(W) = sum(W); }",
        "global",
        "nothing to be solved",
    ),
    (
        "E0110",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { direction = W; weigh = 1; }",
        "weigh = 1;",
        "not both",
    ),
    (
        "E0110",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { direction = W; window: 3; }",
        "window: 3;",
        "weighs a history",
    ),
    (
        "E0110",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = { state S; sum(y) }; }",
        "state S;",
        "a block holds",
    ),
    // shapes
    (
        "E0201",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = y - v; }",
        "y - v",
        "sum it up",
    ),
    (
        "E0201",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [dv, 3 * dk]; read(x) = W @ x; }",
        "W",
        "[dv, 3*dk] and [dk] do not fit",
    ),
    (
        "E0201",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [dv, dk]; read(x) = W; }",
        "W",
        "must give a vector [dv]",
    ),
    (
        "E0201",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [2 * dv, dk]; read(x) = W @ x; }",
        "W @ x",
        "must have the shape [dv]",
    ),
    (
        "E0202",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { input c: [3]; direction = c * grad(W); }",
        "c",
        "`row(x)`",
    ),
    (
        "E0202",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a { state P: [dk, dk]; P' = P * k; direction = grad(W); }",
        "k",
        "does not say where it lies",
    ),
    (
        "E0203",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(y < v); }",
        "y < v",
        "truth value",
    ),
    (
        "E0203",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(if y then 1 else 2); }",
        "y",
        "expected a truth value",
    ),
    (
        "E0203",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = sum(grad(y)); }",
        "grad(y)",
        "in an algo only",
    ),
    (
        "E0203",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { loss = exp; }",
        "exp",
        "found a function",
    ),
    (
        "E0201",
        "memory: mlp(2); bias: l2; retention: none; algo: rwkv7",
        "W",
        "read for each weight; this is `W[2]`",
    ),
    (
        "E0203",
        "memory: mlp(2); bias: l2; retention: none; algo: a; algo a { direction = outer(v, k); }",
        "outer(v, k)",
        "has 2 weights",
    ),
    (
        "E0203",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W[1]: [dv, dk]; read(x) = W @ x; }",
        "W",
        "write `W[1]`",
    ),
    (
        "E0203",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [dv, dk, 2]; read(x) = x; }",
        "[dv, dk, 2]",
        "at most 2 axes",
    ),
    ("E0203", "memory: 3; bias: l2; retention: none; algo: gd", "3", "write `memory: name(...);`"),
    (
        "E0104",
        "memory: mlp(expand = 0); bias: l2; retention: none; algo: gd",
        "memory: mlp",
        "`expand` must not be 0",
    ),
    ("E0104", "memory: mlp(0); bias: l2; retention: none; algo: gd", "memory: mlp", "`depth` must not be 0"),
    (
        "E0203",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [1 - dk, dk]; read(x) = W @ x; }",
        "1 - dk",
        "must be positive",
    ),
    (
        "E0110",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { for l in 1..2 { require single(read); } weight W: [dv, dk]; read(x) = W @ x; }",
        "require single(read);",
        "out of the loop",
    ),
    (
        "E0204",
        "memory: mlp(2); bias: l2; retention: l2(alpha = learned(per = value)); algo: gd",
        "(1 - alpha)",
        "per value has no axis",
    ),
    (
        "E0204",
        "memory: mlp(2); bias: l2; retention: none; algo: gd(eta = learned(per = key))",
        "-eta",
        "per key has no axis",
    ),
    (
        "E0204",
        "memory: mlp(3); bias: l2; retention: none; algo: gd(eta = learned(per = channel))",
        "-eta",
        "per channel has no axis on a tensor [hidden, hidden]",
    ),
    (
        "E0204",
        "memory: mlp(2); bias: l2; retention: none; algo: gd(eta = learned(per = entry))",
        "-eta",
        "per entry",
    ),
    (
        "E0204",
        "memory: matrix; bias: huber(learned(per = key)); retention: none; algo: gd",
        "delta",
        "per key has no axis",
    ),
    ("E0205", "memory: mlp(learned); bias: l2; retention: none; algo: gd", "learned", "must be known"),
    (
        "E0205",
        "memory: matrix; bias: l2; retention: none; algo: a; algo a(b: real = learned) { state S = b * W; S' = S; direction = S'; }",
        "b * W",
        "varies by token",
    ),
    ("E0205", "input n: [k]; memory: matrix; bias: l2; retention: none; algo: gd", "k", "a size must be"),
    (
        "E0205",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { let s = y; for i in 1..dk { s = s + y; } loss = sum(s); }",
        "dk",
        "the end of a range",
    ),
    // what belongs to a token
    (
        "E0104",
        "memory: m(norm(k)); bias: l2; retention: none; algo: gd; memory m(a: real) { weight W: [dv, dk]; read(x) = a * (W @ x); }",
        "a * (W @ x)",
        "varies by token",
    ),
    (
        "E0203",
        "memory: cache; bias: l2; retention: none; algo: nonparametric(kernel = exp(norm(v)))",
        "kernel",
        "not on its value",
    ),
    // limits
    (
        "E0206",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { let s = y; for i in 1..3000 { s = tanh(s + v); } loss = sum(s); }",
        "s + v",
        "operations deep",
    ),
    (
        "E0206",
        "memory: mlp(100000); bias: l2; retention: none; algo: gd",
        "weight W[l]",
        "at most 256 weights",
    ),
    (
        "E0206",
        "memory: mlp(expand = 1000000000); bias: l2; retention: none; algo: gd",
        "expand = 1000000000",
        "larger than 1000000",
    ),
    (
        "E0206",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { let s = y; for i in 1..1000000000 { s = 2 * s; } loss = sum(s); }",
        "2 * s",
        "operations deep",
    ),
    (
        "E0206",
        "memory: matrix; bias: b; retention: none; algo: gd; bias b { for i in 1..100000 { for j in 1..100000 { } } loss = sum(y); }",
        "1..100000",
        "takes more than",
    ),
    (
        "E0206",
        "memory: m; bias: l2; retention: none; algo: gd; memory m { weight W: [1000000 * 1000000 * dk, dk]; read(x) = x; }",
        "1000000",
        "factor over",
    ),
    (
        "E0301",
        "memory: matrix; bias: l2; retention: bregman(f); algo: gd; fn f(w) = w * sum(w);",
        "f",
        "no slope by entry",
    ),
    // pairs
    (
        "E0303",
        "memory: matrix; bias: huber; retention: none; algo: implicit(eta = 1)",
        "bias: huber;",
        "half the squared distance",
    ),
    (
        "E0303",
        "memory: mlp(1); bias: l2; retention: none; algo: implicit(eta = 1)",
        "memory: mlp(1);",
        "`W @ x`",
    ),
    (
        "E0303",
        "memory: matrix; bias: l2; retention: l2(0.1); algo: newton",
        "retention: l2(0.1);",
        "forgets nothing",
    ),
    (
        "E0303",
        "memory: matrix; bias: l2; retention: none; algo: nonparametric",
        "memory: matrix;",
        "keeps a history",
    ),
    (
        "E0303",
        "memory: cache; bias: l2; retention: l2; algo: nonparametric",
        "retention: l2;",
        "forgets nothing",
    ),
    ("E0303", "memory: cache; bias: l2; retention: none; algo: gd", "memory: cache", "no weights"),
    (
        "E0303",
        "memory: matrix; bias: l2; retention: l2(alpha = k); algo: multi(2)",
        "retention: l2(alpha = k);",
        "keys and values per token",
    ),
    (
        "E0304",
        "memory: matrix; bias: l2; retention: kl(alpha = learned(per = key)); algo: gd",
        "retention: kl",
        "per = value",
    ),
    (
        "E0304",
        "memory: mlp(2); bias: l2; retention: kl(alpha = learned(per = channel)); algo: gd",
        "retention: kl",
        "varies within a row",
    ),
    (
        "E0304",
        "memory: matrix; bias: l2; retention: kl(alpha = learned(per = entry)); algo: gd",
        "retention: kl",
        "varies within a row",
    ),
];

#[test]
fn each_mistake_has_its_code_place_and_help() {
    let mut wrong = String::new();
    for (code, text, place, says) in REFUSED {
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
        let (_, problems) = loaded.program.check_alone(&mut loaded.sources);
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
    let (count, problems) = loaded.program.check_alone(&mut loaded.sources);
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
        let (count, problems) = loaded.program.check_alone(&mut loaded.sources);
        assert!(count > 0 && problems.is_empty(), "{path}\n{}", loaded.show(&problems));
    }
}
