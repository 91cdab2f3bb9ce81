//! Batches: as many tasks at a time as the device's buffers hold.

use crate::arena::{Arenas, Counts};
use crate::device::Device;
use crate::fault;
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::MAX_GROUPS;
use miras_emit_wgsl::{Layout, Module, Rows, TASK_FIELDS};
use miras_kernel::{Program, Role, Scalar};
use miras_tasks::Task;
use std::collections::HashMap;

/// Tasks that run together.
pub(crate) struct Batch {
    /// Their numbers among all tasks.
    pub members: Vec<Member>,
    pub arenas: Arenas,
    /// Tokens of the longest.
    pub longest: usize,
}

/// A task of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Its number among all tasks.
    pub task: usize,
    /// Its first token among those of the batch.
    pub token: usize,
    /// Its row of arrays that there is one of per head.
    pub inputs: usize,
}

/// Shares the tasks that have tokens out into batches.
pub(crate) fn batches(
    device: &Device,
    program: &Program,
    layout: &Layout,
    tasks: &[Task<'_>],
) -> Result<Vec<Batch>, Diagnostic> {
    let most = Most::of(device);
    let mut batches = Vec::new();
    let mut open = Open::default();
    for (at, task) in tasks.iter().enumerate().filter(|(_, t)| t.scalars.tokens > 0) {
        if !open.members.is_empty()
            && !open.with(program, task).is_some_and(|c| most.allow(program, layout, c))
        {
            batches.push(std::mem::take(&mut open).close(program, layout)?);
        }
        let counts = open.with(program, task).ok_or_else(|| too_many(program))?;
        if open.members.is_empty() {
            most.check(program, layout, counts)?;
        }
        open.add(program, at, task, counts);
    }
    if !open.members.is_empty() {
        batches.push(open.close(program, layout)?);
    }
    Ok(batches)
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

    /// Refuses a single task that does not fit.
    fn check(&self, program: &Program, layout: &Layout, counts: Counts) -> Result<(), Diagnostic> {
        let arenas = Arenas::new(program, layout, counts).ok_or_else(|| too_many(program))?;
        if arenas.bytes() <= self.bytes {
            return Ok(());
        }
        let (need, have) = (arenas.bytes(), self.bytes);
        Err(fault::limit(format!(
            "one head of `{}` with {} tokens takes a buffer of {need} bytes; the device allows {have}",
            program.name, counts.tokens
        )))
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
    longest: usize,
    /// Rows of per-head arrays, by the arrays that tasks bring for them.
    rows: HashMap<Vec<(*const f32, usize)>, usize>,
}

impl Open {
    /// The counts with one more task.
    fn with(&self, program: &Program, task: &Task<'_>) -> Option<Counts> {
        let fresh = usize::from(!self.rows.contains_key(&shared(program, task)));
        Some(Counts {
            tokens: self.counts.tokens.checked_add(task.scalars.tokens)?,
            heads: self.counts.heads.checked_add(fresh)?,
            tasks: self.counts.tasks.checked_add(1)?,
        })
    }

    fn add(&mut self, program: &Program, at: usize, task: &Task<'_>, counts: Counts) {
        let inputs = *self.rows.entry(shared(program, task)).or_insert(self.counts.heads);
        self.members.push(Member { task: at, token: self.counts.tokens, inputs });
        self.longest = self.longest.max(task.scalars.tokens);
        self.counts = counts;
    }

    fn close(self, program: &Program, layout: &Layout) -> Result<Batch, Diagnostic> {
        let arenas = Arenas::new(program, layout, self.counts).ok_or_else(|| too_many(program))?;
        Ok(Batch { members: self.members, arenas, longest: self.longest })
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

    /// The arena of given arrays.
    pub(crate) fn given(&self, layout: &Layout, tasks: &[Task<'_>]) -> Result<Vec<f32>, Diagnostic> {
        let mut arena = vec![0.0; self.arenas.given];
        for member in &self.members {
            for (at, place) in layout.places.iter().enumerate() {
                let Some(values) = tasks[member.task].given(at) else { continue };
                let start = self.arenas.starts[at] + self.row(place.rows, member) * place.part;
                let own = arena.get_mut(start..start + values.len());
                own.ok_or_else(|| Diagnostic::bug("an array leaves its arena"))?.copy_from_slice(values);
            }
        }
        Ok(arena)
    }

    /// Takes the results out of the arena of written arrays.
    pub(crate) fn take(
        &self,
        layout: &Layout,
        arena: &[f32],
        tasks: &mut [Task<'_>],
    ) -> Result<(), Diagnostic> {
        for (number, member) in self.members.iter().enumerate() {
            for (at, place) in layout.places.iter().enumerate() {
                let row = match place.rows {
                    Rows::Task => number,
                    Rows::Token | Rows::Head => self.row(place.rows, member),
                };
                let start = self.arenas.starts[at] + row * place.part;
                let Some(values) = tasks[member.task].written(at) else { continue };
                let own = arena.get(start..start + values.len());
                values.copy_from_slice(own.ok_or_else(|| Diagnostic::bug("a result leaves its arena"))?);
            }
        }
        Ok(())
    }

    fn row(&self, rows: Rows, member: &Member) -> usize {
        match rows {
            Rows::Token => member.token,
            Rows::Head => member.inputs,
            // Members are in the order of their tasks, so a search finds the number.
            Rows::Task => self.members.partition_point(|m| m.task < member.task),
        }
    }

    /// The table of tasks.
    pub(crate) fn table(&self, tasks: &[Task<'_>]) -> Result<Vec<u32>, Diagnostic> {
        let mut table = Vec::with_capacity(self.members.len() * TASK_FIELDS.len());
        let number = |n: usize| u32::try_from(n).map_err(|_| Diagnostic::bug("a batch has 2^32 tokens"));
        for member in &self.members {
            let scalars = &tasks[member.task].scalars;
            let whole = [number(member.token)?, number(scalars.tokens)?, number(member.inputs)?];
            let real = [Scalar::First, Scalar::Head, Scalar::Heads, Scalar::Layer, Scalar::Layers];
            table.extend(whole);
            table.extend(real.map(|s| (scalars.get(s) as f32).to_bits()));
        }
        Ok(table)
    }
}

/// The uniform block of one launch.
pub(crate) fn uniforms(
    batch: &Batch,
    module: &Module,
    groups: u32,
    turns: (u32, u32),
) -> Result<Vec<u32>, Diagnostic> {
    let tasks = u32::try_from(batch.members.len()).map_err(|_| Diagnostic::bug("a batch has 2^32 tasks"))?;
    let mut block = vec![tasks, groups, turns.0, turns.1];
    block.extend(batch.arenas.numbers()?);
    match block.len() == module.layout.uniforms().count() {
        true => Ok(block),
        false => Err(Diagnostic::bug("the uniform block has another number of fields than the text")),
    }
}
