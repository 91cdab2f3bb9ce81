//! Matrix products: one call of the runtime, with the shape in a table on the stack.

use crate::body::Emitter;
use crate::symbols;
use cranelift::codegen::ir::{StackSlotData, StackSlotKind};
use cranelift::prelude::*;
use miras_base::Diagnostic;
use miras_kernel::{Factor, Product};

impl Emitter<'_, '_> {
    pub(crate) fn product(&mut self, p: &Product) -> Result<(), Diagnostic> {
        let params = [types::I64, types::I64, types::I64, types::I64, types::F32, types::F32];
        let function = self.import(symbols::PRODUCT, &params)?;
        let shape = self.shape(p);
        let addresses = [&p.a, &p.b, &p.c].map(|m| self.address(&m.start));
        let alpha = self.factor(&p.alpha);
        let beta = self.factor(&p.beta);
        let [a, b, c] = addresses;
        self.builder.ins().call(function, &[a, b, c, shape, alpha, beta]);
        Ok(())
    }

    /// The address of m, n, k, the six strides and whether a is triangular.
    fn shape(&mut self, p: &Product) -> Value {
        let strides = [&p.a, &p.b, &p.c].map(|m| [m.row_stride, m.col_stride]);
        let numbers = [p.m, p.n, p.k].into_iter().chain(strides.into_iter().flatten());
        let numbers = numbers.chain([usize::from(p.triangular)]);
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 10 * 8, 3);
        let slot = self.builder.create_sized_stack_slot(data);
        let address = self.builder.ins().stack_addr(types::I64, slot, 0);
        let flags = MemFlagsData::new().with_notrap();
        for (at, number) in numbers.enumerate() {
            let value = self.builder.ins().iconst(types::I64, number as i64);
            self.builder.ins().store(flags, value, address, at as i32 * 8);
        }
        address
    }

    fn factor(&mut self, f: &Factor) -> Value {
        match f {
            Factor::Const(c) => self.builder.ins().f32const(Ieee32::with_float(*c as f32)),
            Factor::Load(access) => {
                let address = self.address(access);
                let flags = self.flags(access.array);
                self.builder.ins().load(types::F32, flags, address, 0)
            }
        }
    }
}
