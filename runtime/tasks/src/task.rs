//! One task's arrays, checked against the program before a device sees them.

use miras_base::Diagnostic;
use miras_kernel::interpret::{Scalars, interpret};
use miras_kernel::{Program, Role, Verified};

/// An array as a task brings it.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// Given: inputs and incoming states.
    Given(&'a [f32]),
    /// To be written whole: outputs and outgoing states.
    Written(&'a mut [f32]),
    /// Scratch; the task brings nothing.
    Scratch,
}

/// What one task works on.
#[derive(Debug)]
pub struct Task<'a> {
    /// The numbers known at its start.
    pub scalars: Scalars,
    /// One buffer per array of the program, in order, each with exactly `Array::len` elements.
    pub buffers: Vec<Buffer<'a>>,
}

impl Task<'_> {
    /// Refuses buffers that do not fit the program.
    ///
    /// # Errors
    /// E0901, naming the array.
    pub fn check(&self, program: &Program) -> Result<(), Diagnostic> {
        if self.buffers.len() != program.arrays.len() {
            let (have, need) = (self.buffers.len(), program.arrays.len());
            return Err(misfit(program, format!("{have} buffers are given for {need} arrays")));
        }
        for (array, buffer) in program.arrays.iter().zip(&self.buffers) {
            let have = match (array.role, buffer) {
                (
                    Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn,
                    Buffer::Given(b),
                ) => b.len(),
                (Role::StateOut | Role::TokenOutput { .. }, Buffer::Written(b)) => b.len(),
                (Role::Scratch, Buffer::Scratch) => continue,
                (_, Buffer::Given(_) | Buffer::Written(_) | Buffer::Scratch) => {
                    return Err(misfit(program, format!("`{}` has a buffer of the wrong kind", array.name)));
                }
            };
            if array.len(self.scalars.tokens, self.scalars.kept) != Some(have) {
                let (name, tokens) = (&array.name, self.scalars.tokens);
                let what = format!("`{name}` has {have} elements, which is not its size at T = {tokens}");
                return Err(misfit(program, what));
            }
        }
        Ok(())
    }

    /// What is given at this place, if anything is.
    pub fn given(&self, at: usize) -> Option<&[f32]> {
        match self.buffers.get(at)? {
            Buffer::Given(values) => Some(values),
            Buffer::Written(_) | Buffer::Scratch => None,
        }
    }

    /// What is to be written at this place, if anything is.
    pub fn written(&mut self, at: usize) -> Option<&mut [f32]> {
        match self.buffers.get_mut(at)? {
            Buffer::Written(values) => Some(values),
            Buffer::Given(_) | Buffer::Scratch => None,
        }
    }

    /// Runs the task here, in float32: what is done without tokens, where states are only handed on.
    ///
    /// # Errors
    /// E0901 where its buffers do not fit the program.
    pub fn run_here(&mut self, program: &Verified<Program>) -> Result<(), Diagnostic> {
        let given = |at: usize| self.given(at).map(<[f32]>::to_vec).unwrap_or_default();
        let mut arrays: Vec<Vec<f32>> = (0..program.arrays.len()).map(given).collect();
        interpret(program, &self.scalars, &mut arrays)?;
        for (at, values) in arrays.iter().enumerate() {
            if let Some(written) = self.written(at) {
                written.copy_from_slice(values);
            }
        }
        Ok(())
    }
}

fn misfit(program: &Program, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("task of `{}`: {what}", program.name))
}
