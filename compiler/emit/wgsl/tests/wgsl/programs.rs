//! Programs written by hand: every kind of statement, every function, both directions of loops.

use miras_base::scalar::{Cmp, Fn1, Fn2, ROWS};
use miras_kernel::build::row_major;
use miras_kernel::{
    Access, Affine, Apply, Axis, Copy, Count, Expr, Factor, Loop, Matrix, Nest, Op, Order, Product, Program,
    Role, Scalar, Stmt, VarId,
};

pub const TOKEN: Role = Role::TokenInput { entries: 1 };
pub const OUTPUT: Role = Role::TokenOutput { entries: 1 };

/// All of them.
pub fn all() -> Vec<Program> {
    vec![
        sample(),
        functions(3),
        pairs(),
        delta(5, 3),
        delta(48, 300),
        backwards(),
        turns(7),
        scalars(),
        passes(4),
        echoes(),
        sums(),
        block(),
    ]
}

pub fn over_tokens(t: VarId, body: Vec<Stmt>) -> Stmt {
    Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body })
}

fn copy(equation: &str, src: Access, dst: Access, len: usize) -> Stmt {
    Stmt::Copy(Copy { equation: equation.into(), src, dst, len })
}

/// Per token `o = (y - max y) / (head + 1)`, made positive, where `y = W exp(x)`; then `W = 2 W` twice, by halves.
pub fn sample() -> Program {
    let mut p = Program::new("sample");
    let x = p.add_array("x", TOKEN, &[2], "input");
    let w0 = p.add_array("memory.W", Role::HeadInput, &[2, 2], "");
    let w = p.add_array("state.W", Role::StateOut, &[2, 2], "W");
    let e = p.add_array("e", Role::Scratch, &[2], "exp(x)");
    let y = p.add_array("y", Role::Scratch, &[2], "W e");
    let o = p.add_array("o", OUTPUT, &[2], "");
    let t = p.add_var("t");
    let exp = Stmt::Apply(Apply {
        equation: "e = exp(x)".into(),
        function: Fn1::Exp,
        src: Access::new(x, Affine::term(2, t)),
        dst: Access::start(e),
        len: 2,
    });
    let matrix = |array, row_stride| Matrix { start: Access::start(array), row_stride, col_stride: 1 };
    let product = Stmt::Product(Product {
        equation: "y = W e".into(),
        m: 2,
        n: 1,
        k: 2,
        a: matrix(w, 2),
        b: matrix(e, 1),
        c: matrix(y, 1),
        alpha: Factor::Const(1.0),
        beta: Factor::Const(0.0),
        triangular: false,
    });
    let (i, j) = (p.axis("i", 2), p.axis("j", 2));
    let mut out = Nest::new("o = |y - max y| / (head + 1)", vec![i]);
    let other = out.load(y, Affine::term(1, j.var));
    let largest = out.reduce(Op::Max, vec![j], other);
    let own = out.load(y, Affine::term(1, i.var));
    let below = out.fn2(Fn2::Sub, own, largest);
    let head = out.expr(Expr::Scalar(Scalar::Head));
    let one = out.constant(1.0);
    let heads = out.fn2(Fn2::Add, head, one);
    let scaled = out.fn2(Fn2::Div, below, heads);
    let negative = out.fn1(Fn1::Neg, scaled);
    let zero = out.constant(0.0);
    let value = out.select(Cmp::Lt, scaled, zero, negative, scaled);
    out.store(o, Affine::term(2, t).plus(1, i.var), value);
    let (half, k) = (p.add_var("half"), p.axis("k", 2));
    let mut twice = Nest::new("W = 2 W", vec![k]);
    let place = Affine::term(1, k.var).plus(2, half);
    let old = twice.load(w, place.clone());
    let two = twice.constant(2.0);
    let new = twice.fn2(Fn2::Mul, two, old);
    twice.store(w, place, new);
    let halves =
        Loop { var: half, count: Count::Const(2), order: Order::Descending, body: vec![Stmt::Nest(twice)] };
    p.body = vec![
        copy("W = W_0", Access::start(w0), Access::start(w), 4),
        over_tokens(t, vec![exp, product, Stmt::Nest(out), Stmt::Loop(halves)]),
    ];
    p
}

/// `y[t, f, i] = f(x[t, i])` for every function of one argument, `per` arguments a token.
pub fn functions(per: usize) -> Program {
    let mut p = Program::new("functions");
    let x = p.add_array("x", TOKEN, &[per], "");
    let y = p.add_array("y", OUTPUT, &[ROWS.len(), per], "");
    let t = p.add_var("t");
    let mut body = Vec::new();
    for (at, row) in ROWS.iter().enumerate() {
        let i = p.axis("i", per);
        let mut n = Nest::new(format!("y = {}(x)", row.name), vec![i]);
        let own = n.load(x, Affine::term(per as i64, t).plus(1, i.var));
        let value = n.fn1(row.function, own);
        let place = Affine::constant((at * per) as i64).plus((ROWS.len() * per) as i64, t).plus(1, i.var);
        n.store(y, place, value);
        body.push(Stmt::Nest(n));
    }
    p.body = vec![over_tokens(t, body)];
    p
}

/// Functions of two arguments, with constant exponents too.
pub fn pairs() -> Program {
    const KINDS: [Fn2; 7] = [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max];
    const POWERS: [f64; 6] = [0.0, 1.0, 3.0, -2.0, 1.5, 0.3];
    let mut p = Program::new("pairs");
    let x = p.add_array("x", TOKEN, &[2], "");
    let y = p.add_array("y", OUTPUT, &[KINDS.len() + POWERS.len()], "");
    let t = p.add_var("t");
    let mut n = Nest::new("y = f(x_0, x_1) for every f", vec![]);
    let a = n.load(x, Affine::term(2, t));
    let b = n.load(x, Affine::constant(1).plus(2, t));
    let mut values = KINDS.map(|f| n.fn2(f, a, b)).to_vec();
    for c in POWERS {
        let exponent = n.constant(c);
        values.push(n.fn2(Fn2::Pow, a, exponent));
    }
    for (at, value) in values.iter().enumerate() {
        n.store(y, Affine::constant(at as i64).plus((KINDS.len() + POWERS.len()) as i64, t), *value);
    }
    p.body = vec![over_tokens(t, vec![Stmt::Nest(n)])];
    p
}

/// Per token, which is a block of 32 rows of x: `z = tanh(x W)`, `r` the running products of keep, `o = r * z`, then
/// `W = W + x^T o`.
pub fn block() -> Program {
    const ROWS: usize = 32;
    const SIZE: usize = 32;
    let mut p = Program::new("block");
    let x = p.add_array("x", TOKEN, &[ROWS, SIZE], "rows of the block");
    let keep = p.add_array("keep", TOKEN, &[ROWS], "what each row keeps");
    let w0 = p.add_array("state.W", Role::StateIn, &[SIZE, SIZE], "");
    let w = p.add_array("W", Role::StateOut, &[SIZE, SIZE], "W");
    let y = p.add_array("y", Role::Scratch, &[ROWS, SIZE], "x W");
    let z = p.add_array("z", Role::Scratch, &[ROWS, SIZE], "tanh(x W)");
    let r = p.add_array("r", Role::Scratch, &[ROWS], "running products of keep");
    let more = p.add_array("more", Role::Scratch, &[SIZE, SIZE], "x^T o");
    let o = p.add_array("o", OUTPUT, &[ROWS, SIZE], "");
    let (block, t) = (p.add_var("block"), p.add_var("t"));
    let all = ROWS * SIZE;
    let at = |array, size: usize| Access::new(array, Affine::term(size as i64, block));
    let matrix = |start, row_stride, col_stride| Matrix { start, row_stride, col_stride };
    let product = |equation: &str, a, b, c| {
        Stmt::Product(Product {
            equation: equation.into(),
            m: 32,
            n: SIZE,
            k: 32,
            a,
            b,
            c,
            alpha: Factor::Const(1.0),
            beta: Factor::Const(0.0),
            triangular: false,
        })
    };
    let read = product(
        "y = x W",
        matrix(at(x, all), SIZE, 1),
        matrix(Access::start(w), SIZE, 1),
        matrix(Access::start(y), SIZE, 1),
    );
    let bend = Stmt::Apply(Apply {
        equation: "z = tanh(y)".into(),
        function: Fn1::Tanh,
        src: Access::start(y),
        dst: Access::start(z),
        len: all,
    });
    let mut first = Nest::new("r = keep", vec![]);
    let own = first.load(keep, Affine::term(ROWS as i64, block));
    first.store(r, Affine::default(), own);
    let mut step = Nest::new("r_t = r_(t-1) * keep_t", vec![]);
    let (old, own) = (
        step.load(r, Affine::term(1, t)),
        step.load(keep, Affine::constant(1).plus(ROWS as i64, block).plus(1, t)),
    );
    let kept = step.fn2(Fn2::Mul, old, own);
    step.store(r, Affine::constant(1).plus(1, t), kept);
    let steps =
        Loop { var: t, count: Count::Const(ROWS - 1), order: Order::Ascending, body: vec![Stmt::Nest(step)] };
    let (i, j) = (p.axis("i", ROWS), p.axis("j", SIZE));
    let mut out = Nest::new("o = r z", vec![i, j]);
    let place = Affine::term(SIZE as i64, i.var).plus(1, j.var);
    let (a, b) = (out.load(r, Affine::term(1, i.var)), out.load(z, place.clone()));
    let value = out.fn2(Fn2::Mul, a, b);
    out.store(o, place.plus(all as i64, block), value);
    let write = product(
        "",
        matrix(at(x, all), 1, SIZE),
        matrix(at(o, all), SIZE, 1),
        matrix(Access::start(more), SIZE, 1),
    );
    let (i, j) = (p.axis("i", SIZE), p.axis("j", SIZE));
    let mut add = Nest::new("W = W + x^T o", vec![i, j]);
    let place = Affine::term(SIZE as i64, i.var).plus(1, j.var);
    let (a, b) = (add.load(w, place.clone()), add.load(more, place.clone()));
    let sum = add.fn2(Fn2::Add, a, b);
    add.store(w, place, sum);
    let body =
        vec![read, bend, Stmt::Nest(first), Stmt::Loop(steps), Stmt::Nest(out), write, Stmt::Nest(add)];
    p.body =
        vec![copy("W = W_0", Access::start(w0), Access::start(w), SIZE * SIZE), over_tokens(block, body)];
    p
}

/// Online least squares with decay: `W = (1 - alpha) W - eta (W k - v) k^T; o = W q`, continuing a state.
pub fn delta(dk: usize, dv: usize) -> Program {
    let mut p = Program::new("delta");
    let k = p.add_array("k", TOKEN, &[dk], "key");
    let v = p.add_array("v", TOKEN, &[dv], "value");
    let q = p.add_array("q", TOKEN, &[dk], "query");
    let alpha = p.add_array("retention.alpha", TOKEN, &[], "forgotten fraction");
    let eta = p.add_array("algo.eta", Role::HeadInput, &[dv], "step per channel");
    let before = p.add_array("state.memory.W.before", Role::StateIn, &[dv, dk], "W at the start");
    let w = p.add_array("state.memory.W", Role::StateOut, &[dv, dk], "W");
    let y = p.add_array("y", Role::Scratch, &[dv], "y = W k");
    let o = p.add_array("o", OUTPUT, &[dv], "o = W q");
    let t = p.add_var("t");
    let read = |p: &mut Program, equation: &str, x, target, place: Affine| {
        let (row, sum) = (p.axis("i", dv), p.axis("j", dk));
        let mut n = Nest::new(equation, vec![row]);
        let weight = n.load(w, Affine::term(dk as i64, row.var).plus(1, sum.var));
        let x = n.load(x, Affine::term(dk as i64, t).plus(1, sum.var));
        let product = n.fn2(Fn2::Mul, weight, x);
        let total = n.reduce(Op::Sum, vec![sum], product);
        n.store(target, place.plus(1, row.var), total);
        Stmt::Nest(n)
    };
    let seen = read(&mut p, "y = W k", k, y, Affine::default());
    let (row, col) = (p.axis("i", dv), p.axis("j", dk));
    let mut n = Nest::new("W = (1 - alpha) W - eta (y - v) k^T", vec![row, col]);
    let place = row_major(&[dv, dk], &[row.var, col.var]);
    let old = n.load(w, place.clone());
    let a = n.load(alpha, Affine::term(1, t));
    let one = n.constant(1.0);
    let keep = n.fn2(Fn2::Sub, one, a);
    let kept = n.fn2(Fn2::Mul, keep, old);
    let yi = n.load(y, Affine::term(1, row.var));
    let vi = n.load(v, Affine::term(dv as i64, t).plus(1, row.var));
    let e = n.fn2(Fn2::Sub, yi, vi);
    let step = n.load(eta, Affine::term(1, row.var));
    let scaled = n.fn2(Fn2::Mul, step, e);
    let kj = n.load(k, Affine::term(dk as i64, t).plus(1, col.var));
    let write = n.fn2(Fn2::Mul, scaled, kj);
    let new = n.fn2(Fn2::Sub, kept, write);
    n.store(w, place, new);
    let answer = read(&mut p, "o = W q", q, o, Affine::term(dv as i64, t));
    p.body = vec![
        copy("W = W before", Access::start(before), Access::start(w), dk * dv),
        over_tokens(t, vec![seen, Stmt::Nest(n), answer]),
    ];
    p
}

/// From the last token to the first `s = s / 2 + x; o = s`, after a pass forwards that sums all tokens up.
pub fn backwards() -> Program {
    let mut p = Program::new("backwards");
    let x = p.add_array("x", TOKEN, &[], "");
    let s = p.add_array("s", Role::StateOut, &[], "");
    let o = p.add_array("o", OUTPUT, &[], "");
    let (t, u) = (p.add_var("t"), p.add_var("t"));
    let mut start = Nest::new("s = 0", vec![]);
    let zero = start.constant(0.0);
    start.store(s, Affine::default(), zero);
    let step = |equation: &str, factor: f64, t| {
        let mut n = Nest::new(equation, vec![]);
        let (old, own) = (n.load(s, Affine::default()), n.load(x, Affine::term(1, t)));
        let factor = n.constant(factor);
        let kept = n.fn2(Fn2::Mul, factor, old);
        let new = n.fn2(Fn2::Add, kept, own);
        n.store(s, Affine::default(), new);
        n
    };
    let up = step("s = s + x", 1.0, t);
    let mut down = step("s = s / 2 + x; o = s", 0.5, u);
    let new = down.stores[0].value;
    down.store(o, Affine::term(1, u), new);
    let back = Loop { var: u, count: Count::Tokens, order: Order::Descending, body: vec![Stmt::Nest(down)] };
    p.body = vec![Stmt::Nest(start), over_tokens(t, vec![Stmt::Nest(up)]), Stmt::Loop(back)];
    p
}

/// Per token `n` times `s = (s + x) / 2` and a sum over `n` numbers: many turns of loops.
pub fn turns(n: usize) -> Program {
    let mut p = Program::new("turns");
    let x = p.add_array("x", TOKEN, &[], "");
    let s = p.add_array("s", Role::StateOut, &[3], "");
    let o = p.add_array("o", OUTPUT, &[3], "");
    let (t, again) = (p.add_var("t"), p.add_var("again"));
    let (zero, i, k, many) = (p.axis("i", 3), p.axis("i", 3), p.axis("i", 3), p.axis("j", n));
    let mut start = Nest::new("s = 1", vec![zero]);
    let one = start.constant(1.0);
    start.store(s, Affine::term(1, zero.var), one);
    let mut step = Nest::new("s = (s + x) / 2", vec![i]);
    let (old, own) = (step.load(s, Affine::term(1, i.var)), step.load(x, Affine::term(1, t)));
    let sum = step.fn2(Fn2::Add, old, own);
    let half = step.constant(0.5);
    let new = step.fn2(Fn2::Mul, sum, half);
    step.store(s, Affine::term(1, i.var), new);
    let mut out = Nest::new("o = s + sum of x j / n^2", vec![k]);
    let state = out.load(s, Affine::term(1, k.var));
    let index = out.expr(Expr::Index(many.var));
    let own = out.load(x, Affine::term(1, t));
    let product = out.fn2(Fn2::Mul, own, index);
    let size = out.constant((n * n) as f64);
    let small = out.fn2(Fn2::Div, product, size);
    let total = out.reduce(Op::Sum, vec![many], small);
    let value = out.fn2(Fn2::Add, state, total);
    out.store(o, Affine::term(3, t).plus(1, k.var), value);
    let repeat =
        Loop { var: again, count: Count::Const(n), order: Order::Ascending, body: vec![Stmt::Nest(step)] };
    p.body = vec![Stmt::Nest(start), over_tokens(t, vec![Stmt::Loop(repeat), Stmt::Nest(out)])];
    p
}

/// Per token one pass over its past: `o = (sum over i <= t of (q . k_i) v_i) / (kept + 1)`, tokens apart.
pub fn passes(d: usize) -> Program {
    let mut p = Program::new("passes");
    let q = p.add_array("q", TOKEN, &[d], "query");
    let k = p.add_array("past.k", Role::PastInput { entries: 1 }, &[d], "keys of the past");
    let v = p.add_array("past.v", Role::PastInput { entries: 1 }, &[d], "values of the past");
    let score = p.add_array("score", Role::Scratch, &[], "q . k");
    let sum = p.add_array("sum", Role::Scratch, &[d], "");
    let o = p.add_array("o", OUTPUT, &[d], "");
    let (t, i) = (p.add_var("t"), p.add_var("i"));
    let (zero, inner, each, last) = (p.axis("j", d), p.axis("j", d), p.axis("j", d), p.axis("j", d));
    let place = |var, axis: Axis| Affine::term(d as i64, var).plus(1, axis.var);
    let mut start = Nest::new("sum = 0", vec![zero]);
    let nothing = start.constant(0.0);
    start.store(sum, Affine::term(1, zero.var), nothing);
    let mut dot = Nest::new("score = q . k, 0 for tokens to come", vec![]);
    let (a, b) = (dot.load(q, place(t, inner)), dot.load(k, place(i, inner)));
    let product = dot.fn2(Fn2::Mul, a, b);
    let total = dot.reduce(Op::Sum, vec![inner], product);
    let (own, kept) = (dot.expr(Expr::Index(t)), dot.expr(Expr::Scalar(Scalar::Kept)));
    let (now, then) = (dot.fn2(Fn2::Add, own, kept), dot.expr(Expr::Index(i)));
    let nothing = dot.constant(0.0);
    let seen = dot.select(Cmp::Le, then, now, total, nothing);
    dot.store(score, Affine::default(), seen);
    let mut more = Nest::new("sum = sum + score v", vec![each]);
    let (old, s) = (more.load(sum, Affine::term(1, each.var)), more.load(score, Affine::default()));
    let value = more.load(v, place(i, each));
    let term = more.fn2(Fn2::Mul, s, value);
    let new = more.fn2(Fn2::Add, old, term);
    more.store(sum, Affine::term(1, each.var), new);
    let pass = Loop {
        var: i,
        count: Count::Past,
        order: Order::Ascending,
        body: vec![Stmt::Nest(dot), Stmt::Nest(more)],
    };
    let mut out = Nest::new("o = sum / (kept + 1)", vec![last]);
    let (all, kept) = (out.load(sum, Affine::term(1, last.var)), out.expr(Expr::Scalar(Scalar::Kept)));
    let one = out.constant(1.0);
    let count = out.fn2(Fn2::Add, kept, one);
    let mean = out.fn2(Fn2::Div, all, count);
    out.store(o, place(t, last), mean);
    p.body = vec![over_tokens(t, vec![Stmt::Nest(start), Stmt::Loop(pass), Stmt::Nest(out)])];
    p
}

/// Per token sums that lanes share: the largest of a matrix, for one point; for each of three points two of
/// which one uses the other; and a product with a long inner loop.
pub fn sums() -> Program {
    const N: usize = 40;
    let mut p = Program::new("sums");
    let x = p.add_array("x", TOKEN, &[3, N], "");
    let top = p.add_array("top", Role::Scratch, &[], "");
    let y = p.add_array("y", Role::Scratch, &[3, N], "");
    let o = p.add_array("o", OUTPUT, &[3], "");
    let c = p.add_array("c", OUTPUT, &[3, 3], "c = y y^T");
    let t = p.add_var("t");
    let (i, j) = (p.axis("i", 3), p.axis("j", N));
    let of_token = |i: Axis, j: Axis| Affine::term(3 * N as i64, t).plus(N as i64, i.var).plus(1, j.var);
    let mut most = Nest::new("top = max |x|", vec![]);
    let value = most.load(x, of_token(i, j));
    let size = most.fn1(Fn1::Abs, value);
    let largest = most.reduce(Op::Max, vec![i, j], size);
    most.store(top, Affine::default(), largest);
    let (i, j) = (p.axis("i", 3), p.axis("j", N));
    let mut scaled = Nest::new("y = x / top", vec![i, j]);
    let (value, largest) = (scaled.load(x, of_token(i, j)), scaled.load(top, Affine::default()));
    let part = scaled.fn2(Fn2::Div, value, largest);
    scaled.store(y, row_major(&[3, N], &[i.var, j.var]), part);
    let (i, a, b) = (p.axis("i", 3), p.axis("j", N), p.axis("j", N));
    let mut spread = Nest::new("o = sum (y - mean y)^2", vec![i]);
    let one = spread.load(y, row_major(&[3, N], &[i.var, a.var]));
    let sum = spread.reduce(Op::Sum, vec![a], one);
    let count = spread.constant(N as f64);
    let mean = spread.fn2(Fn2::Div, sum, count);
    let one = spread.load(y, row_major(&[3, N], &[i.var, b.var]));
    let apart = spread.fn2(Fn2::Sub, one, mean);
    let square = spread.fn2(Fn2::Mul, apart, apart);
    let total = spread.reduce(Op::Sum, vec![b], square);
    spread.store(o, Affine::term(3, t).plus(1, i.var), total);
    let matrix = |row_stride, col_stride| Matrix { start: Access::start(y), row_stride, col_stride };
    let product = Stmt::Product(Product {
        equation: "c = y y^T / 2".into(),
        m: 3,
        n: 3,
        k: N,
        a: matrix(N, 1),
        b: matrix(1, N),
        c: Matrix { start: Access::new(c, Affine::term(9, t)), row_stride: 3, col_stride: 1 },
        alpha: Factor::Const(0.5),
        beta: Factor::Const(0.0),
        triangular: false,
    });
    p.body = vec![over_tokens(t, vec![Stmt::Nest(most), Stmt::Nest(scaled), Stmt::Nest(spread), product])];
    p
}

/// Per token, for every token of the past: `s = (s + x + k_i) / 2`; `o = s`. Tokens depend on one another.
pub fn echoes() -> Program {
    let mut p = Program::new("echoes");
    let x = p.add_array("x", TOKEN, &[], "");
    let k = p.add_array("past.k", Role::PastInput { entries: 1 }, &[], "");
    let s = p.add_array("s", Role::StateOut, &[], "");
    let o = p.add_array("o", OUTPUT, &[], "");
    let (t, i) = (p.add_var("t"), p.add_var("i"));
    let mut start = Nest::new("s = 0", vec![]);
    let nothing = start.constant(0.0);
    start.store(s, Affine::default(), nothing);
    let mut step = Nest::new("s = (s + x + k) / 2", vec![]);
    let (old, own) = (step.load(s, Affine::default()), step.load(x, Affine::term(1, t)));
    let key = step.load(k, Affine::term(1, i));
    let (sum, half) = (step.fn2(Fn2::Add, old, own), step.constant(0.5));
    let sum = step.fn2(Fn2::Add, sum, key);
    let new = step.fn2(Fn2::Mul, sum, half);
    step.store(s, Affine::default(), new);
    let pass = Loop { var: i, count: Count::Past, order: Order::Descending, body: vec![Stmt::Nest(step)] };
    let answer = copy("o = s", Access::start(s), Access::new(o, Affine::term(1, t)), 1);
    p.body = vec![Stmt::Nest(start), over_tokens(t, vec![Stmt::Loop(pass), answer])];
    p
}

/// Every scalar, and a product with both factors.
pub fn scalars() -> Program {
    const ALL: [Scalar; 7] = [
        Scalar::Tokens,
        Scalar::Kept,
        Scalar::First,
        Scalar::Head,
        Scalar::Heads,
        Scalar::Layer,
        Scalar::Layers,
    ];
    let mut p = Program::new("scalars");
    let a = p.add_array("a", Role::HeadInput, &[3, 4], "");
    let factor = p.add_array("factor", TOKEN, &[], "");
    let c = p.add_array("c", Role::StateOut, &[3, 3], "");
    let o = p.add_array("o", OUTPUT, &[ALL.len()], "");
    let (t, i, j) = (p.add_var("t"), p.axis("i", 3), p.axis("j", 3));
    let mut start = Nest::new("c = 1", vec![i, j]);
    let one = start.constant(1.0);
    start.store(c, row_major(&[3, 3], &[i.var, j.var]), one);
    let mut n = Nest::new("o = the scalars", vec![]);
    for (at, scalar) in ALL.into_iter().enumerate() {
        let value = n.expr(Expr::Scalar(scalar));
        n.store(o, Affine::constant(at as i64).plus(ALL.len() as i64, t), value);
    }
    let product = Stmt::Product(Product {
        equation: "c = factor c + a a^T / 2".into(),
        m: 3,
        n: 3,
        k: 4,
        a: Matrix { start: Access::start(a), row_stride: 4, col_stride: 1 },
        b: Matrix { start: Access::start(a), row_stride: 1, col_stride: 4 },
        c: Matrix { start: Access::start(c), row_stride: 3, col_stride: 1 },
        alpha: Factor::Const(0.5),
        beta: Factor::Load(Access::new(factor, Affine::term(1, t))),
        triangular: false,
    });
    p.body = vec![Stmt::Nest(start), over_tokens(t, vec![Stmt::Nest(n), product])];
    p
}
