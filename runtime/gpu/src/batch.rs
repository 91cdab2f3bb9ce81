//! Batches: as many tasks at a time as the device's buffers hold.

use crate::arena::{Arenas, Counts};
use crate::device::Device;
use crate::fault;
use crate::transfer::bytes;
use crate::window::{Launch, Lengths};
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::MAX_GROUPS;
use miras_emit_wgsl::{Block, Each, LANES, Layout, Module, Rows, TASK_FIELDS};
use miras_kernel::{Program, Role, Scalar};
use miras_tasks::{Buffer, Task};
use std::collections::HashMap;
use std::ops::Range;

/// Tasks that run together.
pub(crate) struct Batch {
    /// Their numbers among all tasks.
    pub members: Vec<Member>,
    pub arenas: Arenas,
    pub longest: Lengths,
    /// The most tokens that are on the device at a time, where one task alone is too large.
    pub piece: Option<usize>,
}

/// A task of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Its number among all tasks.
    pub task: usize,
    /// Its first token among those of the batch.
    pub token: usize,
    /// The first token of its past, likewise.
    pub past: usize,
    /// Its row of arrays that there is one of per head.
    pub inputs: usize,
}

/// Shares the tasks that have tokens out into batches.
pub(crate) fn batches(
    device: &Device,
    program: &Program,
    module: &Module,
    tasks: &[Task<'_>],
) -> Result<Vec<Batch>, Diagnostic> {
    let most = Most::of(device);
    let layout = &module.layout;
    let mut batches = Vec::new();
    let mut open = Open::default();
    for (at, task) in tasks.iter().enumerate().filter(|(_, t)| t.scalars.tokens > 0) {
        let fits = |open: &Open| open.with(program, task).is_some_and(|c| most.allow(program, layout, c));
        if !open.members.is_empty() && !fits(&open) {
            batches.push(std::mem::take(&mut open).close(program, layout)?);
        }
        let alone = open.members.is_empty();
        if alone && !fits(&open) {
            batches.push(piecewise(&most, program, module, at, task)?);
            continue;
        }
        let counts = open.with(program, task).ok_or_else(|| too_many(program))?;
        open.add(program, at, task, counts);
    }
    if !open.members.is_empty() {
        batches.push(open.close(program, layout)?);
    }
    Ok(batches)
}

/// A task that is too large for the device, some tokens at a time.
fn piecewise(
    most: &Most,
    program: &Program,
    module: &Module,
    at: usize,
    task: &Task<'_>,
) -> Result<Batch, Diagnostic> {
    let all = Open::default().with(program, task).ok_or_else(|| too_many(program))?;
    let arenas = |tokens| Arenas::new(program, &module.layout, Counts { tokens, ..all });
    let allowed = |tokens: usize| arenas(tokens).is_some_and(|a| a.bytes() <= most.bytes);
    let least = if module.stages.iter().all(|s| s.streams) { 1 } else { all.tokens };
    if !allowed(least) {
        let need = arenas(least).ok_or_else(|| too_many(program))?.bytes();
        return Err(fault::limit(format!(
            "one head of `{}` takes a buffer of {need} bytes for {least} of its {} tokens{}; the device allows {}",
            program.name,
            all.tokens,
            if all.past > all.tokens {
                format!(" after {} kept ones", task.scalars.kept)
            } else {
                String::new()
            },
            most.bytes
        )));
    }
    // The most that is allowed lies in low..high.
    let (mut low, mut high) = (least, all.tokens);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if allowed(middle) { low = middle } else { high = middle }
    }
    // Whole workgroups where invocations have tokens.
    let lanes = LANES as usize;
    let piece = if low < lanes { low } else { low - low % lanes };
    if piece < lanes && module.stages.iter().any(|s| s.each == Each::Token) {
        return Err(fault::limit(format!(
            "one head of `{}` with a past of {} tokens leaves room for {piece} tokens at a time in a buffer of {} \
             bytes; it needs room for {lanes}",
            program.name, all.past, most.bytes
        )));
    }
    let arenas = arenas(piece).ok_or_else(|| too_many(program))?;
    let members = vec![Member { task: at, token: 0, past: 0, inputs: 0 }];
    Ok(Batch { members, arenas, longest: lengths(task), piece: Some(piece) })
}

fn lengths(task: &Task<'_>) -> Lengths {
    Lengths { tokens: task.scalars.tokens, kept: task.scalars.kept }
}

/// What a device can hold.
struct Most {
    bytes: u64,
    tasks: usize,
}

impl Most {
    fn of(device: &Device) -> Most {
        let limits = &device.limits;
        // Places are counted in 32 bits.
        let bytes =
            limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(u64::from(u32::MAX) * 4);
        let groups = limits.max_compute_workgroups_per_dimension.min(MAX_GROUPS) as usize;
        let rows = usize::try_from(bytes).unwrap_or(usize::MAX) / (4 * TASK_FIELDS.len());
        Most { bytes, tasks: rows.min(groups.saturating_mul(groups)) }
    }

    fn allow(&self, program: &Program, layout: &Layout, counts: Counts) -> bool {
        counts.tasks <= self.tasks
            && Arenas::new(program, layout, counts).is_some_and(|a| a.bytes() <= self.bytes)
    }
}

fn too_many(program: &Program) -> Diagnostic {
    fault::limit(format!("the elements of `{}` cannot be counted in 64 bits", program.name))
}

/// A batch that takes more tasks.
#[derive(Default)]
struct Open {
    members: Vec<Member>,
    counts: Counts,
    longest: Lengths,
    /// Rows of per-head arrays, by the arrays that tasks bring for them.
    rows: HashMap<Vec<(*const f32, usize)>, usize>,
}

impl Open {
    /// The counts with one more task.
    fn with(&self, program: &Program, task: &Task<'_>) -> Option<Counts> {
        let fresh = usize::from(!self.rows.contains_key(&shared(program, task)));
        let past = task.scalars.tokens.checked_add(task.scalars.kept)?;
        Some(Counts {
            tokens: self.counts.tokens.checked_add(task.scalars.tokens)?,
            past: self.counts.past.checked_add(past)?,
            heads: self.counts.heads.checked_add(fresh)?,
            tasks: self.counts.tasks.checked_add(1)?,
        })
    }

    fn add(&mut self, program: &Program, at: usize, task: &Task<'_>, counts: Counts) {
        let inputs = *self.rows.entry(shared(program, task)).or_insert(self.counts.heads);
        self.members.push(Member { task: at, token: self.counts.tokens, past: self.counts.past, inputs });
        self.longest.tokens = self.longest.tokens.max(task.scalars.tokens);
        self.longest.kept = self.longest.kept.max(task.scalars.kept);
        self.counts = counts;
    }

    fn close(self, program: &Program, layout: &Layout) -> Result<Batch, Diagnostic> {
        let arenas = Arenas::new(program, layout, self.counts).ok_or_else(|| too_many(program))?;
        Ok(Batch { members: self.members, arenas, longest: self.longest, piece: None })
    }
}

/// What tells apart the rows of per-head arrays: tasks that bring the very same arrays share a row.
fn shared(program: &Program, task: &Task<'_>) -> Vec<(*const f32, usize)> {
    let heads = program.arrays.iter().enumerate().filter(|(_, a)| a.role == Role::HeadInput);
    heads.filter_map(|(at, _)| task.given(at)).map(|values| (values.as_ptr(), values.len())).collect()
}

impl Batch {
    /// Workgroups along x and y.
    pub(crate) fn groups(&self, device: &Device) -> Result<(u32, u32), Diagnostic> {
        let count =
            u32::try_from(self.members.len()).map_err(|_| Diagnostic::bug("a batch has 2^32 tasks"))?;
        let most = device.limits.max_compute_workgroups_per_dimension.clamp(1, MAX_GROUPS);
        Ok((count.min(most), count.div_ceil(most)))
    }

    /// The arena of given arrays, but for those rows of tokens that come piece by piece.
    pub(crate) fn given(&self, layout: &Layout, tasks: &[Task<'_>]) -> Result<Vec<f32>, Diagnostic> {
        let mut arena = vec![0.0; self.arenas.given];
        for (number, member) in self.members.iter().enumerate() {
            for (at, place) in layout.places.iter().enumerate() {
                if self.piece.is_some() && place.rows == Rows::Token {
                    continue;
                }
                let Some(values) = tasks[member.task].given(at) else { continue };
                let start = self.arenas.starts[at] + row(place.rows, number, member) * place.part;
                let own = arena.get_mut(start..start + values.len());
                own.ok_or_else(|| Diagnostic::bug("an array leaves its arena"))?.copy_from_slice(values);
            }
        }
        Ok(arena)
    }

    /// The rows of a piece's tokens: of arrays in an arena, first elements there with the numbers to be put there.
    /// Written arrays have any only where `written`, an earlier pass having filled them.
    pub(crate) fn rows<'t>(
        &self,
        layout: &Layout,
        task: &'t Task<'_>,
        piece: &Range<usize>,
        block: Block,
        written: bool,
    ) -> Vec<(u64, &'t [f32])> {
        let mut rows = Vec::new();
        for (at, place) in layout.places.iter().enumerate() {
            if place.rows != Rows::Token || place.block != block {
                continue;
            }
            let values = match (block, task.buffers.get(at)) {
                (Block::Given, Some(Buffer::Given(values))) => values,
                (Block::Work, Some(Buffer::Written(values))) if written => &**values,
                _ => continue,
            };
            if let Some(own) = values.get(piece.start * place.part..piece.end * place.part) {
                rows.push((bytes(self.arenas.starts[at]), own));
            }
        }
        rows
    }

    /// Takes the results out of the arena of written arrays: of all tokens, or of a piece's.
    pub(crate) fn take(
        &self,
        layout: &Layout,
        arena: &[f32],
        tasks: &mut [Task<'_>],
        piece: Option<&Range<usize>>,
    ) -> Result<(), Diagnostic> {
        for (number, member) in self.members.iter().enumerate() {
            for (at, place) in layout.places.iter().enumerate() {
                let Some(written) = tasks[member.task].written(at) else { continue };
                let range = match (piece, place.rows) {
                    (Some(piece), Rows::Token) => piece.start * place.part..piece.end * place.part,
                    (Some(_) | None, _) => 0..written.len(),
                };
                let short = || Diagnostic::bug("an array leaves its arena");
                let written = written.get_mut(range).ok_or_else(short)?;
                let start = self.arenas.starts[at] + row(place.rows, number, member) * place.part;
                written.copy_from_slice(arena.get(start..start + written.len()).ok_or_else(short)?);
            }
        }
        Ok(())
    }

    /// The table of tasks, with the tokens before a piece that are not there.
    pub(crate) fn table(&self, tasks: &[Task<'_>], before: usize) -> Result<Vec<u32>, Diagnostic> {
        let mut table = Vec::with_capacity(self.members.len() * TASK_FIELDS.len());
        let number = |n: usize| u32::try_from(n).map_err(|_| Diagnostic::bug("a batch has 2^32 tokens"));
        for member in &self.members {
            let scalars = &tasks[member.task].scalars;
            // The kernels count places modulo 2^32.
            let token = number(member.token)?.wrapping_sub(number(before)?);
            let (past, kept) = (number(member.past)?, number(scalars.kept)?);
            let real = [Scalar::First, Scalar::Head, Scalar::Heads, Scalar::Layer, Scalar::Layers];
            table.extend([token, number(scalars.tokens)?, past, kept, number(member.inputs)?]);
            table.extend(real.map(|s| (scalars.get(s) as f32).to_bits()));
        }
        Ok(table)
    }
}

/// The row of an array that a member's own begins with, by its number in the batch.
fn row(rows: Rows, number: usize, member: &Member) -> usize {
    match rows {
        Rows::Token => member.token,
        Rows::Past => member.past,
        Rows::Head => member.inputs,
        Rows::Task => number,
    }
}

/// The uniform block of one launch.
pub(crate) fn uniforms(
    batch: &Batch,
    module: &Module,
    groups: u32,
    launch: &Launch,
) -> Result<Vec<u32>, Diagnostic> {
    let tasks = u32::try_from(batch.members.len()).map_err(|_| Diagnostic::bug("a batch has 2^32 tasks"))?;
    let mut block = vec![tasks, groups, launch.turns.0, launch.turns.1, launch.skip];
    block.extend(&launch.rounds);
    block.extend(batch.arenas.numbers()?);
    match block.len() == module.layout.uniforms().count() {
        true => Ok(block),
        false => Err(Diagnostic::bug("the uniform block has another number of fields than the text")),
    }
}
