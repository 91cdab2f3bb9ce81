//! # miras-cpu: kernel programs compiled and run on this machine
//!
//! **Purpose.** Turns a verified kernel program into machine code once ([`Compiled`]) and runs tasks of it,
//! one per (stream, head), in parallel.
//!
//! **Takes** a verified program and, per task, the arrays it is given and those it shall write. **Gives** the
//! written arrays.
//!
//! **May touch** Cranelift's JIT, threads (rayon's current pool), `pulp`. **Must not** know any named
//! rule or read files.
//!
//! **Invariants.** Results do not depend on the number of threads, nor on which other tasks run. A task
//! allocates nothing; its scratch arrays come from an arena that a thread reuses. `unsafe` is confined to the
//! call of compiled code (`code`), the functions compiled code calls (`product`, `slices`), each with the
//! promise it rests on.

mod arena;
mod code;
mod product;
pub mod slices;
mod task;

pub use code::listing;
pub use miras_tasks::{Buffer, Task};

use arena::{Arena, Layout};
use code::Code;
use miras_base::Diagnostic;
use miras_host as host;
use miras_kernel::{Program, Verified};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Runs a compiled layer on a problem bound in float32 (docs/guide.md): `o` [B, H, T, dv], `state.*` [N, H, ...]
/// and the integers that belong to them.
///
/// # Errors
/// E0402 where memory does not suffice; E0901 where the program and the problem do not belong together.
pub fn execute(
    compiled: &Compiled,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    miras_tasks::execute(compiled.program(), rule, bound, |tasks| compiled.run(tasks))
}

/// A program as machine code, with room for its scratch arrays.
pub struct Compiled {
    program: Verified<Program>,
    code: Code,
    layout: Layout,
    arenas: Mutex<Vec<Arena>>,
}

impl miras_tasks::Runs for Compiled {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic> {
        Compiled::run(self, tasks)
    }

    fn at_a_time(&self) -> usize {
        rayon::current_num_threads()
    }
}

impl Compiled {
    /// Compiles the program for this machine: milliseconds for the programs of ordinary layers.
    ///
    /// # Errors
    /// E0402 where the program or its scratch arrays are too large; E0602 where the machine's instruction set
    /// cannot be compiled for; E0901 where Cranelift refuses what was emitted.
    pub fn new(program: &Verified<Program>) -> Result<Compiled, Diagnostic> {
        let layout = Layout::new(program)?;
        let code = Code::new(program)?;
        Ok(Compiled { program: program.clone(), code, layout, arenas: Mutex::default() })
    }

    /// The program it was compiled from.
    pub fn program(&self) -> &Verified<Program> {
        &self.program
    }

    /// Runs every task, in parallel on rayon's current pool.
    ///
    /// # Errors
    /// E0901 where a task's arrays do not fit the program (before anything is run); E0402 where there is no
    /// memory for the scratch arrays.
    pub fn run(&self, tasks: &mut [Task<'_>]) -> Result<(), Diagnostic> {
        for task in tasks.iter() {
            task::check(task, &self.program)?;
        }
        self.provide(tasks.len().min(rayon::current_num_threads()))?;
        tasks.par_iter_mut().try_for_each(|task| self.run_one(task))
    }

    fn run_one(&self, task: &mut Task<'_>) -> Result<(), Diagnostic> {
        let mut arena = match self.arenas().pop() {
            Some(arena) => arena,
            None => Arena::new(&self.layout)?,
        };
        let mut bound = task::bind(task, &self.program, &self.layout, &mut arena)?;
        self.code.call(&mut bound);
        self.arenas().push(arena);
        Ok(())
    }

    /// Makes sure that so many arenas are there.
    fn provide(&self, count: usize) -> Result<(), Diagnostic> {
        let mut arenas = self.arenas();
        while arenas.len() < count {
            arenas.push(Arena::new(&self.layout)?);
        }
        Ok(())
    }

    fn arenas(&self) -> std::sync::MutexGuard<'_, Vec<Arena>> {
        // Arenas hold nothing between tasks, so one left by a panicking thread is as good as any.
        self.arenas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
