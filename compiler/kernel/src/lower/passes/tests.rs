//! Programs mean the same after the passes, and have lost what they should.

use super::run;
use crate::interpret::{Scalars, interpret};
use crate::ir::{
    Access, Affine, ArrayId, Axis, Count, Factor, Loop, Matrix, Nest, Order, Product, Program, Role, Stmt,
    VarId,
};
use crate::verify::verify;
use miras_base::scalar::Fn2;

/// Rows and columns.
const N: usize = 4;

fn matrix(array: ArrayId, offset: Affine) -> Matrix {
    Matrix { start: Access::new(array, offset), row_stride: N, col_stride: 1 }
}

fn product(a: Matrix, b: Matrix, c: ArrayId) -> Stmt {
    let (alpha, beta) = (Factor::Const(1.0), Factor::Const(0.0));
    let c = matrix(c, Affine::default());
    Stmt::Product(Product {
        equation: String::new(),
        m: N,
        n: N,
        k: N,
        a,
        b,
        c,
        alpha,
        beta,
        triangular: false,
    })
}

/// `target = first f + second`, entry by entry.
fn sum(program: &mut Program, parts: [ArrayId; 2], f: Option<f64>, target: ArrayId) -> Stmt {
    let (i, j) = (program.axis("i", N), program.axis("j", N));
    let place = |i: Axis, j: Axis| Affine::term(N as i64, i.var).plus(1, j.var);
    let mut nest = Nest::new("sum", vec![i, j]);
    let mut first = nest.load(parts[0], place(i, j));
    if let Some(f) = f {
        let f = nest.constant(f);
        first = nest.fn2(Fn2::Mul, first, f);
    }
    let second = nest.load(parts[1], place(i, j));
    let total = nest.fn2(Fn2::Add, first, second);
    nest.store(target, place(i, j), total);
    Stmt::Nest(nest)
}

fn copy(program: &mut Program, from: ArrayId, to: ArrayId, shift: Affine) -> Stmt {
    let i = program.axis("i", N * N);
    let mut nest = Nest::new("copy", vec![i]);
    let value = nest.load(from, Affine::term(1, i.var));
    nest.store(to, shift.plus(1, i.var), value);
    Stmt::Nest(nest)
}

/// `o_t = b a + a b` and `W = W / 2 + a a`, each by way of arrays in between; `again`: what is summed up is used twice.
fn program(again: bool) -> Program {
    let mut p = Program::new("passes");
    let size = [N * N];
    let a = p.add_array("a", Role::TokenInput { entries: 1 }, &size, "");
    let b = p.add_array("b", Role::HeadInput, &size, "");
    let w_in = p.add_array("W", Role::StateIn, &size, "");
    let w = p.add_array("W", Role::StateOut, &size, "");
    let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &size, "");
    let [x, y, z, s] = ["x", "y", "z", "s"].map(|n| p.add_array(n, Role::Scratch, &size, ""));
    let t: VarId = p.add_var("t");
    let now = || Affine::term((N * N) as i64, t);
    let start = copy(&mut p, w_in, w, Affine::default());
    let mut body = vec![
        product(matrix(b, Affine::default()), matrix(a, now()), x),
        product(matrix(a, now()), matrix(b, Affine::default()), y),
        sum(&mut p, [x, y], None, s),
        product(matrix(a, now()), matrix(a, now()), z),
        sum(&mut p, [w, z], Some(0.5), w),
        copy(&mut p, s, o, now()),
    ];
    if again {
        body.insert(5, sum(&mut p, [s, y], None, s));
    }
    let turn = Loop { var: t, count: Count::Tokens, order: Order::Ascending, body };
    p.body = vec![start, Stmt::Loop(turn)];
    p
}

fn results(program: &Program) -> Vec<Vec<f64>> {
    let program = verify(program.clone()).expect("a program");
    let numbers =
        |n: usize| (0..n).map(|i| f64::from((i * 37 % 23) as u32) / 7.0 - 1.0).collect::<Vec<f64>>();
    let mut buffers: Vec<Vec<f64>> = (program.arrays.iter())
        .map(|a| if a.role.writable() { Vec::new() } else { numbers(a.len(3, 0).unwrap_or(0)) })
        .collect();
    interpret(&program, &Scalars::single(3), &mut buffers).expect("runs");
    let kept =
        program.arrays.iter().zip(buffers).filter(|(a, _)| a.role.writable() && a.role != Role::Scratch);
    kept.map(|(_, values)| values).collect()
}

fn inside(program: &Program) -> &[Stmt] {
    match &program.body[1] {
        Stmt::Loop(turn) => &turn.body,
        _ => &[],
    }
}

#[test]
fn products_are_added_where_their_sums_are_wanted() {
    let before = program(false);
    let mut after = before.clone();
    run(&mut after);
    assert_eq!(results(&before), results(&after));
    let products = inside(&after).iter().filter(|s| matches!(s, Stmt::Product(_))).count();
    assert_eq!((products, inside(&after).len()), (3, 3));
    assert!(after.arrays.iter().all(|a| a.role != Role::Scratch));
}

#[test]
fn what_is_used_twice_stays() {
    let before = program(true);
    let mut after = before.clone();
    run(&mut after);
    assert_eq!(results(&before), results(&after));
    assert!(after.arrays.iter().any(|a| a.name == "y"));
}
