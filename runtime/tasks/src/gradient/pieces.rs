//! Stretches of tasks, run together.

use super::Runs;
use crate::execute::{Place, room};
use crate::task::{Buffer, Task};
use miras_base::Diagnostic;
use miras_kernel::interpret::Scalars;
use miras_kernel::{Array, Role};
use std::collections::HashMap;
use std::ops::Range;

/// Some tokens of one task.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    /// Its number among the tasks that go together.
    pub task: usize,
    pub place: &'a Place,
    /// First token, counted from the stream's first in this run.
    pub from: usize,
    /// Number of tokens.
    pub count: usize,
    /// Tokens kept from before the run.
    pub kept: usize,
}

impl Piece<'_> {
    /// Where its tokens lie in a tensor of the problem, of which a token of the program has so many numbers.
    pub fn tokens(&self, size: usize) -> Option<Range<usize>> {
        let place = self.place.token.checked_mul(size / self.place.unit)?;
        let start = self.from.checked_mul(size)?.checked_add(place)?;
        Some(start..start.checked_add(self.count.checked_mul(size)?)?)
    }
}

/// What a piece wrote, by the name of the array.
pub(super) type Written = HashMap<String, Vec<f32>>;

/// Runs a program on pieces; `given` finds what an array reads.
pub(super) fn run<'a, R: Runs>(
    program: &R,
    pieces: &[Piece<'_>],
    given: impl Fn(&Array, &Piece<'_>) -> Result<&'a [f32], Diagnostic>,
) -> Result<Vec<Written>, Diagnostic> {
    let arrays = &program.program().arrays;
    let mut written: Vec<Vec<Vec<f32>>> = Vec::new();
    for piece in pieces {
        let of = |a: &Array| match a.role {
            Role::StateOut | Role::TokenOutput { .. } => room(a, a.len(piece.count, piece.kept)),
            Role::TokenInput { .. }
            | Role::PastInput { .. }
            | Role::HeadInput
            | Role::StateIn
            | Role::Scratch => Ok(Vec::new()),
        };
        written.push(arrays.iter().map(of).collect::<Result<_, _>>()?);
    }
    let mut tasks = Vec::new();
    for (piece, own) in pieces.iter().zip(&mut written) {
        let mut buffers = Vec::new();
        for (array, own) in arrays.iter().zip(own) {
            buffers.push(match array.role {
                Role::StateOut | Role::TokenOutput { .. } => Buffer::Written(own),
                Role::Scratch => Buffer::Scratch,
                Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => {
                    Buffer::Given(given(array, piece)?)
                }
            });
        }
        tasks.push(Task { scalars: scalars(piece), buffers });
    }
    program.run(&mut tasks)?;
    drop(tasks);
    let named = |own: Vec<Vec<f32>>| {
        let pairs = arrays.iter().zip(own);
        let out = pairs.filter(|(a, _)| a.role.writable() && a.role != Role::Scratch);
        out.map(|(a, values)| (a.name.clone(), values)).collect()
    };
    Ok(written.into_iter().map(named).collect())
}

fn scalars(piece: &Piece<'_>) -> Scalars {
    let own = piece.place.scalars;
    Scalars {
        tokens: piece.count,
        kept: piece.kept,
        first: own.first.saturating_add((piece.from * piece.place.unit) as u64),
        ..own
    }
}
