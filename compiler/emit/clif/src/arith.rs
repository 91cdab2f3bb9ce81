//! Scalar functions: the table's float32 programs as instructions, on one number or on four.
//!
//! Cranelift has no transcendental functions; the table describes each in operations that it has.

use cranelift::codegen::ir::condcodes::FloatCC;
use cranelift::prelude::*;
use miras_base::scalar::Cmp;
use miras_base::scalar::single::{Binary, IntBinary, Op, Reg, Single, Unary};

/// Four lanes.
pub(crate) const LANES: usize = 4;

/// Whether values are single numbers or vectors of [`LANES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Four,
}

impl Width {
    pub(crate) fn float(self) -> Type {
        match self {
            Width::One => types::F32,
            Width::Four => types::F32X4,
        }
    }

    fn int(self) -> Type {
        match self {
            Width::One => types::I32,
            Width::Four => types::I32X4,
        }
    }
}

/// Instructions of one width.
pub(crate) struct Arith<'a, 'b> {
    builder: &'a mut FunctionBuilder<'b>,
    width: Width,
}

impl<'a, 'b> Arith<'a, 'b> {
    pub(crate) fn new(builder: &'a mut FunctionBuilder<'b>, width: Width) -> Self {
        Arith { builder, width }
    }

    /// The result of the program for these arguments.
    pub(crate) fn run(&mut self, program: &Single, args: &[Value]) -> Option<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(program.steps.len());
        for op in &program.steps {
            let value = self.step(op, args, &values)?;
            values.push(value);
        }
        values.last().copied()
    }

    fn step(&mut self, op: &Op, args: &[Value], values: &[Value]) -> Option<Value> {
        let at = |r: Reg| values.get(r.index()).copied();
        Some(match *op {
            Op::Arg(i) => *args.get(usize::from(i))?,
            Op::Float(c) => self.number(c),
            Op::Int(c) => self.whole(c),
            Op::Unary(f, a) => self.unary(f, at(a)?),
            Op::Binary(f, a, b) => self.binary(f, at(a)?, at(b)?),
            Op::Select(cmp, a, b, t, e) => self.select(cmp, at(a)?, at(b)?, at(t)?, at(e)?),
            Op::IntBinary(f, a, b) => self.int_binary(f, at(a)?, at(b)?),
            Op::ShiftLeft(a, by) => {
                let by = self.builder.ins().iconst(types::I32, i64::from(by));
                self.builder.ins().ishl(at(a)?, by)
            }
            Op::ShiftRight(a, by) => {
                let by = self.builder.ins().iconst(types::I32, i64::from(by));
                self.builder.ins().sshr(at(a)?, by)
            }
            Op::FloatBits(a) => self.builder.ins().bitcast(self.width.int(), MemFlagsData::new(), at(a)?),
            Op::FromBits(a) => self.builder.ins().bitcast(self.width.float(), MemFlagsData::new(), at(a)?),
            Op::ToFloat(a) => self.builder.ins().fcvt_from_sint(self.width.float(), at(a)?),
        })
    }

    /// A float32 in every lane.
    pub(crate) fn number(&mut self, c: f32) -> Value {
        let one = self.builder.ins().f32const(Ieee32::with_float(c));
        self.spread(one)
    }

    fn whole(&mut self, c: i32) -> Value {
        let one = self.builder.ins().iconst(types::I32, i64::from(c as u32));
        match self.width {
            Width::One => one,
            Width::Four => self.builder.ins().splat(types::I32X4, one),
        }
    }

    /// A single number in every lane.
    pub(crate) fn spread(&mut self, one: Value) -> Value {
        match self.width {
            Width::One => one,
            Width::Four => self.builder.ins().splat(types::F32X4, one),
        }
    }

    fn unary(&mut self, f: Unary, a: Value) -> Value {
        let ins = self.builder.ins();
        match f {
            Unary::Neg => ins.fneg(a),
            Unary::Abs => ins.fabs(a),
            Unary::Sqrt => ins.sqrt(a),
            Unary::Floor => ins.floor(a),
            Unary::Nearest => ins.nearest(a),
        }
    }

    pub(crate) fn binary(&mut self, f: Binary, a: Value, b: Value) -> Value {
        match f {
            Binary::Add => self.builder.ins().fadd(a, b),
            Binary::Sub => self.builder.ins().fsub(a, b),
            Binary::Mul => self.builder.ins().fmul(a, b),
            Binary::Div => self.builder.ins().fdiv(a, b),
            Binary::Min => self.select(Cmp::Lt, a, b, a, b),
            Binary::Max => self.select(Cmp::Gt, a, b, a, b),
        }
    }

    /// `if a cmp b then yes else no`, lane by lane.
    pub(crate) fn select(&mut self, cmp: Cmp, a: Value, b: Value, yes: Value, no: Value) -> Value {
        let cc = match cmp {
            Cmp::Lt => FloatCC::LessThan,
            Cmp::Le => FloatCC::LessThanOrEqual,
            Cmp::Gt => FloatCC::GreaterThan,
            Cmp::Ge => FloatCC::GreaterThanOrEqual,
            Cmp::Eq => FloatCC::Equal,
            Cmp::Ne => FloatCC::NotEqual,
        };
        let holds = self.builder.ins().fcmp(cc, a, b);
        match self.width {
            Width::One => self.builder.ins().select(holds, yes, no),
            Width::Four => {
                let mask = self.builder.ins().bitcast(types::F32X4, MemFlagsData::new(), holds);
                self.builder.ins().bitselect(mask, yes, no)
            }
        }
    }

    fn int_binary(&mut self, f: IntBinary, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match f {
            IntBinary::Add => ins.iadd(a, b),
            IntBinary::Sub => ins.isub(a, b),
            IntBinary::And => ins.band(a, b),
        }
    }
}
