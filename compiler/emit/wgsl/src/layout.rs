//! Where arrays lie: two arenas of float32, array after array, one row per token, head or task.

use crate::names::Names;
use miras_kernel::{ArrayId, Program, Role};
use std::collections::BTreeSet;

/// What precedes the arrays' starts in the uniform block, in order, each a u32: the number of tasks, how many
/// workgroups lie along x, the first turn of this launch and the one after its last, and how many tokens come before
/// the first one that has an invocation.
pub const FIXED_UNIFORMS: [&str; 5] = ["tasks", "groups", "first", "stop", "skip"];

/// A row of the table of tasks, with types: its first token among those of all tasks; how many tokens; the first of
/// its past, counted likewise; how many tokens of that were kept from before the run; which row of arrays that there
/// is one of per head; and the scalars that a program may use.
pub const TASK_FIELDS: [(&str, &str); 10] = [
    ("token", "u32"),
    ("tokens", "u32"),
    ("past", "u32"),
    ("kept", "u32"),
    ("inputs", "u32"),
    ("position", "f32"),
    ("head", "f32"),
    ("heads", "f32"),
    ("layer", "f32"),
    ("layers", "f32"),
];

/// One of the two arenas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// Read only.
    Given,
    /// Read and written.
    Work,
}

/// What an array has one part for each of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// Tokens of all tasks, task after task.
    Token,
    /// Tokens kept from before the run and those of the run, of all tasks, task after task.
    Past,
    /// Heads, or whatever shares its given arrays.
    Head,
    /// Tasks.
    Task,
}

/// An array's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which array.
    pub array: ArrayId,
    /// In which arena.
    pub block: Block,
    /// What its rows are.
    pub rows: Rows,
    /// Elements of one row.
    pub part: usize,
    /// Its identifier in the text: the uniform field that holds its first element's number in the arena.
    pub name: String,
}

/// The places of all arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The uniform fields that hold the turns of repeated launches.
    pub rounds: Vec<String>,
    /// By [`ArrayId`].
    pub places: Vec<Place>,
}

impl Layout {
    /// Lays a program's arrays out; of `own`, scratch arrays, each token has its own. Repeated loops have these names.
    pub(crate) fn new(program: &Program, own: &BTreeSet<ArrayId>, rounds: &[&str]) -> Layout {
        let mut names = Names::fields(&FIXED_UNIFORMS);
        let rounds = rounds.iter().map(|r| names.claim(r)).collect();
        let mut place = |(at, array): (usize, &miras_kernel::Array)| {
            // Verified arrays have at most 2^31 elements, so both numbers fit.
            let array_id = ArrayId(u32::try_from(at).unwrap_or(u32::MAX));
            let part = array.part().unwrap_or(usize::MAX);
            let (block, rows) = match array.role {
                Role::TokenInput { .. } => (Block::Given, Rows::Token),
                Role::PastInput { .. } => (Block::Given, Rows::Past),
                Role::HeadInput => (Block::Given, Rows::Head),
                Role::StateIn => (Block::Given, Rows::Task),
                Role::TokenOutput { .. } => (Block::Work, Rows::Token),
                Role::Scratch if own.contains(&array_id) => (Block::Work, Rows::Token),
                Role::StateOut | Role::Scratch => (Block::Work, Rows::Task),
            };
            Place { array: array_id, block, rows, part, name: names.claim(&array.name) }
        };
        Layout { rounds, places: program.arrays.iter().enumerate().map(&mut place).collect() }
    }

    /// The fields of the uniform block, in order, each a u32: [`FIXED_UNIFORMS`]; the turns of repeated launches; then
    /// for each array the number of its first element in its arena.
    pub fn uniforms(&self) -> impl Iterator<Item = &str> {
        let places = self.places.iter().map(|p| p.name.as_str());
        FIXED_UNIFORMS.into_iter().chain(self.rounds.iter().map(String::as_str)).chain(places)
    }
}
