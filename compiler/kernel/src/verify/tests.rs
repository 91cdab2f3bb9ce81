//! One bad program for each reason of refusal, each a small change of one that passes.

use super::{Verified, verify};
use crate::ir::{
    Access, Affine, Apply, ArrayId, Axis, Copy, Count, Expr, ExprId, Factor, Loop, Matrix, Nest, Op, Order,
    Product, Program, ReductionId, Role, Stmt, Store, VarId,
};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::{Fn1, Fn2};

const D: usize = 6;

/// `state = 0; for t { y = x + 1; state = state + sum(y); o = y }`, with everything in reach of the tests.
struct Sample {
    p: Program,
    x: ArrayId,
    y: ArrayId,
    state: ArrayId,
    o: ArrayId,
    t: VarId,
    i: Axis,
}

fn sample() -> Sample {
    let mut p = Program::new("sample");
    let x = p.add_array("x", Role::TokenInput { entries: 1 }, &[D], "");
    let y = p.add_array("y", Role::Scratch, &[D], "");
    let state = p.add_array("state", Role::StateOut, &[1], "");
    let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &[D], "");
    let t = p.add_var("t");
    let i = p.axis("i", D);
    let mut zero = Nest::new("state = 0", vec![]);
    let nothing = zero.constant(0.0);
    zero.store(state, Affine::default(), nothing);

    let mut first = Nest::new("y = x + 1", vec![i]);
    let value = first.load(x, Affine::term(D as i64, t).plus(1, i.var));
    let one = first.constant(1.0);
    let sum = first.fn2(Fn2::Add, value, one);
    first.store(y, Affine::term(1, i.var), sum);

    let j = p.axis("j", D);
    let mut second = Nest::new("state = state + sum(y)", vec![]);
    let old = second.load(state, Affine::default());
    let value = second.load(y, Affine::term(1, j.var));
    let total = second.reduce(Op::Sum, vec![j], value);
    let new = second.fn2(Fn2::Add, old, total);
    second.store(state, Affine::default(), new);

    let out = copy(y, Affine::default(), o, Affine::term(D as i64, t), D);
    let body = vec![Stmt::Nest(first), Stmt::Nest(second), out];
    let time = Loop { var: t, count: Count::Tokens, order: Order::Ascending, body };
    p.body = vec![Stmt::Nest(zero), Stmt::Loop(time)];
    Sample { p, x, y, state, o, t, i }
}

fn copy(src: ArrayId, from: Affine, dst: ArrayId, to: Affine, len: usize) -> Stmt {
    Stmt::Copy(Copy { equation: "copy".into(), src: Access::new(src, from), dst: Access::new(dst, to), len })
}

impl Sample {
    fn time(&mut self) -> &mut Vec<Stmt> {
        match &mut self.p.body[1] {
            Stmt::Loop(l) => &mut l.body,
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => unreachable!(),
        }
    }

    /// `y = x + 1` for 0, `state = state + sum(y)` for 1.
    fn nest(&mut self, at: usize) -> &mut Nest {
        match &mut self.time()[at] {
            Stmt::Nest(n) => n,
            Stmt::Loop(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => unreachable!(),
        }
    }
}

fn refused(p: Program, reason: &str) -> Diagnostic {
    let error = verify(p).expect_err(reason);
    assert!(error.message.contains(reason), "`{error}` does not say `{reason}`");
    error
}

#[test]
fn the_sample_passes_and_is_handed_on_unchanged() {
    let p = sample().p;
    let verified: Verified<Program> = verify(p.clone()).unwrap();
    assert_eq!(verified.name, "sample");
    assert_eq!(verified.into_inner(), p);
}

#[test]
fn arrays_have_names_of_their_own_and_elements() {
    let mut s = sample();
    s.p.arrays[1].name = "x".into();
    refused(s.p, "two arrays are called `x`");
    let mut s = sample();
    s.p.arrays[1].shape = vec![D, 0];
    refused(s.p, "has no elements");
    let mut s = sample();
    s.p.arrays[0].role = Role::TokenInput { entries: 0 };
    refused(s.p, "has no elements");
}

#[test]
fn an_array_above_the_limit_is_a_limit() {
    for shape in [vec![1 << 16, 1 << 16], vec![usize::MAX, usize::MAX]] {
        let mut s = sample();
        s.p.add_array("large", Role::Scratch, &shape, "");
        assert_eq!(refused(s.p, "more than 2^31").code, code::UNSUPPORTED);
    }
}

#[test]
fn accesses_stay_inside_their_arrays() {
    let mut s = sample();
    let Expr::Load(access) = &mut s.nest(0).exprs[0] else { unreachable!() };
    access.offset.constant = 1;
    refused(s.p, "reaches outside `x`");
    let mut s = sample();
    s.nest(0).stores[0].target.offset.constant = -1;
    refused(s.p, "reaches outside `y`");
    let mut s = sample();
    let i = s.i.var;
    s.nest(0).stores[0].target.offset = Affine::term(i64::MAX, i);
    refused(s.p, "reaches outside `y`");
    let mut s = sample();
    s.nest(0).stores[0].target.array = ArrayId(9);
    refused(s.p, "an array that does not exist");
}

#[test]
fn token_arrays_are_reached_through_one_token() {
    // Not mentioning the token, or mentioning it with another stride.
    for coefficient in [0, 1, D as i64 - 1, 2 * D as i64] {
        let mut s = sample();
        let (t, i) = (s.t, s.i.var);
        let Expr::Load(access) = &mut s.nest(0).exprs[0] else { unreachable!() };
        access.offset = Affine::term(coefficient, t).plus(1, i);
        refused(s.p, "reaches outside `x`");
    }
    // Scratch has no tokens.
    let mut s = sample();
    let t = s.t;
    let store = &mut s.nest(0).stores[0];
    store.target.offset = store.target.offset.clone().plus(1, t);
    refused(s.p, "reaches outside `y`");
    // Outside the token loop there is no token.
    let mut s = sample();
    let (x, y) = (s.x, s.y);
    s.p.body.insert(0, copy(x, Affine::default(), y, Affine::default(), D));
    refused(s.p, "reaches outside `x`");
    let mut s = sample();
    let (x, y, t) = (s.x, s.y, s.t);
    s.p.body.insert(0, copy(x, Affine::term(D as i64, t), y, Affine::default(), D));
    refused(s.p, "uses a loop variable outside its loop");
}

#[test]
fn given_arrays_are_not_written() {
    let mut s = sample();
    let (x, t, y) = (s.x, s.t, s.y);
    s.time().push(copy(y, Affine::default(), x, Affine::term(D as i64, t), D));
    refused(s.p, "stores to `x`, which is given");
}

#[test]
fn what_is_read_was_written() {
    let mut s = sample();
    s.time().remove(0);
    refused(s.p, "may read `y` before it is written");
    // Written in part.
    let mut s = sample();
    s.nest(0).loops[0].extent = D - 1;
    refused(s.p, "may read `y` before it is written");
    // Written only if there is a token.
    let mut s = sample();
    let (y, state) = (s.y, s.state);
    s.p.body.push(copy(y, Affine::default(), state, Affine::default(), 1));
    refused(s.p, "may read `y` before it is written");
    // An output of the token at hand, before it is written.
    let mut s = sample();
    let (y, o, t) = (s.y, s.o, s.t);
    s.time().insert(0, copy(o, Affine::term(D as i64, t), y, Affine::default(), D));
    refused(s.p, "may read `o` before it is written");
}

#[test]
fn outputs_are_written_whole() {
    let mut s = sample();
    s.time().pop();
    refused(s.p, "`o` may not be written whole");
    let mut s = sample();
    s.p.body.remove(0);
    s.time_only_state_store();
    refused(s.p, "`state` may not be written whole");
}

impl Sample {
    /// Leaves only a store to the state inside the token loop, which may never run.
    fn time_only_state_store(&mut self) {
        let Stmt::Loop(l) = &mut self.p.body[0] else { unreachable!() };
        let Stmt::Nest(n) = &mut l.body[1] else { unreachable!() };
        let value = n.constant(0.0);
        n.stores[0].value = value;
        n.exprs = vec![Expr::Const(0.0)];
        n.stores[0].value = ExprId(0);
        n.reductions.clear();
    }
}

#[test]
fn a_loop_that_writes_row_by_row_fills_its_array() {
    let mut s = sample();
    let (x, t) = (s.x, s.t);
    let rows = s.p.add_array("rows", Role::Scratch, &[D, D], "");
    let out = s.p.add_array("all", Role::StateOut, &[D, D], "");
    let r = s.p.add_var("r");
    let write = copy(x, Affine::term(D as i64, t), rows, Affine::term(D as i64, r), D);
    let fill = |count| Loop {
        var: r,
        count: Count::Const(count),
        order: Order::Descending,
        body: vec![write.clone()],
    };
    let read = copy(rows, Affine::default(), out, Affine::default(), D * D);
    let zero = {
        let i = s.p.axis("i", D * D);
        let mut n = Nest::new("all = 0", vec![i]);
        let nothing = n.constant(0.0);
        n.store(out, Affine::term(1, i.var), nothing);
        Stmt::Nest(n)
    };
    s.p.body.insert(0, zero);
    let with = |s: &Sample, count| {
        let mut p = s.p.clone();
        let Stmt::Loop(l) = &mut p.body[2] else { unreachable!() };
        l.body.push(Stmt::Loop(fill(count)));
        l.body.push(read.clone());
        p
    };
    verify(with(&s, D)).unwrap();
    refused(with(&s, D - 1), "may read `rows` before it is written");
}

#[test]
fn points_do_not_meet() {
    // Two points store to one place.
    let mut s = sample();
    s.nest(0).stores[0].target.offset = Affine::default();
    refused(s.p, "may store twice to the same element of `y`");
    // One point reads what another writes.
    let mut s = sample();
    let (y, i) = (s.y, s.i.var);
    s.nest(0).loops[0].extent = D - 1;
    s.nest(0).exprs[0] = Expr::Load(Access::new(y, Affine::term(1, i).shifted(1)));
    refused(s.p, "reads parts of `y` that it also stores to");
    // A reduction reads what points write.
    let mut s = sample();
    let (y, i) = (s.y, s.i);
    let n = s.nest(1);
    n.loops = vec![Axis { var: i.var, extent: D }];
    n.stores[0].target = Access::new(y, Affine::term(1, i.var));
    s.time().remove(0);
    refused(s.p, "reads parts of `y` that it also stores to");
    // Two stores of one point meet those of others.
    let mut s = sample();
    let (y, i) = (s.y, s.i.var);
    let n = s.nest(0);
    n.loops[0].extent = D - 1;
    n.stores.push(Store { target: Access::new(y, Affine::term(1, i).shifted(1)), value: ExprId(0) });
    refused(s.p, "two stores may meet in `y`");
}

#[test]
fn parts_that_interleave_do_not_meet() {
    let mut s = sample();
    let (y, i) = (s.y, s.i.var);
    let n = s.nest(0);
    n.loops[0].extent = D / 2;
    n.stores[0].target.offset = Affine::term(2, i);
    n.stores.push(Store { target: Access::new(y, Affine::term(2, i).shifted(1)), value: ExprId(0) });
    verify(s.p).unwrap();
}

#[test]
fn runs_and_products_do_not_meet_their_results() {
    let mut s = sample();
    let y = s.y;
    s.time().insert(1, copy(y, Affine::default(), y, Affine::constant(1), D - 1));
    refused(s.p, "reads parts of `y` that it also stores to");

    let apply = |y, shift| {
        let (src, dst) = (Access::start(y), Access::new(y, Affine::constant(shift)));
        Stmt::Apply(Apply { equation: "exp".into(), function: Fn1::Exp, src, dst, len: D - 1 })
    };
    let mut s = sample();
    s.time().insert(1, apply(y, 0));
    verify(s.p).unwrap();
    let mut s = sample();
    s.time().insert(1, apply(y, 1));
    refused(s.p, "reads parts of `y` that it also stores to");

    let square = |array, start: i64| Matrix {
        start: Access::new(array, Affine::constant(start)),
        row_stride: 2,
        col_stride: 1,
    };
    let product = |c: i64, beta| {
        let (m, n, k) = (1, 2, 1);
        let (a, b, c) = (square(y, 0), square(y, 0), square(y, c));
        Stmt::Product(Product {
            equation: "c = a b".into(),
            m,
            n,
            k,
            a,
            b,
            c,
            alpha: Factor::Const(1.0),
            beta,
            triangular: false,
        })
    };
    let mut s = sample();
    s.time().insert(1, product(2, Factor::Const(1.0)));
    verify(s.p).unwrap();
    let mut s = sample();
    s.time().insert(1, product(1, Factor::Const(0.0)));
    refused(s.p, "reads parts of `y` that it also stores to");
    let mut s = sample();
    s.time().insert(1, product(2, Factor::Load(Access::new(y, Affine::constant(3)))));
    refused(s.p, "reads parts of `y` that it also stores to");
    // With beta = 0 the result need not have been written, otherwise it must.
    let mut s = sample();
    s.time().insert(0, product(2, Factor::Const(1.0)));
    refused(s.p, "may read `y` before it is written");
}

#[test]
fn loops_are_proper() {
    let mut s = sample();
    let r = s.p.add_var("r");
    s.p.body.push(Stmt::Loop(Loop { var: r, count: Count::Const(0), order: Order::Ascending, body: vec![] }));
    refused(s.p, "runs zero times");
    let mut s = sample();
    let t = s.t;
    s.p.body.push(Stmt::Loop(Loop { var: t, count: Count::Const(2), order: Order::Ascending, body: vec![] }));
    refused(s.p, "loop variable `t` is bound twice");
    let mut s = sample();
    let nowhere = VarId(99);
    s.p.body.push(Stmt::Loop(Loop {
        var: nowhere,
        count: Count::Const(2),
        order: Order::Ascending,
        body: vec![],
    }));
    refused(s.p, "does not exist");
    let mut s = sample();
    s.nest(0).loops[0].extent = 0;
    refused(s.p, "has no points");
    let mut s = sample();
    let mut body = vec![];
    for _ in 0..super::MAX_DEPTH + 1 {
        let var = s.p.add_var("r");
        body = vec![Stmt::Loop(Loop { var, count: Count::Const(1), order: Order::Ascending, body })];
    }
    s.p.body.extend(body);
    assert_eq!(refused(s.p, "deep").code, code::UNSUPPORTED);
}

#[test]
fn expressions_are_well_formed() {
    let mut s = sample();
    s.nest(0).exprs[2] = Expr::Fn2(Fn2::Add, ExprId(0), ExprId(2));
    refused(s.p, "an operand does not come before its user");
    let mut s = sample();
    s.nest(0).exprs[1] = Expr::Index(VarId(2));
    refused(s.p, "an index is used outside its loop");
    let mut s = sample();
    s.nest(0).exprs[1] = Expr::Reduced(ReductionId(0));
    refused(s.p, "a reduction is used before its value");
    let mut s = sample();
    s.nest(1).reductions[0].value = ExprId(3);
    refused(s.p, "a reduction is used before its value");
    let mut s = sample();
    s.nest(1).reductions[0].loops.clear();
    refused(s.p, "a reduction has no loop");
    let mut s = sample();
    s.nest(1).stores[0].value = ExprId(1);
    refused(s.p, "a stored value is not a value of the point");
    let mut s = sample();
    s.nest(1).stores[0].value = ExprId(77);
    refused(s.p, "a stored value is not a value of the point");
    let mut s = sample();
    s.nest(0).stores.clear();
    refused(s.p, "it stores nothing");
}

#[test]
fn reductions_keep_to_their_own_loops() {
    // A value over the loops of two reductions.
    let mut s = sample();
    let (y, k) = (s.y, s.p.axis("k", D));
    let n = s.nest(1);
    let j = n.reductions[0].loops[0];
    let other = n.load(y, Affine::term(1, k.var));
    let both = n.fn2(Fn2::Mul, ExprId(1), other);
    let _ = (j, n.reduce(Op::Sum, vec![k], both));
    refused(s.p, "depends on the loops of two reductions");
    // A store within a reduction's loop.
    let mut s = sample();
    let y = s.y;
    let n = s.nest(1);
    let j = n.reductions[0].loops[0].var;
    n.stores[0].target = Access::new(y, Affine::term(1, j));
    refused(s.p, "a store depends on a reduction's loop");
}

#[test]
fn a_proof_that_would_take_too_long_is_a_limit() {
    let mut s = sample();
    let (a, b) = (s.p.axis("a", 1 << 12), s.p.axis("b", 1 << 12));
    let sparse = s.p.add_array("sparse", Role::Scratch, &[1 << 14, 1 << 14], "");
    let mut n = Nest::new("sparse = 0", vec![a, b]);
    let nothing = n.constant(0.0);
    n.store(sparse, Affine::term(1 << 16, a.var).plus(2, b.var), nothing);
    s.p.body.push(Stmt::Nest(n));
    assert_eq!(refused(s.p, "too large to prove").code, code::UNSUPPORTED);
}
