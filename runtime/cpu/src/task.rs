//! One task's arrays, checked against the program before any code sees them.

use crate::arena::{Arena, Layout};
use miras_base::Diagnostic;
use miras_emit_clif::layout::{self, SCALARS, Slot};
use miras_kernel::Program;
use miras_tasks::{Buffer, Task};
use std::marker::PhantomData;

/// Refuses buffers that do not fit the program: the promise that compiled code rests on.
pub(crate) fn check(task: &Task<'_>, program: &Program) -> Result<(), Diagnostic> {
    if i64::try_from(task.scalars.tokens).is_err() {
        return Err(misfit(program, "there are more than 2^63 tokens"));
    }
    task.check(program)
}

/// The task ready to be run, with scratch arrays from the arena.
pub(crate) fn bind<'t>(
    task: &'t mut Task<'_>,
    program: &Program,
    layout: &Layout,
    arena: &'t mut Arena,
) -> Result<Bound<'t>, Diagnostic> {
    check(task, program)?;
    arena.forget();
    let arrays = program.arrays.len();
    let mut table = vec![0; layout::slots(arrays)];
    for (at, buffer) in task.buffers.iter_mut().enumerate() {
        table[at] = match buffer {
            Buffer::Given(given) => given.as_ptr().expose_provenance() as Slot,
            Buffer::Written(written) => written.as_mut_ptr().expose_provenance() as Slot,
            Buffer::Scratch => arena
                .address(layout, at)
                .ok_or_else(|| misfit(program, "a scratch array has no place"))?
                .expose_provenance() as Slot,
        };
    }
    table[layout::tokens(arrays)] = task.scalars.tokens as Slot;
    table[layout::past(arrays)] = task.scalars.kept.saturating_add(task.scalars.tokens) as Slot;
    for scalar in SCALARS {
        let value = task.scalars.get(scalar) as f32;
        table[layout::scalar(arrays, scalar)] = low_half(value);
    }
    Ok(Bound { table, borrows: PhantomData })
}

/// The slots that compiled code is passed. Made by [`bind`] only: every address belongs to a live array
/// of the length that the program was verified for, borrowed for `'t`.
pub(crate) struct Bound<'t> {
    table: Vec<Slot>,
    borrows: PhantomData<&'t mut f32>,
}

impl Bound<'_> {
    pub(crate) fn table(&self) -> &[Slot] {
        &self.table
    }
}

/// The slot whose first four bytes in memory are the float.
fn low_half(value: f32) -> Slot {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_ne_bytes());
    Slot::from_ne_bytes(bytes)
}

fn misfit(program: &Program, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("task of `{}`: {what}", program.name))
}
