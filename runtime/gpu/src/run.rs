//! A program on a device: uploaded batch by batch, launched window by window, read back.

use crate::batch::{Batch, batches, uniforms};
use crate::device::Device;
use crate::fault;
use crate::pipeline::{Buffers, Dispatch, Pipelines};
use crate::transfer::bytes;
use crate::window::{Launch, Span, launches};
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::MAX_TURNS;
use miras_emit_wgsl::{Block, Module, Pass, Structure, emit};
use miras_host as host;
use miras_kernel::{Order, Program, Verified};
use miras_tasks::Task;
use std::ops::Range;
use std::sync::Arc;
use wgpu::BufferUsages;

/// Launches whose numbers are uploaded together.
const AT_ONCE: usize = 1024;

/// The buffers of a batch.
struct Room {
    buffers: Buffers,
    /// Where results are read from.
    results: wgpu::Buffer,
    /// Bytes from one launch's numbers to the next's.
    slot: u64,
}

/// A program as pipelines of a device.
pub struct Compiled {
    device: Arc<Device>,
    program: Verified<Program>,
    module: Module,
    pipelines: Arc<Pipelines>,
}

impl miras_tasks::Runs for Compiled {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic> {
        Compiled::run(self, tasks)
    }
}

/// The structure that computes so many tasks of a program best on a device ([`Structure::of`]).
pub fn structure(device: &Device, program: &Program, tasks: usize) -> Structure {
    Structure::of(program, tasks, device.turns)
}

impl Compiled {
    /// Compiles the program in a structure for a device, or finds it compiled. A program that has no several launches
    /// is one kernel, as the module says.
    ///
    /// # Errors
    /// E0402 where the program is too large; E0603 where the device is lost or its compiler fails; E0901 where
    /// naga or wgpu refuse what was emitted.
    pub fn new(
        device: &Arc<Device>,
        program: &Verified<Program>,
        structure: Structure,
    ) -> Result<Compiled, Diagnostic> {
        let module = emit(program, structure)?;
        let entries = module.stages.iter().map(|s| s.entry.as_str());
        let pipelines = Pipelines::of(device, &module.wgsl, entries)?;
        Ok(Compiled { device: Arc::clone(device), program: program.clone(), module, pipelines })
    }

    /// The program it was compiled from.
    pub fn program(&self) -> &Verified<Program> {
        &self.program
    }

    /// The text that runs.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Runs every task.
    ///
    /// # Errors
    /// E0901 where a task's arrays do not fit the program (before anything is run); E0602 where one task is too
    /// large for the device, with both numbers; E0603 where the device is lost or its memory does not suffice.
    pub fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic> {
        for task in tasks.iter() {
            task.check(&self.program)?;
        }
        for task in tasks.iter_mut().filter(|t| t.scalars.tokens == 0) {
            task.run_here(&self.program)?;
        }
        for batch in batches(&self.device, &self.program, &self.module, tasks)? {
            self.batch(&batch, tasks)?;
        }
        Ok(())
    }

    /// Runs a batch, all tokens at a time or piece by piece.
    fn batch(&self, batch: &Batch, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic> {
        let layout = &self.module.layout;
        let given = batch.given(layout, tasks)?;
        let table = batch.table(tasks, 0)?;
        let room = self.room(batch, given.len(), table.len())?;
        self.device.guarded("uploading", || {
            self.device.queue.write_buffer(&room.buffers.given, 0, bytemuck::cast_slice(&given));
            self.device.queue.write_buffer(&room.buffers.tasks, 0, bytemuck::cast_slice(&table));
            if cfg!(debug_assertions) {
                // What is read before it is written shall be seen in tests, not look like a state of zeros.
                let nothing = vec![f32::NAN; batch.arenas.work];
                self.device.queue.write_buffer(&room.buffers.work, 0, bytemuck::cast_slice(&nothing));
            }
        })?;
        let all = 0..batch.longest.tokens;
        let mut written = false;
        for pass in &self.module.passes {
            match (batch.piece, pass.order) {
                (Some(size), Some(order)) => {
                    for piece in pieces(all.clone(), size, order) {
                        self.piece(batch, &room, pass, &piece, written, tasks)?;
                    }
                    written = true;
                }
                (None, _) | (_, None) => self.pass(batch, &room, pass, &all)?,
            }
        }
        let words = self.device.read(&room.buffers.work, &room.results, batch.arenas.results)?;
        let found: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        // The tokens' results were taken with their pieces; of the last one they are there still.
        let last = batch.piece.map(|_| 0..0);
        batch.take(layout, &found, tasks, last.as_ref())
    }

    /// Some tokens of a pass: their rows are brought and their results taken, all else stays on the device.
    fn piece(
        &self,
        batch: &Batch,
        room: &Room,
        pass: &Pass,
        piece: &Range<usize>,
        written: bool,
        tasks: &mut [Task<'_>],
    ) -> Result<(), Diagnostic> {
        let layout = &self.module.layout;
        let table = batch.table(tasks, piece.start)?;
        let [member] = batch.members.as_slice() else {
            return Err(Diagnostic::bug("pieces are made of one task"));
        };
        self.device.guarded("uploading", || {
            let queue = &self.device.queue;
            queue.write_buffer(&room.buffers.tasks, 0, bytemuck::cast_slice(&table));
            for (block, buffer) in [(Block::Given, &room.buffers.given), (Block::Work, &room.buffers.work)] {
                for (at, values) in batch.rows(layout, &tasks[member.task], piece, block, written) {
                    queue.write_buffer(buffer, at, bytemuck::cast_slice(values));
                }
            }
        })?;
        self.pass(batch, room, pass, piece)?;
        let words = self.device.read(&room.buffers.work, &room.results, batch.arenas.results)?;
        let found: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        batch.take(layout, &found, tasks, Some(piece))
    }

    /// Makes a pass's launches for some tokens.
    fn pass(&self, batch: &Batch, room: &Room, pass: &Pass, piece: &Range<usize>) -> Result<(), Diagnostic> {
        let (lengths, stops) = (batch.longest, self.device.turns);
        let span = Span { module: &self.module, piece: piece.clone(), lengths, stops };
        let mut some = Vec::new();
        launches(&span, pass, &mut |launch| {
            some.push(launch);
            match some.len() < AT_ONCE {
                true => Ok(()),
                false => self.launch(batch, &std::mem::take(&mut some), &room.buffers, room.slot),
            }
        })?;
        if some.is_empty() { Ok(()) } else { self.launch(batch, &some, &room.buffers, room.slot) }
    }

    /// The buffers of a batch.
    fn room(&self, batch: &Batch, given: usize, table: usize) -> Result<Room, Diagnostic> {
        let slot = self.slot()?;
        self.device.guarded("making buffers", || {
            let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
            let numbers = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
            let buffers = Buffers {
                given: self.device.buffer("given", bytes(given), storage),
                work: self.device.buffer("work", bytes(batch.arenas.work), storage | BufferUsages::COPY_SRC),
                run: self.device.buffer("run", slot * AT_ONCE as u64, numbers),
                tasks: self.device.buffer("tasks", bytes(table), storage),
            };
            let read = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
            Room { buffers, results: self.device.buffer("results", bytes(batch.arenas.results), read), slot }
        })
    }

    /// Bytes from one launch's numbers to the next's.
    fn slot(&self) -> Result<u64, Diagnostic> {
        let limits = &self.device.limits;
        let need = bytes(self.module.layout.uniforms().count());
        let most = limits.max_uniform_buffer_binding_size;
        if need > most {
            let what =
                format!("`{}` needs {need} bytes of uniforms; the device allows {most}", self.program.name);
            return Err(fault::limit(what));
        }
        Ok(need.next_multiple_of(u64::from(limits.min_uniform_buffer_offset_alignment.max(16))))
    }

    fn launch(
        &self,
        batch: &Batch,
        launches: &[Launch],
        buffers: &Buffers,
        slot: u64,
    ) -> Result<(), Diagnostic> {
        let (x, y) = batch.groups(&self.device)?;
        let mut numbers = Vec::new();
        for launch in launches {
            numbers.extend(uniforms(batch, &self.module, x, launch)?);
            let end = numbers.len().next_multiple_of((slot / 4) as usize);
            numbers.resize(end, 0_u32);
        }
        self.device.guarded("launching", || {
            self.device.queue.write_buffer(&buffers.run, 0, bytemuck::cast_slice(&numbers));
            let group = self.pipelines.bind(&self.device, buffers, slot);
            let (mut open, mut work) = (Vec::new(), 0_u64);
            for (at, launch) in launches.iter().enumerate() {
                // A watchdog looks at each submission by itself.
                if work.saturating_add(launch.work) > MAX_TURNS && !open.is_empty() {
                    self.pipelines.launch(&self.device, &group, &std::mem::take(&mut open));
                    work = 0;
                }
                work = work.saturating_add(launch.work);
                // AT_ONCE slots of at most 64 KiB, so 32 bits suffice.
                let (offset, groups) = (at as u32 * slot as u32, (x, y, launch.tiles));
                open.push(Dispatch { stage: launch.stage, offset, groups });
            }
            self.pipelines.launch(&self.device, &group, &open);
        })?;
        // The numbers are overwritten by the next call.
        self.device.wait()
    }
}

/// Tokens in pieces of at most this size, in the order of a loop over them.
fn pieces(tokens: Range<usize>, size: usize, order: Order) -> Vec<Range<usize>> {
    let end = tokens.end;
    let mut all: Vec<_> =
        tokens.step_by(size.max(1)).map(|first| first..first.saturating_add(size).min(end)).collect();
    match order {
        Order::Ascending => {}
        Order::Descending => all.reverse(),
    }
    all
}

/// Runs a compiled layer on a problem bound in float32: one task per stream and head.
///
/// # Errors
/// As [`Compiled::run`]; E0402 where memory does not suffice; E0901 where the program and the problem do not
/// belong together.
pub fn execute(
    compiled: &Compiled,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    miras_tasks::execute(&compiled.program, rule, bound, |tasks| compiled.run(tasks))
}
