//! Where the arrays of a batch of tasks begin in the two arenas.

use miras_base::Diagnostic;
use miras_emit_wgsl::{Block, Layout, Rows};
use miras_kernel::{Program, Role};

/// How many rows of each kind a batch has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub tokens: usize,
    /// Tokens of the past, those of the run included.
    pub past: usize,
    pub heads: usize,
    pub tasks: usize,
}

/// The places of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arenas {
    /// By array: its first element in its arena.
    pub starts: Vec<usize>,
    /// Elements of the arena of given arrays.
    pub given: usize,
    /// Elements of the arena of written arrays.
    pub work: usize,
    /// Those at its beginning that are read back; scratch comes after them.
    pub results: usize,
}

impl Arenas {
    /// Lays the arrays out, results first; `None` where the elements cannot be counted.
    pub(crate) fn new(program: &Program, layout: &Layout, counts: Counts) -> Option<Arenas> {
        let mut arenas = Arenas { starts: vec![0; program.arrays.len()], given: 0, work: 0, results: 0 };
        let scratch = |at: usize| program.arrays.get(at).is_some_and(|a| a.role == Role::Scratch);
        for last in [false, true] {
            for (at, place) in layout.places.iter().enumerate().filter(|(at, _)| scratch(*at) == last) {
                let end = match place.block {
                    Block::Given => &mut arenas.given,
                    Block::Work => &mut arenas.work,
                };
                arenas.starts[at] = *end;
                *end = end.checked_add(rows(place.rows, counts).checked_mul(place.part)?)?;
            }
            if !last {
                arenas.results = arenas.work;
            }
        }
        Some(arenas)
    }

    /// Bytes of the larger arena.
    pub(crate) fn bytes(&self) -> u64 {
        (self.given.max(self.work) as u64).saturating_mul(4)
    }

    /// The starts as the kernels want them.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, Diagnostic> {
        let number =
            |n: &usize| u32::try_from(*n).map_err(|_| Diagnostic::bug("an arena is larger than 2^32"));
        self.starts.iter().map(number).collect()
    }
}

fn rows(rows: Rows, counts: Counts) -> usize {
    match rows {
        Rows::Token => counts.tokens,
        Rows::Past => counts.past,
        Rows::Head => counts.heads,
        Rows::Task => counts.tasks,
    }
}
