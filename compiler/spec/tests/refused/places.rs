//! Mistakes in arguments, used files, recursion and places.

use super::Row;

pub const ROWS: &[Row] = &[
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
];
