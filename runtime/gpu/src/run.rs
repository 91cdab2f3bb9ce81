//! A program on a device: uploaded batch by batch, launched window by window, read back.

use crate::batch::{Batch, batches, uniforms};
use crate::device::Device;
use crate::fault;
use crate::pipeline::{Buffers, Pipelines};
use crate::transfer::bytes;
use crate::window::{Launch, launches};
use miras_base::Diagnostic;
use miras_emit_wgsl::{Module, emit};
use miras_host as host;
use miras_kernel::{Program, Verified};
use miras_tasks::Task;
use std::sync::Arc;
use wgpu::BufferUsages;

/// Launches whose numbers are uploaded together.
const AT_ONCE: usize = 1024;

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

impl Compiled {
    /// Compiles the program for a device, or finds it compiled.
    ///
    /// # Errors
    /// E0402 where the program is too large; E0603 where the device is lost or its compiler fails; E0901 where
    /// naga or wgpu refuse what was emitted.
    pub fn new(device: &Arc<Device>, program: &Verified<Program>) -> Result<Compiled, Diagnostic> {
        let module = emit(program)?;
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
        for batch in batches(&self.device, &self.program, &self.module.layout, tasks)? {
            let arena = self.batch(&batch, tasks)?;
            batch.take(&self.module.layout, &arena, tasks)?;
        }
        Ok(())
    }

    /// Runs a batch and gives the results at the beginning of its arena.
    fn batch(&self, batch: &Batch, tasks: &[Task<'_>]) -> Result<Vec<f32>, Diagnostic> {
        let launches = launches(&self.module, batch.longest, self.device.turns)?;
        let slot = self.slot()?;
        let given = batch.given(&self.module.layout, tasks)?;
        let table = batch.table(tasks)?;
        let results = bytes(batch.arenas.results);
        let (buffers, staging) = self.device.guarded("making buffers", || {
            let slots = launches.len().clamp(1, AT_ONCE) as u64;
            let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
            let buffers = Buffers {
                given: self.device.buffer("given", bytes(given.len()), storage),
                work: self.device.buffer("work", bytes(batch.arenas.work), storage | BufferUsages::COPY_SRC),
                run: self.device.buffer("run", slot * slots, BufferUsages::UNIFORM | BufferUsages::COPY_DST),
                tasks: self.device.buffer("tasks", bytes(table.len()), storage),
            };
            (buffers, self.device.buffer("results", results, BufferUsages::MAP_READ | BufferUsages::COPY_DST))
        })?;
        self.device.guarded("uploading", || {
            self.device.queue.write_buffer(&buffers.given, 0, bytemuck::cast_slice(&given));
            self.device.queue.write_buffer(&buffers.tasks, 0, bytemuck::cast_slice(&table));
        })?;
        for some in launches.chunks(AT_ONCE) {
            self.launch(batch, some, &buffers, slot)?;
        }
        let words = self.device.read(&buffers.work, &staging, batch.arenas.results)?;
        Ok(words.into_iter().map(f32::from_bits).collect())
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
            numbers.extend(uniforms(batch, &self.module, x, launch.turns)?);
            let end = numbers.len().next_multiple_of((slot / 4) as usize);
            numbers.resize(end, 0_u32);
        }
        self.device.guarded("launching", || {
            self.device.queue.write_buffer(&buffers.run, 0, bytemuck::cast_slice(&numbers));
            let group = self.pipelines.bind(&self.device, buffers, slot);
            for (at, launch) in launches.iter().enumerate() {
                // AT_ONCE slots of at most 64 KiB, so 32 bits suffice.
                self.pipelines.launch(&self.device, launch.stage, &group, at as u32 * slot as u32, (x, y));
            }
        })?;
        // The numbers are overwritten by the next call.
        self.device.wait()
    }
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
