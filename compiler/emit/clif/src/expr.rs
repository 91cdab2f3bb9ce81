//! Expressions at one place.

use crate::arith::{Arith, Width};
use crate::body::Emitter;
use crate::layout;
use crate::nest::{Lane, State, Val, vector_offset};
use cranelift::codegen::ir::ConstantData;
use cranelift::prelude::*;
use miras_base::Diagnostic;
use miras_base::scalar::single::{self, Binary, Single, WHOLE_LIMIT};
use miras_base::scalar::{Fn1, Fn2};
use miras_kernel::{Access, Expr, ExprId, VarId};

impl Emitter<'_, '_> {
    /// The value of one expression; its operands have been computed.
    pub(crate) fn expr(&mut self, s: &mut State<'_>, at: usize) -> Result<Val, Diagnostic> {
        let nest = s.nest;
        match &nest.exprs[at] {
            Expr::Const(c) => Ok(Val::One(self.builder.ins().f32const(Ieee32::with_float(*c as f32)))),
            Expr::Load(access) => Ok(self.load(access, s.lane)),
            Expr::Index(var) => self.index(*var, s.lane),
            Expr::Scalar(scalar) => {
                let slot = layout::scalar(self.program.arrays.len(), *scalar);
                Ok(Val::One(self.slot(slot, types::F32)))
            }
            Expr::Fn1(f, a) => {
                let program = self.program_of(*f);
                let a = s.value(*a)?;
                self.run(&program, &[a])
            }
            Expr::Fn2(f, a, b) => self.fn2(s, *f, *a, *b),
            Expr::Select { cmp, a, b, yes, no } => {
                let args = [s.value(*a)?, s.value(*b)?, s.value(*yes)?, s.value(*no)?];
                self.lift(&args, |arith, v| match v {
                    [a, b, yes, no] => Some(arith.select(*cmp, *a, *b, *yes, *no)),
                    _ => None,
                })
            }
            Expr::Reduced(r) => self.reduction(s, *r),
        }
    }

    fn load(&mut self, access: &Access, lane: Option<Lane>) -> Val {
        let flags = self.flags(access.array);
        let address = self.address(access);
        match lane {
            Some(lane) if access.offset.coefficient(lane.var) != 0 => {
                let vectors = (0..lane.vectors)
                    .map(|j| self.builder.ins().load(types::F32X4, flags, address, vector_offset(j)))
                    .collect();
                Val::Many(vectors)
            }
            Some(_) | None => Val::One(self.builder.ins().load(types::F32, flags, address, 0)),
        }
    }

    fn index(&mut self, var: VarId, lane: Option<Lane>) -> Result<Val, Diagnostic> {
        let Some(&value) = self.vars.get(&var) else {
            return Err(Diagnostic::bug("an index is used outside its loop"));
        };
        match lane {
            Some(lane) if lane.var == var => {
                let narrow = self.builder.ins().ireduce(types::I32, value);
                let first = self.builder.ins().splat(types::I32X4, narrow);
                let vectors = (0..lane.vectors).map(|j| self.counted(first, j)).collect();
                Ok(Val::Many(vectors))
            }
            Some(_) | None => Ok(Val::One(self.builder.ins().fcvt_from_sint(types::F32, value))),
        }
    }

    /// `first + [4 j, 4 j + 1, 4 j + 2, 4 j + 3]` as floats.
    fn counted(&mut self, first: Value, j: usize) -> Value {
        let start = 4 * j as i32;
        let bytes: Vec<u8> = (start..start + 4).flat_map(i32::to_le_bytes).collect();
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        let steps = self.builder.ins().vconst(types::I32X4, constant);
        let sum = self.builder.ins().iadd(first, steps);
        self.builder.ins().fcvt_from_sint(types::F32X4, sum)
    }

    fn fn2(&mut self, s: &State<'_>, f: Fn2, a: ExprId, b: ExprId) -> Result<Val, Diagnostic> {
        let known = match s.nest.exprs[b.0 as usize] {
            Expr::Const(c) => Some(c),
            _ => None,
        };
        let (base, other) = (s.value(a)?, s.value(b)?);
        match (f, known) {
            (Fn2::Div, Some(c)) if c as f32 != 0.0 => self.binary(Binary::Div, &base, &other),
            (Fn2::Pow, Some(c)) => match power(c) {
                Some(Power::Whole(program)) => self.run(&program, &[base]),
                Some(Power::OfRoot(program)) => {
                    let root = self.program_of(Fn1::Sqrt);
                    let root = self.run(&root, &[base])?;
                    self.run(&program, &[root])
                }
                None => self.run(&single::single2(f), &[base, other]),
            },
            (Fn2::Add, _) => self.binary(Binary::Add, &base, &other),
            (Fn2::Sub, _) => self.binary(Binary::Sub, &base, &other),
            (Fn2::Mul, _) => self.binary(Binary::Mul, &base, &other),
            (Fn2::Div | Fn2::Pow | Fn2::Min | Fn2::Max, _) => self.run(&single::single2(f), &[base, other]),
        }
    }

    pub(crate) fn binary(&mut self, f: Binary, a: &Val, b: &Val) -> Result<Val, Diagnostic> {
        self.lift(&[a.clone(), b.clone()], |arith, v| match v {
            [a, b] => Some(arith.binary(f, *a, *b)),
            _ => None,
        })
    }

    fn run(&mut self, program: &Single, args: &[Val]) -> Result<Val, Diagnostic> {
        self.lift(args, |arith, v| arith.run(program, v))
    }

    /// Applies an operation to numbers, or vector by vector where any argument has lanes.
    fn lift(
        &mut self,
        args: &[Val],
        mut operation: impl FnMut(&mut Arith<'_, '_>, &[Value]) -> Option<Value>,
    ) -> Result<Val, Diagnostic> {
        let lanes = args.iter().find_map(|a| match a {
            Val::Many(many) => Some(many.len()),
            Val::One(_) => None,
        });
        let width = if lanes.is_some() { Width::Four } else { Width::One };
        let mut arith = self.arith(width);
        let args: Vec<Vec<Value>> = args
            .iter()
            .map(|a| match a {
                Val::One(one) => vec![arith.spread(*one); lanes.unwrap_or(1)],
                Val::Many(many) => many.clone(),
            })
            .collect();
        let mut results = Vec::new();
        for j in 0..lanes.unwrap_or(1) {
            let column: Vec<Value> = args.iter().filter_map(|a| a.get(j).copied()).collect();
            let result = operation(&mut arith, &column);
            results.push(result.ok_or_else(|| Diagnostic::bug("a function lacks an argument"))?);
        }
        match (lanes, results.first()) {
            (None, Some(&one)) => Ok(Val::One(one)),
            _ => Ok(Val::Many(results)),
        }
    }
}

/// How a power with a constant exponent is computed.
enum Power {
    /// By products.
    Whole(Single),
    /// By products of the square root: odd multiples of 1/2.
    OfRoot(Single),
}

/// By products where the exponent is a multiple of 1/2; the square root of a negative number is 0 in the
/// table, as is its power with a broken exponent.
fn power(exponent: f64) -> Option<Power> {
    let whole = |n: f64| (n == n.trunc() && n.abs() <= f64::from(WHOLE_LIMIT)).then_some(n as i32);
    if let Some(n) = whole(exponent) {
        return single::single_whole(n).map(Power::Whole);
    }
    single::single_whole(whole(2.0 * exponent)?).map(Power::OfRoot)
}
