//! Machine code: compiled once, called per task, freed at the end.
#![allow(unsafe_code)]

use crate::task::Bound;
use crate::{product, slices};
use cranelift::codegen::isa::OwnedTargetIsa;
use cranelift::codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::default_libcall_names;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::ROWS;
use miras_emit_clif::layout::{self, Slot};
use miras_emit_clif::{emit, symbols, text};
use miras_kernel::{Program, Verified};
use std::sync::{Mutex, PoisonError};

/// What [`miras_emit_clif`] emits.
type Entry = unsafe extern "C" fn(*const Slot);

/// A compiled task function.
pub(crate) struct Code {
    entry: Entry,
    slots: usize,
    /// Owns the memory that `entry` points into; taken when the code is dropped.
    module: Mutex<Option<JITModule>>,
}

impl Code {
    pub(crate) fn new(program: &Verified<Program>) -> Result<Code, Diagnostic> {
        let mut builder = JITBuilder::with_isa(machine()?, default_libcall_names());
        provide(&mut builder);
        let mut module = JITModule::new(builder);
        match compile(program, &mut module) {
            Ok(entry) => Ok(Code {
                entry,
                slots: layout::slots(program.arrays.len()),
                module: Mutex::new(Some(module)),
            }),
            Err(error) => {
                // SAFETY: no pointer into the module was handed out.
                unsafe { module.free_memory() };
                Err(error)
            }
        }
    }

    /// Runs one task, which was bound for the program that this was compiled from ([`crate::Compiled`] keeps
    /// the two together).
    pub(crate) fn call(&self, bound: &mut Bound<'_>) {
        debug_assert_eq!(bound.table().len(), self.slots);
        // SAFETY: `entry` is the code of a verified program, which stays inside its arrays; the table holds
        // the addresses of arrays whose lengths were compared with that program's. Written arrays are uniquely
        // borrowed by their task and scratch by its arena, so no other thread touches them.
        unsafe { (self.entry)(bound.table().as_ptr()) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(module) = module {
            // SAFETY: `entry` lives no longer than `self`, and `call` borrows `self`, so nothing runs.
            unsafe { module.free_memory() };
        }
    }
}

fn compile(program: &Verified<Program>, module: &mut JITModule) -> Result<Entry, Diagnostic> {
    let id = emit(program, module)?;
    module.finalize_definitions().map_err(|e| bug(&e))?;
    let address = module.get_finalized_function(id);
    // SAFETY: `emit` defines a function of exactly this signature and calling convention.
    Ok(unsafe { std::mem::transmute::<*const u8, Entry>(address) })
}

/// The task function of a program as Cranelift's text, before it is optimised.
///
/// # Errors
/// As [`Compiled::new`](crate::Compiled::new).
pub fn listing(program: &Verified<Program>) -> Result<String, Diagnostic> {
    let mut module = JITModule::new(JITBuilder::with_isa(machine()?, default_libcall_names()));
    let text = text(program, &mut module);
    // SAFETY: nothing was compiled, so no pointer into the module was handed out.
    unsafe { module.free_memory() };
    text
}

/// Everything that code may call, by name: [`symbols`] and the two roundings that machines without an
/// instruction for them need.
fn provide(builder: &mut JITBuilder) {
    for row in ROWS {
        builder.symbol(symbols::slice(row.function), slices::slice(row.function) as *const u8);
    }
    builder.symbol(symbols::PRODUCT, product::product as *const u8);
    builder.symbol("floorf", floor as *const u8);
    builder.symbol("nearbyintf", nearest as *const u8);
}

extern "C" fn floor(x: f32) -> f32 {
    x.floor()
}

extern "C" fn nearest(x: f32) -> f32 {
    x.round_ties_even()
}

/// The instruction set of this machine, optimising, with code that may lie anywhere.
fn machine() -> Result<OwnedTargetIsa, Diagnostic> {
    if !has_vector_rounding() {
        let what = "compiled code needs SSE4.1, which this processor does not have";
        return Err(Diagnostic::new(code::DEVICE_LIMIT, what).with_help("use the reference backend"));
    }
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", verify),
    ] {
        flags.set(name, value).map_err(|e| bug(&e))?;
    }
    let native = cranelift_native::builder().map_err(|reason| {
        Diagnostic::new(code::DEVICE_LIMIT, format!("this processor cannot be compiled for: {reason}"))
            .with_help("use the reference backend")
    })?;
    native.finish(settings::Flags::new(flags)).map_err(|e| bug(&e))
}

/// Cranelift has no vector rounding for older x86 processors.
fn has_vector_rounding() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("sse4.1")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        true
    }
}

fn bug(error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("compiling for this machine failed: {error}"))
}
