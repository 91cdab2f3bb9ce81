//! Scratch arrays that nothing uses any more are dropped.

use super::{accesses, tally};
use crate::ir::{ArrayId, Program, Role};

pub(super) fn prune(program: &mut Program) {
    let all = tally(program, &program.body);
    let used: Vec<bool> =
        program.arrays.iter().zip(all).map(|(a, count)| a.role != Role::Scratch || count > 0).collect();
    let mut next = 0;
    let places: Vec<u32> = (used.iter())
        .map(|used| {
            let place = next;
            next += u32::from(*used);
            place
        })
        .collect();
    let mut keep = used.iter();
    program.arrays.retain(|_| keep.next().copied().unwrap_or(true));
    for statement in &mut program.body {
        accesses(statement, &mut |a| a.array = ArrayId(places[a.array.0 as usize]));
    }
}
