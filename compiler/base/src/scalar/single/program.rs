//! The recorded form: a straight-line program in single assignment, and its interpreter.

use super::Cmp;
use super::{Int, Real};

/// A step of a [`Single`], whose result later steps may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u16);

impl Reg {
    /// Its place in [`Single::steps`].
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// float32 -> float32
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// -x
    Neg,
    /// |x|
    Abs,
    /// square root
    Sqrt,
    /// greatest whole number not above
    Floor,
    /// nearest whole number, ties to even
    Nearest,
}

/// float32, float32 -> float32
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b
    Div,
    /// a < b ? a : b
    Min,
    /// a > b ? a : b
    Max,
}

/// int32, int32 -> int32, wrapping
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntBinary {
    /// i + j
    Add,
    /// i - j
    Sub,
    /// bitwise and
    And,
}

/// One operation. Operands are earlier steps of the type stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// The n-th argument: float32.
    Arg(u8),
    /// A float32.
    Float(f32),
    /// An int32.
    Int(i32),
    /// float32 -> float32
    Unary(Unary, Reg),
    /// float32, float32 -> float32
    Binary(Binary, Reg, Reg),
    /// `if a cmp b then t else e`, all float32.
    Select(Cmp, Reg, Reg, Reg, Reg),
    /// int32, int32 -> int32
    IntBinary(IntBinary, Reg, Reg),
    /// int32 shifted left by a constant, zeros in.
    ShiftLeft(Reg, u8),
    /// int32 shifted right by a constant, copies of the sign in.
    ShiftRight(Reg, u8),
    /// The bits of a float32 as int32.
    FloatBits(Reg),
    /// The float32 of these bits, from int32.
    FromBits(Reg),
    /// An int32 as float32.
    ToFloat(Reg),
}

impl Op {
    /// Whether the result is an int32 (otherwise float32).
    pub fn is_int(&self) -> bool {
        match self {
            Op::Int(_) | Op::IntBinary(..) | Op::ShiftLeft(..) | Op::ShiftRight(..) | Op::FloatBits(_) => {
                true
            }
            Op::Arg(_)
            | Op::Float(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Select(..)
            | Op::FromBits(_)
            | Op::ToFloat(_) => false,
        }
    }

    /// The steps it uses, in order.
    pub fn operands(&self) -> Vec<Reg> {
        match *self {
            Op::Arg(_) | Op::Float(_) | Op::Int(_) => vec![],
            Op::Unary(_, a)
            | Op::ShiftLeft(a, _)
            | Op::ShiftRight(a, _)
            | Op::FloatBits(a)
            | Op::FromBits(a)
            | Op::ToFloat(a) => vec![a],
            Op::Binary(_, a, b) | Op::IntBinary(_, a, b) => vec![a, b],
            Op::Select(_, a, b, t, e) => vec![a, b, t, e],
        }
    }
}

/// A float32 function as a straight-line program: every step uses earlier ones only, no step is repeated or
/// unused, the last one is the result (float32).
#[derive(Clone, Debug, PartialEq)]
pub struct Single {
    /// The steps in order of evaluation.
    pub steps: Vec<Op>,
}

/// A register of the interpreter.
#[derive(Clone, Copy)]
pub(super) struct Word(u32);

impl Single {
    /// The result for these arguments; arguments that are not given count as 0.
    pub fn eval(&self, args: &[f32]) -> f32 {
        let mut words: Vec<Word> = Vec::with_capacity(self.steps.len());
        for op in &self.steps {
            words.push(step(op, args, &words));
        }
        words.last().map_or(0.0, |w| w.float())
    }
}

impl Word {
    pub(super) fn float(self) -> f32 {
        f32::from_bits(self.0)
    }

    fn int(self) -> i32 {
        self.0 as i32
    }

    pub(super) fn of(x: f32) -> Word {
        Word(x.to_bits())
    }
}

pub(super) fn step(op: &Op, args: &[f32], words: &[Word]) -> Word {
    let float = |r: Reg| words[r.index()].float();
    let int = |r: Reg| words[r.index()].int();
    match *op {
        Op::Arg(i) => Word::of(args.get(usize::from(i)).copied().unwrap_or(0.0)),
        Op::Float(c) => Word::of(c),
        Op::Int(c) => Word(c as u32),
        Op::Unary(f, a) => Word::of(unary(f, float(a))),
        Op::Binary(f, a, b) => Word::of(binary(f, float(a), float(b))),
        Op::Select(c, a, b, t, e) => Word::of(Real::select(c, float(a), float(b), float(t), float(e))),
        Op::IntBinary(f, a, b) => Word(int_binary(f, int(a), int(b)) as u32),
        Op::ShiftLeft(a, by) => Word(Int::left(int(a), by) as u32),
        Op::ShiftRight(a, by) => Word(Int::right(int(a), by) as u32),
        Op::FloatBits(a) | Op::FromBits(a) => words[a.index()],
        Op::ToFloat(a) => Word::of(Int::to_real(int(a))),
    }
}

fn unary(f: Unary, a: f32) -> f32 {
    match f {
        Unary::Neg => -a,
        Unary::Abs => Real::abs(a),
        Unary::Sqrt => Real::sqrt(a),
        Unary::Floor => Real::floor(a),
        Unary::Nearest => Real::nearest(a),
    }
}

fn binary(f: Binary, a: f32, b: f32) -> f32 {
    match f {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Min => Real::min(a, b),
        Binary::Max => Real::max(a, b),
    }
}

fn int_binary(f: IntBinary, a: i32, b: i32) -> i32 {
    match f {
        IntBinary::Add => a.wrapping_add(b),
        IntBinary::Sub => a.wrapping_sub(b),
        IntBinary::And => a & b,
    }
}
