//! One task's arrays, checked against the program before any code sees them.

use crate::arena::{Arena, Layout};
use miras_base::Diagnostic;
use miras_emit_clif::layout::{self, SCALARS, Slot};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role};
use std::marker::PhantomData;

/// An array as a task brings it.
pub enum Buffer<'a> {
    /// Given: inputs and incoming states.
    Given(&'a [f32]),
    /// To be written whole: outputs and outgoing states.
    Written(&'a mut [f32]),
    /// Scratch; the task brings nothing.
    Scratch,
}

/// What one task works on.
pub struct Task<'a> {
    /// The numbers known at its start.
    pub scalars: Scalars,
    /// One buffer per array of the program, in order, each with exactly `Array::len` elements.
    pub buffers: Vec<Buffer<'a>>,
}

impl Task<'_> {
    /// Refuses buffers that do not fit the program: the promise that compiled code rests on.
    pub(crate) fn check(&self, program: &Program) -> Result<(), Diagnostic> {
        if self.buffers.len() != program.arrays.len() {
            let (have, need) = (self.buffers.len(), program.arrays.len());
            return Err(misfit(program, format!("{have} buffers are given for {need} arrays")));
        }
        if i64::try_from(self.scalars.tokens).is_err() {
            return Err(misfit(program, "there are more than 2^63 tokens"));
        }
        for (array, buffer) in program.arrays.iter().zip(&self.buffers) {
            let have = match (array.role, buffer) {
                (Role::TokenInput { .. } | Role::HeadInput | Role::StateIn, Buffer::Given(b)) => b.len(),
                (Role::StateOut | Role::TokenOutput { .. }, Buffer::Written(b)) => b.len(),
                (Role::Scratch, Buffer::Scratch) => continue,
                (_, Buffer::Given(_) | Buffer::Written(_) | Buffer::Scratch) => {
                    return Err(misfit(program, format!("`{}` has a buffer of the wrong kind", array.name)));
                }
            };
            if array.len(self.scalars.tokens) != Some(have) {
                let (name, tokens) = (&array.name, self.scalars.tokens);
                let what = format!("`{name}` has {have} elements, which is not its size at T = {tokens}");
                return Err(misfit(program, what));
            }
        }
        Ok(())
    }

    /// The task ready to be run, with scratch arrays from the arena.
    pub(crate) fn bind<'t>(
        &'t mut self,
        program: &Program,
        layout: &Layout,
        arena: &'t mut Arena,
    ) -> Result<Bound<'t>, Diagnostic> {
        self.check(program)?;
        arena.forget();
        let arrays = program.arrays.len();
        let mut table = vec![0; layout::slots(arrays)];
        for (at, buffer) in self.buffers.iter_mut().enumerate() {
            table[at] = match buffer {
                Buffer::Given(given) => given.as_ptr().expose_provenance() as Slot,
                Buffer::Written(written) => written.as_mut_ptr().expose_provenance() as Slot,
                Buffer::Scratch => arena
                    .address(layout, at)
                    .ok_or_else(|| misfit(program, "a scratch array has no place"))?
                    .expose_provenance() as Slot,
            };
        }
        table[layout::tokens(arrays)] = self.scalars.tokens as Slot;
        for scalar in SCALARS {
            let value = self.scalars.get(scalar) as f32;
            table[layout::scalar(arrays, scalar)] = low_half(value);
        }
        Ok(Bound { table, borrows: PhantomData })
    }
}

/// The slots that compiled code is passed. Made by [`Task::bind`] only: every address belongs to a live array
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
