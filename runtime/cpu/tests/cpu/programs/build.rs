//! The programs.

use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_kernel::build::row_major;
use miras_kernel::{
    Access, Affine, Apply, ArrayId, Axis, Copy, Count, Factor, Loop, Matrix, Nest, Op, Order, Product,
    Program, Role, Stmt, VarId,
};

pub const TOKEN: Role = Role::TokenInput { entries: 1 };
pub const OUTPUT: Role = Role::TokenOutput { entries: 1 };

/// `part * t + rest`
pub fn at(t: VarId, part: usize, rest: Affine) -> Affine {
    rest.plus(part as i64, t)
}

pub fn over_tokens(t: VarId, body: Vec<Stmt>) -> Stmt {
    Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body })
}

pub fn copy(equation: &str, src: ArrayId, dst: ArrayId, len: usize) -> Stmt {
    Stmt::Copy(Copy { equation: equation.into(), src: Access::start(src), dst: Access::start(dst), len })
}

/// `target[i] = sum_j w[i, j] x[j]`, or of the transpose.
struct Matvec<'a> {
    equation: &'a str,
    w: ArrayId,
    /// Strides of w along the result and along the sum.
    strides: (usize, usize),
    x: (ArrayId, Affine),
    target: (ArrayId, Affine),
    sizes: (usize, usize),
}

fn matvec(p: &mut Program, m: Matvec<'_>) -> Stmt {
    let row = p.axis("i", m.sizes.0);
    let sum = p.axis("j", m.sizes.1);
    let mut n = Nest::new(m.equation, vec![row]);
    let w = Affine::term(m.strides.0 as i64, row.var).plus(m.strides.1 as i64, sum.var);
    let w = n.load(m.w, w);
    let x = n.load(m.x.0, m.x.1.plus(1, sum.var));
    let product = n.fn2(Fn2::Mul, w, x);
    let total = n.reduce(Op::Sum, vec![sum], product);
    n.store(m.target.0, m.target.1.plus(1, row.var), total);
    Stmt::Nest(n)
}

/// `o = W x` for one W of `rows` results and sums of `cols` numbers, W lying row after row or column after
/// column.
pub fn read(rows: usize, cols: usize, by_rows: bool) -> Program {
    let mut p = Program::new("read");
    let w = p.add_array("W", Role::HeadInput, &[rows, cols], "");
    let x = p.add_array("x", TOKEN, &[cols], "");
    let o = p.add_array("o", OUTPUT, &[rows], "");
    let t = p.add_var("t");
    let read = Matvec {
        equation: "o = W x",
        w,
        strides: if by_rows { (cols, 1) } else { (1, rows) },
        x: (x, Affine::term(cols as i64, t)),
        target: (o, Affine::term(rows as i64, t)),
        sizes: (rows, cols),
    };
    let read = matvec(&mut p, read);
    p.body = vec![over_tokens(t, vec![read])];
    p
}

/// Online least squares with decay: `e = W k - v; W = (1 - alpha) W - eta e k^T; o = W q`, and `z = W^T o`.
pub fn delta(dk: usize, dv: usize) -> Program {
    let mut p = Program::new("delta");
    let k = p.add_array("k", TOKEN, &[dk], "key");
    let v = p.add_array("v", TOKEN, &[dv], "value");
    let q = p.add_array("q", TOKEN, &[dk], "query");
    let alpha = p.add_array("retention.alpha", TOKEN, &[], "forgotten fraction");
    let eta = p.add_array("algo.eta", TOKEN, &[dv], "step per channel");
    let w0 = p.add_array("memory.W", Role::HeadInput, &[dv, dk], "initial weights");
    let w = p.add_array("state.memory.W", Role::StateOut, &[dv, dk], "W");
    let o = p.add_array("o", OUTPUT, &[dv], "o = W q");
    let z = p.add_array("z", OUTPUT, &[dk], "z = W^T o");
    let y = p.add_array("y", Role::Scratch, &[dv], "y = W k");
    let t = p.add_var("t");
    let read = Matvec {
        equation: "y = W k",
        w,
        strides: (dk, 1),
        x: (k, Affine::term(dk as i64, t)),
        target: (y, Affine::default()),
        sizes: (dv, dk),
    };
    let read = matvec(&mut p, read);

    let (row, col) = (p.axis("i", dv), p.axis("j", dk));
    let mut n = Nest::new("W = (1 - alpha) W - eta (y - v) k^T", vec![row, col]);
    let place = row_major(&[dv, dk], &[row.var, col.var]);
    let old = n.load(w, place.clone());
    let a = n.load(alpha, Affine::term(1, t));
    let one = n.constant(1.0);
    let keep = n.fn2(Fn2::Sub, one, a);
    let kept = n.fn2(Fn2::Mul, keep, old);
    let yi = n.load(y, Affine::term(1, row.var));
    let vi = n.load(v, at(t, dv, Affine::term(1, row.var)));
    let e = n.fn2(Fn2::Sub, yi, vi);
    let step = n.load(eta, at(t, dv, Affine::term(1, row.var)));
    let scaled = n.fn2(Fn2::Mul, step, e);
    let kj = n.load(k, at(t, dk, Affine::term(1, col.var)));
    let write = n.fn2(Fn2::Mul, scaled, kj);
    let new = n.fn2(Fn2::Sub, kept, write);
    n.store(w, place, new);
    let write = Stmt::Nest(n);

    let out = Matvec {
        equation: "o = W q",
        w,
        strides: (dk, 1),
        x: (q, Affine::term(dk as i64, t)),
        target: (o, Affine::term(dv as i64, t)),
        sizes: (dv, dk),
    };
    let out = matvec(&mut p, out);
    let back = Matvec {
        equation: "z = W^T o",
        w,
        strides: (1, dk),
        x: (o, Affine::term(dv as i64, t)),
        target: (z, Affine::term(dk as i64, t)),
        sizes: (dk, dv),
    };
    let back = matvec(&mut p, back);
    p.body = vec![copy("W = W_0", w0, w, dk * dv), over_tokens(t, vec![read, write, out, back])];
    p
}

/// `o = gain * (x - mean(x)) / sqrt(var(x) + eps) + shift` in three nests, the last in one with the first two
/// when `fused`.
pub fn layernorm(d: usize, fused: bool) -> Program {
    let mut p = Program::new("layernorm");
    let x = p.add_array("x", TOKEN, &[d], "x");
    let gain = p.add_array("gain", Role::HeadInput, &[d], "");
    let o = p.add_array("o", OUTPUT, &[d], "");
    let stats = p.add_array("stats", Role::Scratch, &[2], "mean and 1 / deviation");
    let t = p.add_var("t");
    let statistics = |n: &mut Nest, over: [Axis; 2]| {
        let value = n.load(x, at(t, d, Affine::term(1, over[0].var)));
        let total = n.reduce(Op::Sum, vec![over[0]], value);
        let size = n.constant(d as f64);
        let mean = n.fn2(Fn2::Div, total, size);
        let value = n.load(x, at(t, d, Affine::term(1, over[1].var)));
        let centred = n.fn2(Fn2::Sub, value, mean);
        let two = n.constant(2.0);
        let square = n.fn2(Fn2::Pow, centred, two);
        let total = n.reduce(Op::Sum, vec![over[1]], square);
        let variance = n.fn2(Fn2::Div, total, size);
        let eps = n.constant(1e-5);
        let safe = n.fn2(Fn2::Add, variance, eps);
        let exponent = n.constant(-0.5);
        (mean, n.fn2(Fn2::Pow, safe, exponent))
    };
    let over = [p.axis("i", d), p.axis("j", d)];
    let row = p.axis("r", d);
    let mut body = Vec::new();
    let mut n = Nest::new("normalised", vec![row]);
    let (mean, scale) = if fused {
        statistics(&mut n, over)
    } else {
        let mut first = Nest::new("statistics", vec![]);
        let (mean, scale) = statistics(&mut first, over);
        first.store(stats, Affine::constant(0), mean);
        first.store(stats, Affine::constant(1), scale);
        body.push(Stmt::Nest(first));
        (n.load(stats, Affine::constant(0)), n.load(stats, Affine::constant(1)))
    };
    let value = n.load(x, at(t, d, Affine::term(1, row.var)));
    let centred = n.fn2(Fn2::Sub, value, mean);
    let normal = n.fn2(Fn2::Mul, centred, scale);
    let g = n.load(gain, Affine::term(1, row.var));
    let result = n.fn2(Fn2::Mul, g, normal);
    n.store(o, at(t, d, Affine::term(1, row.var)), result);
    body.push(Stmt::Nest(n));
    p.body = vec![over_tokens(t, body)];
    p
}

/// Logits carried over time, `W = mass * softmax` over rows or columns; the output is W q.
pub fn softmax(rows: usize, cols: usize, along_rows: bool) -> Program {
    let mut p = Program::new("softmax");
    let u = p.add_array("u", TOKEN, &[rows, cols], "increment");
    let theta0 = p.add_array("state.in", Role::StateIn, &[rows, cols], "");
    let theta = p.add_array("state.out", Role::StateOut, &[rows, cols], "");
    let w = p.add_array("W", OUTPUT, &[rows, cols], "W = softmax(theta)");
    let t = p.add_var("t");
    let size = rows * cols;
    let (i, j) = (p.axis("i", rows), p.axis("j", cols));
    let mut n = Nest::new("theta = theta / 2 + u", vec![i, j]);
    let place = row_major(&[rows, cols], &[i.var, j.var]);
    let old = n.load(theta, place.clone());
    let two = n.constant(2.0);
    let half = n.fn2(Fn2::Div, old, two);
    let inc = n.load(u, at(t, size, place.clone()));
    let new = n.fn2(Fn2::Add, half, inc);
    n.store(theta, place, new);
    let carry = Stmt::Nest(n);

    let (i, j) = (p.axis("i", rows), p.axis("j", cols));
    let mut n = Nest::new("W = softmax(theta)", vec![i, j]);
    let mut over = || if along_rows { p.axis("m", cols) } else { p.axis("m", rows) };
    let (first, second) = (over(), over());
    let slice = |over: Axis| match along_rows {
        true => row_major(&[rows, cols], &[i.var, over.var]),
        false => row_major(&[rows, cols], &[over.var, j.var]),
    };
    let value = n.load(theta, slice(first));
    let largest = n.reduce(Op::Max, vec![first], value);
    let value = n.load(theta, slice(second));
    let below = n.fn2(Fn2::Sub, value, largest);
    let e = n.fn1(Fn1::Exp, below);
    let total = n.reduce(Op::Sum, vec![second], e);
    let place = row_major(&[rows, cols], &[i.var, j.var]);
    let value = n.load(theta, place.clone());
    let below = n.fn2(Fn2::Sub, value, largest);
    let e = n.fn1(Fn1::Exp, below);
    let result = n.fn2(Fn2::Div, e, total);
    n.store(w, at(t, size, place), result);
    p.body = vec![copy("theta = theta_0", theta0, theta, size), over_tokens(t, vec![carry, Stmt::Nest(n)])];
    p
}

/// `W = soft(W + u, gamma)` in place, and per token the largest, the smallest and the norm of all of W.
pub fn threshold(rows: usize, cols: usize) -> Program {
    let mut p = Program::new("threshold");
    let u = p.add_array("u", TOKEN, &[rows, cols], "");
    let w0 = p.add_array("state.in", Role::StateIn, &[rows, cols], "");
    let w = p.add_array("state.out", Role::StateOut, &[rows, cols], "");
    let o = p.add_array("o", OUTPUT, &[3], "largest, smallest, norm");
    let t = p.add_var("t");
    let size = rows * cols;
    let (i, j) = (p.axis("i", rows), p.axis("j", cols));
    let mut n = Nest::new("W = soft(W + u, 0.3)", vec![i, j]);
    let place = row_major(&[rows, cols], &[i.var, j.var]);
    let old = n.load(w, place.clone());
    let inc = n.load(u, at(t, size, place.clone()));
    let z = n.fn2(Fn2::Add, old, inc);
    let gamma = n.constant(0.3);
    let zero = n.constant(0.0);
    let abs = n.fn1(Fn1::Abs, z);
    let less = n.fn2(Fn2::Sub, abs, gamma);
    let size_left = n.fn2(Fn2::Max, less, zero);
    let sign = n.fn1(Fn1::Sign, z);
    let soft = n.fn2(Fn2::Mul, sign, size_left);
    let new = n.select(Cmp::Le, abs, gamma, zero, soft);
    n.store(w, place, new);
    let shrink = Stmt::Nest(n);

    let mut n = Nest::new("extremes", vec![]);
    for (at_, op) in [(0, Op::Max), (1, Op::Min), (2, Op::Sum)] {
        let (i, j) = (p.axis("i", rows), p.axis("j", cols));
        let value = n.load(w, row_major(&[rows, cols], &[i.var, j.var]));
        let two = n.constant(2.0);
        let value = if op == Op::Sum { n.fn2(Fn2::Pow, value, two) } else { value };
        let mut all = n.reduce(op, vec![i, j], value);
        if op == Op::Sum {
            all = n.fn1(Fn1::Sqrt, all);
        }
        n.store(o, at(t, 3, Affine::constant(at_)), all);
    }
    p.body = vec![copy("W = W_0", w0, w, size), over_tokens(t, vec![shrink, Stmt::Nest(n)])];
    p
}

/// `o[i] = f(x[i])` per token, by a nest (`true`) or by the slice function.
pub fn map1(f: Fn1, d: usize, nest: bool) -> Program {
    let mut p = Program::new(f.name());
    let x = p.add_array("x", TOKEN, &[d], "");
    let o = p.add_array("o", OUTPUT, &[d], "");
    let t = p.add_var("t");
    let stmt = if nest {
        let i = p.axis("i", d);
        let mut n = Nest::new("o = f(x)", vec![i]);
        let place = at(t, d, Affine::term(1, i.var));
        let value = n.load(x, place.clone());
        let value = n.fn1(f, value);
        n.store(o, place, value);
        Stmt::Nest(n)
    } else {
        let src = Access::new(x, Affine::term(d as i64, t));
        let dst = Access::new(o, Affine::term(d as i64, t));
        Stmt::Apply(Apply { equation: "o = f(x)".into(), function: f, src, dst, len: d })
    };
    p.body = vec![over_tokens(t, vec![stmt])];
    p
}

/// `o[i] = f(x[i], c)`, or `f(x[i], y[i])` without a constant.
pub fn map2(f: Fn2, c: Option<f64>, d: usize) -> Program {
    let mut p = Program::new(format!("{} {c:?}", f.spelling()));
    let x = p.add_array("x", TOKEN, &[d], "");
    let y = p.add_array("y", TOKEN, &[d], "");
    let o = p.add_array("o", OUTPUT, &[d], "");
    let t = p.add_var("t");
    let i = p.axis("i", d);
    let mut n = Nest::new("o = f(x, y)", vec![i]);
    let place = at(t, d, Affine::term(1, i.var));
    let a = n.load(x, place.clone());
    let b = match c {
        Some(c) => n.constant(c),
        None => n.load(y, place.clone()),
    };
    let value = n.fn2(f, a, b);
    n.store(o, place, value);
    p.body = vec![over_tokens(t, vec![Stmt::Nest(n)])];
    p
}

/// `state = decay * state + 0.5 * a @ b` per token, with a transposed when `transposed`; starts from 0.
pub fn product(m: usize, n: usize, k: usize, transposed: bool) -> Program {
    let mut p = Program::new("product");
    let a = p.add_array("a", TOKEN, &[m, k], "");
    let b = p.add_array("b", TOKEN, &[k, n], "");
    let decay = p.add_array("decay", TOKEN, &[], "");
    let state = p.add_array("state.out", Role::StateOut, &[m, n], "");
    let first = p.add_array("first", OUTPUT, &[m, n], "a @ b");
    let t = p.add_var("t");
    let i = p.axis("i", m * n);
    let mut zero = Nest::new("state = 0", vec![i]);
    let nothing = zero.constant(0.0);
    zero.store(state, Affine::term(1, i.var), nothing);
    let matrix = |array: ArrayId, part: usize, row_stride: usize, col_stride: usize| Matrix {
        start: Access::new(array, Affine::term(part as i64, t)),
        row_stride,
        col_stride,
    };
    let left = if transposed { matrix(a, m * k, 1, m) } else { matrix(a, m * k, k, 1) };
    let fresh = Product {
        equation: "first = a @ b".into(),
        m,
        n,
        k,
        a: left,
        b: matrix(b, k * n, n, 1),
        c: matrix(first, m * n, n, 1),
        alpha: Factor::Const(1.0),
        beta: Factor::Const(0.0),
        triangular: false,
    };
    let whole = Matrix { start: Access::start(state), row_stride: n, col_stride: 1 };
    let carried = Product {
        equation: "state = decay state + a @ b / 2".into(),
        c: whole,
        alpha: Factor::Const(0.5),
        beta: Factor::Load(Access::new(decay, Affine::term(1, t))),
        ..fresh.clone()
    };
    p.body = vec![Stmt::Nest(zero), over_tokens(t, vec![Stmt::Product(fresh), Stmt::Product(carried)])];
    p
}

/// Square roots by Newton's steps, run from the last token to the first, each with its place in the stream:
/// `o[t, i] = sqrt(x[t, i]) + i + t + head / heads`.
pub fn newton(d: usize, steps: usize) -> Program {
    let mut p = Program::new("newton");
    let x = p.add_array("x", TOKEN, &[d], "");
    let o = p.add_array("o", OUTPUT, &[d], "");
    let guess = p.add_array("guess", Role::Scratch, &[steps + 1, d], "every step's guess");
    let t = p.add_var("t");
    let s = p.add_var("step");
    let i = p.axis("i", d);
    let mut start = Nest::new("guess = 1", vec![i]);
    let one = start.constant(1.0);
    start.store(guess, Affine::term(1, i.var), one);

    let i = p.axis("i", d);
    let mut n = Nest::new("guess' = (guess + x / guess) / 2", vec![i]);
    let old = n.load(guess, Affine::term(1, i.var).plus(d as i64, s));
    let value = n.load(x, at(t, d, Affine::term(1, i.var)));
    let quotient = n.fn2(Fn2::Div, value, old);
    let sum = n.fn2(Fn2::Add, old, quotient);
    let half = n.constant(0.5);
    let next = n.fn2(Fn2::Mul, half, sum);
    n.store(guess, Affine::term(1, i.var).plus(d as i64, s).shifted(d as i64), next);
    let step = Stmt::Loop(Loop {
        var: s,
        count: Count::Const(steps),
        order: Order::Ascending,
        body: vec![Stmt::Nest(n)],
    });

    let i = p.axis("i", d);
    let mut last = Nest::new("o = guess + i + t + head / heads", vec![i]);
    let root = last.load(guess, Affine::term(1, i.var).shifted((steps * d) as i64));
    let index = last.expr(miras_kernel::Expr::Index(i.var));
    let token = last.expr(miras_kernel::Expr::Index(t));
    let head = last.expr(miras_kernel::Expr::Scalar(miras_kernel::Scalar::Head));
    let heads = last.expr(miras_kernel::Expr::Scalar(miras_kernel::Scalar::Heads));
    let share = last.fn2(Fn2::Div, head, heads);
    let sum = last.fn2(Fn2::Add, root, index);
    let sum = last.fn2(Fn2::Add, sum, token);
    let sum = last.fn2(Fn2::Add, sum, share);
    last.store(o, at(t, d, Affine::term(1, i.var)), sum);
    let body = vec![Stmt::Nest(start), step, Stmt::Nest(last)];
    p.body = vec![Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Descending, body })];
    p
}
