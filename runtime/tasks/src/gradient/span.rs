//! What one set of programs goes through of every stream.

use super::tensors::{Tensors, arrays};
use super::{Programs, Runs};
use crate::execute::{self, Place};
use miras_base::Diagnostic;
use miras_host as host;
use miras_kernel::{Array, Program, Role};
use miras_schedule::{stretch, stretch_of_blocks};
use miras_tensor::backward::name::{CARRY, TAPE};

/// Tokens of every stream, or whole blocks of them, that one set of programs goes through. The first span makes the
/// first carries; each later one goes on from the states that the one before handed on, at a chunk's border.
pub(super) struct Span<'a, R> {
    pub programs: &'a Programs<R>,
    pub tensors: Tensors<'a>,
    /// Of each task its part of the stream.
    pub places: Vec<Place>,
    /// Tokens of the programs in a stretch.
    pub stretch: usize,
}

impl<'a, R: Runs> Span<'a, R> {
    /// A span of the problem `bound`, `unit` of whose tokens are one of the programs'.
    pub fn new(
        programs: &'a Programs<R>,
        unit: usize,
        rule: &host::Rule,
        bound: &'a host::Bound,
        continues: bool,
    ) -> Result<Self, Diagnostic> {
        let places = execute::places(bound, unit);
        let of_problem = |a: &&Array| !continues || a.role != Role::StateIn;
        let tensors = Tensors::new(arrays(programs).filter(of_problem), rule, bound)?;
        let longest = places.iter().map(|p| p.tokens).max().unwrap_or(0);
        let stretch = match writes_tape(programs) {
            true => stretch_of_blocks(longest, tape(programs)),
            false => stretch(longest),
        };
        Ok(Span { programs, tensors, places, stretch })
    }

    /// Numbers that one task keeps at most.
    pub fn kept(&self) -> usize {
        let longest = self.places.iter().map(|p| p.tokens).max().unwrap_or(0);
        let carries = parts(self.programs.start.program(), CARRY);
        let tape = tape(self.programs).saturating_mul(self.stretch.min(longest));
        tape.saturating_add(carries.saturating_mul(self.stretches(longest)))
    }

    /// Stretches of a task with so many tokens.
    pub fn stretches(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.stretch.max(1))
    }
}

/// Whether going forwards writes the tape down.
pub(super) fn writes_tape<R: Runs>(programs: &Programs<R>) -> bool {
    programs.advance.program().arrays.iter().any(|a| a.name.starts_with(TAPE))
}

/// Numbers that the tape holds for each token.
fn tape<R: Runs>(programs: &Programs<R>) -> usize {
    let writer = programs.tape.as_ref().unwrap_or(&programs.advance);
    parts(writer.program(), TAPE)
}

fn parts(program: &Program, prefix: &str) -> usize {
    let arrays = program.arrays.iter().filter(|a| a.name.starts_with(prefix) && a.role.writable());
    arrays.filter_map(Array::part).fold(0, usize::saturating_add)
}
