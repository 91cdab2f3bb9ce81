//! The machine that records instead of computing.

use super::{Binary, Cmp, Expr, Fn1, Fn2, Int, IntBinary, Op, Real, Reg, Single, Unary};
use super::{evaluate, power_whole, value, value2};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The float32 program of `f`, of one argument.
pub fn single(f: Fn1) -> Single {
    record(|x| Some(value(f, x(0)))).unwrap_or(EMPTY)
}

/// The float32 program of `f`, of two arguments.
pub fn single2(f: Fn2) -> Single {
    record(|x| Some(value2(f, x(0), x(1)))).unwrap_or(EMPTY)
}

/// The float32 program of the power with a whole exponent `n`, of one argument: products, of negative bases
/// too. `None` where |n| exceeds [`super::WHOLE_LIMIT`].
pub fn single_whole(n: i32) -> Option<Single> {
    record(|x| power_whole(x(0), n))
}

/// The float32 program of an expression of the table with as many arguments as it mentions; equal
/// subexpressions are computed once. `None` where it takes more than 65,535 steps.
pub fn single_expr(e: &Expr) -> Option<Single> {
    record(|x| {
        let args: Vec<Traced<'_>> = (0..arguments(e)).map(x).collect();
        Some(evaluate(e, &args, x(0)))
    })
}

const EMPTY: Single = Single { steps: Vec::new() };

/// One more than the last argument that occurs.
fn arguments(e: &Expr) -> u8 {
    match e {
        Expr::Arg(i) => i.saturating_add(1),
        Expr::Const(_) => 0,
        Expr::Fn1(_, a) => arguments(a),
        Expr::Fn2(_, a, b) => arguments(a).max(arguments(b)),
        Expr::Select(_, a, b, t, e) => [a, b, t, e].map(|p| arguments(p)).into_iter().max().unwrap_or(0),
    }
}

/// A value of the recording machine: a step of the program under construction.
#[derive(Clone, Copy)]
pub struct Traced<'r> {
    recorder: &'r Recorder,
    reg: Reg,
}

/// The integers of the recording machine.
#[derive(Clone, Copy)]
pub struct TracedInt<'r>(Traced<'r>);

#[derive(Default)]
struct Recorder {
    steps: RefCell<Vec<Op>>,
}

fn record(body: impl for<'r> FnOnce(&dyn Fn(u8) -> Traced<'r>) -> Option<Traced<'r>>) -> Option<Single> {
    let recorder = Recorder::default();
    let result = body(&|i| recorder.push(Op::Arg(i)))?.reg;
    let steps = recorder.steps.borrow();
    (steps.len() < usize::from(u16::MAX)).then(|| prune(&steps, result))
}

impl Recorder {
    /// The step, or the earlier one that is the same operation.
    fn push(&self, op: Op) -> Traced<'_> {
        let mut steps = self.steps.borrow_mut();
        let at = steps.iter().position(|s| same(s, &op)).unwrap_or(steps.len());
        if at == steps.len() && at < usize::from(u16::MAX) {
            steps.push(op);
        }
        Traced { recorder: self, reg: Reg(at.min(usize::from(u16::MAX) - 1) as u16) }
    }
}

/// Equal to the bit: 0 and -0 differ.
fn same(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Float(a), Op::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// The steps that `result` needs, renumbered, `result` last.
fn prune(steps: &[Op], result: Reg) -> Single {
    let mut needed = vec![false; steps.len()];
    needed[result.index()] = true;
    for i in (0..=result.index()).rev() {
        if needed[i] {
            steps[i].operands().iter().for_each(|r| needed[r.index()] = true);
        }
    }
    let mut places = vec![Reg(0); steps.len()];
    let mut kept = Vec::new();
    for (i, op) in steps.iter().enumerate().take(result.index() + 1).filter(|(i, _)| needed[*i]) {
        places[i] = Reg(kept.len() as u16);
        kept.push(renumbered(op, &places));
    }
    Single { steps: kept }
}

fn renumbered(op: &Op, places: &[Reg]) -> Op {
    let to = |r: Reg| places[r.index()];
    match *op {
        Op::Arg(_) | Op::Float(_) | Op::Int(_) => *op,
        Op::Unary(f, a) => Op::Unary(f, to(a)),
        Op::Binary(f, a, b) => Op::Binary(f, to(a), to(b)),
        Op::Select(c, a, b, t, e) => Op::Select(c, to(a), to(b), to(t), to(e)),
        Op::IntBinary(f, a, b) => Op::IntBinary(f, to(a), to(b)),
        Op::ShiftLeft(a, by) => Op::ShiftLeft(to(a), by),
        Op::ShiftRight(a, by) => Op::ShiftRight(to(a), by),
        Op::FloatBits(a) => Op::FloatBits(to(a)),
        Op::FromBits(a) => Op::FromBits(to(a)),
        Op::ToFloat(a) => Op::ToFloat(to(a)),
    }
}

impl<'r> Traced<'r> {
    fn unary(self, f: Unary) -> Self {
        self.recorder.push(Op::Unary(f, self.reg))
    }

    fn binary(self, f: Binary, other: Self) -> Self {
        self.recorder.push(Op::Binary(f, self.reg, other.reg))
    }
}

impl Add for Traced<'_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.binary(Binary::Add, other)
    }
}

impl Sub for Traced<'_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.binary(Binary::Sub, other)
    }
}

impl Mul for Traced<'_> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.binary(Binary::Mul, other)
    }
}

impl Div for Traced<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        self.binary(Binary::Div, other)
    }
}

impl Neg for Traced<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Unary::Neg)
    }
}

impl<'r> Real for Traced<'r> {
    type Int = TracedInt<'r>;

    fn constant(self, c: f32) -> Self {
        self.recorder.push(Op::Float(c))
    }

    fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    fn sqrt(self) -> Self {
        self.unary(Unary::Sqrt)
    }

    fn floor(self) -> Self {
        self.unary(Unary::Floor)
    }

    fn nearest(self) -> Self {
        self.unary(Unary::Nearest)
    }

    fn min(self, other: Self) -> Self {
        self.binary(Binary::Min, other)
    }

    fn max(self, other: Self) -> Self {
        self.binary(Binary::Max, other)
    }

    fn select(cmp: Cmp, a: Self, b: Self, t: Self, e: Self) -> Self {
        a.recorder.push(Op::Select(cmp, a.reg, b.reg, t.reg, e.reg))
    }

    fn bits(self) -> TracedInt<'r> {
        TracedInt(self.recorder.push(Op::FloatBits(self.reg)))
    }
}

impl<'r> TracedInt<'r> {
    fn push(self, op: Op) -> Self {
        TracedInt(self.0.recorder.push(op))
    }

    fn with(self, f: IntBinary, c: i32) -> Self {
        let c = self.push(Op::Int(c));
        self.push(Op::IntBinary(f, self.0.reg, c.0.reg))
    }
}

impl<'r> Int for TracedInt<'r> {
    type Real = Traced<'r>;

    fn plus(self, c: i32) -> Self {
        self.with(IntBinary::Add, c)
    }

    fn minus(self, other: Self) -> Self {
        self.push(Op::IntBinary(IntBinary::Sub, self.0.reg, other.0.reg))
    }

    fn and(self, mask: i32) -> Self {
        self.with(IntBinary::And, mask)
    }

    fn left(self, by: u8) -> Self {
        self.push(Op::ShiftLeft(self.0.reg, by))
    }

    fn right(self, by: u8) -> Self {
        self.push(Op::ShiftRight(self.0.reg, by))
    }

    fn as_real(self) -> Traced<'r> {
        self.0.recorder.push(Op::FromBits(self.0.reg))
    }

    fn to_real(self) -> Traced<'r> {
        self.0.recorder.push(Op::ToFloat(self.0.reg))
    }
}
