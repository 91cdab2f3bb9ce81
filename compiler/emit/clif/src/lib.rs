//! # miras-emit-clif: kernel programs as Cranelift functions
//!
//! **Purpose.** One verified [`kernel::Program`] becomes one function `extern "C" fn(*const Slot)` that runs
//! one task from its first token to its last.
//!
//! **Takes** a verified program and a Cranelift module. **Gives** the function, declared and defined in that
//! module as [`ENTRY`]; what it expects to be passed is in [`layout`], what it calls in [`symbols`].
//!
//! **May touch** Cranelift. **Must not** run code, open a device or know any named rule.
//!
//! **Invariants.** The function reads and writes only the arrays it is given, within the bounds that the
//! program's verifier proved; it allocates nothing and calls nothing but [`symbols`]. The order of every sum
//! depends on the access pattern and on the length of that sum alone, so equal inputs give equal bits. No
//! multiplication is fused with an addition.

mod arith;
mod body;
mod expr;
pub mod layout;
mod nest;
mod plan;
mod product;
mod reduce;
mod size;
pub mod symbols;

use cranelift::codegen::ir::{Function, UserFuncName};
use cranelift::prelude::*;
use cranelift_module::{FuncId, Linkage, Module};
use miras_base::Diagnostic;
use miras_kernel as kernel;
use miras_kernel::Verified;

/// The symbol of the task function.
pub const ENTRY: &str = "miras_task";

/// Defines the program's task function in the module.
///
/// # Errors
/// E0402 where the program is too large to be compiled in reasonable time; E0901 where Cranelift refuses
/// what was emitted.
pub fn emit(program: &Verified<kernel::Program>, module: &mut dyn Module) -> Result<FuncId, Diagnostic> {
    let (id, function) = declare(program, module)?;
    let mut context = module.make_context();
    context.func = function;
    module.define_function(id, &mut context).map_err(|e| refused(program, &e))?;
    Ok(id)
}

/// The task function as Cranelift's text, for reading.
///
/// # Errors
/// As [`emit`].
pub fn text(program: &Verified<kernel::Program>, module: &mut dyn Module) -> Result<String, Diagnostic> {
    Ok(declare(program, module)?.1.display().to_string())
}

fn declare(
    program: &Verified<kernel::Program>,
    module: &mut dyn Module,
) -> Result<(FuncId, Function), Diagnostic> {
    size::check(program)?;
    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(module.target_config().pointer_type()));
    let declared = module.declare_function(ENTRY, Linkage::Export, &signature);
    let id = declared.map_err(|e| refused(program, &e))?;
    let mut function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
    let mut context = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut function, &mut context);
    body::build(program, module, builder)?;
    Ok((id, function))
}

fn refused(program: &kernel::Program, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("Cranelift refuses the code of `{}`: {error}", program.name))
}
