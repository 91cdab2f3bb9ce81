//! Mistakes in names: unknown, given twice, missing.

use super::Row;

pub const ROWS: &[Row] = &[
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
];
