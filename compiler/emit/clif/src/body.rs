//! The function around the nests: arguments, loops, addresses, calls.

use crate::arith::LANES;
use crate::{layout, symbols};
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::{BlockArg, FuncRef};
use cranelift::prelude::*;
use cranelift_module::{Linkage, Module};
use miras_base::Diagnostic;
use miras_base::scalar::Fn1;
use miras_base::scalar::single::{self, Single};
use miras_kernel::{Access, Affine, Apply, ArrayId, Copy, Count, Loop, Order, Program, Stmt, VarId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of a float32.
pub(crate) const FLOAT: i64 = 4;

/// Emits the whole function.
pub(crate) fn build(
    program: &Program,
    module: &mut dyn Module,
    mut builder: FunctionBuilder<'_>,
) -> Result<(), Diagnostic> {
    let config = module.target_config();
    let pointer = config.pointer_type();
    if pointer != types::I64 {
        return Err(Diagnostic::bug("emitted code needs 64-bit addresses"));
    }
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let context = builder.block_params(entry)[0];
    let fuses = fuses(&*module);
    let mut emitter = Emitter {
        program,
        fuses,
        module,
        builder,
        context,
        bases: Vec::new(),
        vars: BTreeMap::new(),
        order: Vec::new(),
        imports: BTreeMap::new(),
        programs: BTreeMap::new(),
    };
    for at in 0..program.arrays.len() {
        let base = emitter.slot(at, types::I64);
        emitter.bases.push(base);
    }
    emitter.block(&program.body)?;
    emitter.builder.ins().return_(&[]);
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize(config);
    Ok(())
}

/// Whether there is one instruction for `a * b + c`.
fn fuses(module: &dyn Module) -> bool {
    let isa = module.isa();
    match isa.name() {
        "x64" => isa.isa_flags().iter().any(|f| f.name == "has_fma" && f.as_bool() == Some(true)),
        "aarch64" => true,
        _ => false,
    }
}

/// How often a loop of the emitted code runs.
#[derive(Clone, Copy)]
pub(crate) enum Trip {
    /// So often, at least once.
    Const(usize),
    /// A 64-bit number, perhaps 0.
    Value(Value),
}

/// The function under construction.
pub(crate) struct Emitter<'p, 'b> {
    pub program: &'p Program,
    pub module: &'p mut dyn Module,
    pub builder: FunctionBuilder<'b>,
    context: Value,
    /// By array: the address of its first element.
    bases: Vec<Value>,
    /// Values of the variables in scope.
    pub vars: BTreeMap<VarId, Value>,
    /// The variables in scope, outermost first.
    order: Vec<VarId>,
    /// Whether the machine multiplies and adds in one instruction; else that would be a call.
    pub fuses: bool,
    imports: BTreeMap<String, FuncRef>,
    programs: BTreeMap<Fn1, Rc<Single>>,
}

impl Emitter<'_, '_> {
    fn block(&mut self, body: &[Stmt]) -> Result<(), Diagnostic> {
        for stmt in body {
            match stmt {
                Stmt::Loop(l) => self.repeat(l)?,
                Stmt::Nest(n) => self.nest(n)?,
                Stmt::Apply(a) => self.apply(a)?,
                Stmt::Copy(c) => self.copy(c)?,
                Stmt::Product(p) => self.product(p)?,
            }
        }
        Ok(())
    }

    fn repeat(&mut self, l: &Loop) -> Result<(), Diagnostic> {
        let trip = match l.count {
            Count::Const(n) => Trip::Const(n),
            Count::Tokens => Trip::Value(self.slot(layout::tokens(self.program.arrays.len()), types::I64)),
            Count::Past => Trip::Value(self.slot(layout::past(self.program.arrays.len()), types::I64)),
        };
        self.turns(trip, |me, turn| {
            let value = match (l.order, trip) {
                (Order::Ascending, _) => turn,
                (Order::Descending, Trip::Const(n)) => {
                    let last = me.builder.ins().iconst(types::I64, n as i64 - 1);
                    me.builder.ins().isub(last, turn)
                }
                (Order::Descending, Trip::Value(n)) => {
                    let left = me.builder.ins().isub(n, turn);
                    me.builder.ins().iadd_imm_s(left, -1)
                }
            };
            me.with(l.var, value, |me| me.block(&l.body))
        })
    }

    /// Emits `body` with a loop variable in scope.
    pub(crate) fn with<R>(&mut self, var: VarId, value: Value, body: impl FnOnce(&mut Self) -> R) -> R {
        self.vars.insert(var, value);
        self.order.push(var);
        let result = body(self);
        self.order.pop();
        self.vars.remove(&var);
        result
    }

    /// Emits a loop whose body is given the turn, from 0; one turn needs no loop.
    pub(crate) fn turns(
        &mut self,
        trip: Trip,
        body: impl FnOnce(&mut Self, Value) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let zero = self.builder.ins().iconst(types::I64, 0);
        if let Trip::Const(1) = trip {
            return body(self, zero);
        }
        let inside = self.builder.create_block();
        let after = self.builder.create_block();
        let turn = self.builder.append_block_param(inside, types::I64);
        match trip {
            Trip::Const(_) => {
                self.builder.ins().jump(inside, &[BlockArg::Value(zero)]);
            }
            Trip::Value(n) => {
                let some = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, n, 0);
                self.builder.ins().brif(some, inside, &[BlockArg::Value(zero)], after, &[]);
            }
        }
        self.builder.switch_to_block(inside);
        body(self, turn)?;
        let next = self.builder.ins().iadd_imm_s(turn, 1);
        let more = match trip {
            Trip::Const(n) => self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, next, n as i64),
            Trip::Value(n) => self.builder.ins().icmp(IntCC::SignedLessThan, next, n),
        };
        self.builder.ins().brif(more, inside, &[BlockArg::Value(next)], after, &[]);
        self.builder.switch_to_block(after);
        Ok(())
    }

    /// What a slot of the table holds.
    pub(crate) fn slot(&mut self, at: usize, ty: Type) -> Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let offset = at as i32 * size_of::<layout::Slot>() as i32;
        self.builder.ins().load(ty, flags, self.context, offset)
    }

    /// The address of an element, outer loops' terms added first so that they leave the inner loops.
    pub(crate) fn address(&mut self, access: &Access) -> Value {
        let mut address = self.bases[access.array.0 as usize];
        for at in 0..self.order.len() {
            let var = self.order[at];
            let coefficient = access.offset.coefficient(var);
            if coefficient != 0 {
                let value = self.vars[&var];
                let bytes = self.builder.ins().imul_imm_s(value, coefficient.wrapping_mul(FLOAT));
                address = self.builder.ins().iadd(address, bytes);
            }
        }
        match access.offset.constant {
            0 => address,
            c => self.builder.ins().iadd_imm_s(address, c * FLOAT),
        }
    }

    /// Loads from given arrays may move; nothing writes to them while the task runs.
    pub(crate) fn flags(&self, array: ArrayId) -> MemFlagsData {
        let given = self.program.array(array).is_some_and(|a| !a.role.writable());
        let flags = MemFlagsData::new().with_notrap();
        if given { flags.with_readonly().with_can_move() } else { flags }
    }

    /// The table's program of a function.
    pub(crate) fn program_of(&mut self, f: Fn1) -> Rc<Single> {
        Rc::clone(self.programs.entry(f).or_insert_with(|| Rc::new(single::single(f))))
    }

    /// The reference by which the function calls an import.
    pub(crate) fn import(&mut self, name: &str, params: &[Type]) -> Result<FuncRef, Diagnostic> {
        if let Some(&known) = self.imports.get(name) {
            return Ok(known);
        }
        let mut signature = self.module.make_signature();
        signature.params.extend(params.iter().map(|&t| AbiParam::new(t)));
        let id = self
            .module
            .declare_function(name, Linkage::Import, &signature)
            .map_err(|e| crate::refused(self.program, &e))?;
        let reference = self.module.declare_func_in_func(id, self.builder.func);
        self.imports.insert(name.to_owned(), reference);
        Ok(reference)
    }

    fn apply(&mut self, a: &Apply) -> Result<(), Diagnostic> {
        let function = self.import(&symbols::slice(a.function), &[types::I64; 3])?;
        let src = self.address(&a.src);
        let dst = self.address(&a.dst);
        let len = self.builder.ins().iconst(types::I64, a.len as i64);
        self.builder.ins().call(function, &[src, dst, len]);
        Ok(())
    }

    fn copy(&mut self, c: &Copy) -> Result<(), Diagnostic> {
        let (whole, rest) = (c.len / LANES, c.len % LANES);
        self.copy_part(c, types::F32X4, LANES, 0, whole)?;
        self.copy_part(c, types::F32, 1, whole * LANES, rest)
    }

    fn copy_part(
        &mut self,
        c: &Copy,
        ty: Type,
        step: usize,
        start: usize,
        count: usize,
    ) -> Result<(), Diagnostic> {
        if count == 0 {
            return Ok(());
        }
        let moved = |a: &Access| Access::new(a.array, a.offset.clone().sum(&Affine::constant(start as i64)));
        let src = self.address(&moved(&c.src));
        let dst = self.address(&moved(&c.dst));
        let (read, write) = (self.flags(c.src.array), self.flags(c.dst.array));
        self.turns(Trip::Const(count), |me, turn| {
            let bytes = me.builder.ins().imul_imm_s(turn, step as i64 * FLOAT);
            let from = me.builder.ins().iadd(src, bytes);
            let to = me.builder.ins().iadd(dst, bytes);
            let value = me.builder.ins().load(ty, read, from, 0);
            me.builder.ins().store(write, value, to, 0);
            Ok(())
        })
    }
}
