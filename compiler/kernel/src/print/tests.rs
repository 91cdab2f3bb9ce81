//! The text of a program with every kind of statement.

use super::program;
use crate::interpret::{Scalars, interpret};
use crate::ir::{
    Access, Affine, Apply, Copy, Count, Factor, Loop, Matrix, Nest, Op, Order, Product, Program, Role,
    Scalar, Stmt,
};
use crate::verify::verify;
use miras_base::scalar::{Cmp, Fn1, Fn2};

/// Per token `o = (p - max(p)) / head`, where `p = W exp(x)` by a product and `W` doubles at each step.
fn sample() -> Program {
    let mut p = Program::new("sample");
    let x = p.add_array("x", Role::TokenInput { entries: 1 }, &[2], "input");
    let w0 = p.add_array("memory.W", Role::HeadInput, &[2, 2], "");
    let w = p.add_array("state.W", Role::StateOut, &[2, 2], "W");
    let e = p.add_array("e", Role::Scratch, &[2], "exp(x)");
    let y = p.add_array("y", Role::Scratch, &[2], "W e");
    let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &[2], "");
    let t = p.add_var("t");
    let whole = |array| Matrix { start: Access::start(array), row_stride: 2, col_stride: 1 };
    let column = |array| Matrix { start: Access::start(array), row_stride: 1, col_stride: 1 };
    let start = Stmt::Copy(Copy {
        equation: "W = W_0".into(),
        src: Access::start(w0),
        dst: Access::start(w),
        len: 4,
    });
    let exp = Stmt::Apply(Apply {
        equation: "e = exp(x)".into(),
        function: Fn1::Exp,
        src: Access::new(x, Affine::term(2, t)),
        dst: Access::start(e),
        len: 2,
    });
    let product = Stmt::Product(Product {
        equation: "y = W e".into(),
        m: 2,
        n: 1,
        k: 2,
        a: whole(w),
        b: column(e),
        c: column(y),
        alpha: Factor::Const(1.0),
        beta: Factor::Const(0.0),
        triangular: false,
    });
    let (i, j) = (p.axis("i", 2), p.axis("j", 2));
    let mut out = Nest::new("o = (y - max y) / (head + 1)", vec![i]);
    let other = out.load(y, Affine::term(1, j.var));
    let largest = out.reduce(Op::Max, vec![j], other);
    let own = out.load(y, Affine::term(1, i.var));
    let below = out.fn2(Fn2::Sub, own, largest);
    let head = out.expr(crate::ir::Expr::Scalar(Scalar::Head));
    let one = out.constant(1.0);
    let heads = out.fn2(Fn2::Add, head, one);
    let scaled = out.fn2(Fn2::Div, below, heads);
    let negative = out.fn1(Fn1::Neg, scaled);
    let zero = out.constant(0.0);
    let value = out.select(Cmp::Lt, scaled, zero, negative, scaled);
    out.store(o, Affine::term(2, t).plus(1, i.var), value);
    let k = p.axis("k", 4);
    let mut twice = Nest::new("W = 2 W", vec![k]);
    let old = twice.load(w, Affine::term(1, k.var));
    let two = twice.constant(2.0);
    let new = twice.fn2(Fn2::Mul, two, old);
    twice.store(w, Affine::term(1, k.var), new);
    let body = vec![exp, product, Stmt::Nest(out), Stmt::Nest(twice)];
    p.body = vec![start, Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body })];
    p
}

#[test]
fn a_program_reads_like_what_it_computes() {
    let wanted = "\
program sample
  input x[T, 2]  // input
  given memory.W[2, 2]
  state out state.W[2, 2]  // W
  scratch e[2]  // exp(x)
  scratch y[2]  // W e
  output o[T, 2]
  // W = W_0
  state.W[0]..+4 = memory.W[0]..+4
  for t in 0..T
    // e = exp(x)
    e[0]..+2 = exp(x[2*t]..+2)
    // y = W e
    y[0](2x1 by 1, 1) = 0 * y[0](2x1 by 1, 1) + 1 * state.W[0](2x2 by 2, 1) @ e[0](2x1 by 1, 1)
    // o = (y - max y) / (head + 1)
    at i < 2
      let e7 = ((y[i] - max(j < 2: y[j])) / (head + 1))
      o[2*t + i] = (if e7 < 0 then -e7 else e7)
    // W = 2 W
    at k < 4
      state.W[k] = (2 * state.W[k])
";
    assert_eq!(program(&sample()), wanted);
}

#[test]
fn it_means_what_it_says() {
    let program = verify(sample()).unwrap();
    let mut arrays: Vec<Vec<f64>> = vec![vec![]; 6];
    arrays[0] = vec![0.0, 0.0, 0.0, std::f64::consts::LN_2];
    arrays[1] = vec![1.0, 2.0, 3.0, 4.0];
    let scalars = Scalars { head: 1, heads: 2, ..Scalars::single(2) };
    interpret(&program, &scalars, &mut arrays).unwrap();
    // W e: (3, 7) at the first token; 2 W (1, 2) = (10, 22) at the second.
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&arrays[5], &[2.0, 0.0, 6.0, 0.0]), "{:?}", arrays[5]);
    assert!(close(&arrays[2], &[4.0, 8.0, 12.0, 16.0]), "{:?}", arrays[2]);

    let mut single: Vec<Vec<f32>> = vec![vec![0.0; 4], vec![1.0, 2.0, 3.0, 4.0]];
    interpret(&program, &scalars, &mut single).unwrap();
    assert_eq!(single[5], [2.0, 0.0, 4.0, 0.0]);

    let mut short: Vec<Vec<f64>> = vec![vec![0.0; 3], vec![1.0; 4]];
    let error = interpret(&program, &scalars, &mut short).unwrap_err();
    assert!(error.message.contains("`x` has 3 elements where 4 are needed"), "{error}");
}

#[test]
fn a_long_chain_is_written_in_pieces() {
    let mut p = Program::new("chain");
    let o = p.add_array("o", Role::StateOut, &[], "");
    let mut n = Nest::new("o", vec![]);
    let mut value = n.constant(1.0);
    for _ in 0..20_000 {
        n.exprs.push(crate::ir::Expr::Fn1(Fn1::Exp, value));
        value = crate::ir::ExprId(n.exprs.len() as u32 - 1);
    }
    n.store(o, Affine::default(), value);
    p.body.push(Stmt::Nest(n));
    let text = program(&p);
    assert!(text.lines().all(|l| l.len() < 200));
    assert!(text.lines().count() > 1_000);
}
