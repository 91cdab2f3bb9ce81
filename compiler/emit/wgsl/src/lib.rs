//! # miras-emit-wgsl: kernel programs as WGSL compute shaders
//!
//! **Purpose.** One verified [`kernel::Program`] becomes one WGSL module that a person can read: an entry
//! point for each stage of the program, an equation above each phase, the names of the specification.
//!
//! **Takes** a verified program. **Gives** a [`Module`]: the text, checked by naga; its [`Layout`] in two
//! arenas; its [`Stage`]s with the turns of loops that an invocation makes; [`translate`]d, SPIR-V, MSL, HLSL
//! and GLSL; and a [`plan`] that says how somebody else's program launches it.
//!
//! **May touch** naga. **Must not** open a device, nor know any named rule.
//!
//! **Invariants.** As one kernel ([`Structure`]), one workgroup of [`LANES`] invocations runs one task, but where tokens
//! have nothing to do with one another and each passes the whole past: there each has an invocation. As several launches,
//! nothing inside a launch waits for, or reads what is written by, another workgroup of it. Between two phases of which one
//! touches what the other writes there is a storage barrier, proven by a walk of its own (`fence`). Every
//! barrier is reached by all invocations of a workgroup or none: bounds of loops around it come from
//! constants, uniforms and read-only storage. No builtin of loose accuracy is used. The order of every sum is
//! that of its loops; where lanes share one, each takes every n-th number and the parts are added in the lanes' order.
//! At most 16 KiB of workgroup memory are used ([`MAX_WORKGROUP_MEMORY`]), which is counted.

mod apart;
mod check;
mod cost;
mod expr;
mod fence;
mod function;
mod grid;
mod lanes;
mod layout;
mod names;
mod nest;
pub mod plan;
mod shader;
mod size;
mod stage;
mod stmt;
mod structure;
mod text;
mod translate;

pub use check::MAX_WORKGROUP_MEMORY;
pub use cost::Cost;
pub use layout::{Block, Layout, Place, Rows};
pub use stage::{Each, Launches, Pass, Repeat, Stage, Turns};
pub use structure::Structure;
pub use translate::{File, Target, translate};

use miras_base::Diagnostic;
use miras_kernel as kernel;
use miras_kernel::Verified;

/// Invocations of a workgroup, all of which work on one task.
pub const LANES: u32 = 256;

/// The binding of the arena of given arrays: read-only storage, float32.
pub const GIVEN: u32 = 0;
/// The binding of the arena of written arrays: read-write storage, float32.
pub const WORK: u32 = 1;
/// The binding of the numbers of one launch: a uniform block of u32, the fields of [`Layout::uniforms`].
pub const RUN: u32 = 2;
/// The binding of the table of tasks: read-only storage, [`TASK_FIELDS`] for each task.
pub const TASKS: u32 = 3;

pub use layout::{FIXED_UNIFORMS, TASK_FIELDS};

/// A program as WGSL.
#[derive(Debug)]
pub struct Module {
    /// The program's name.
    pub name: String,
    /// The text.
    pub wgsl: String,
    /// Where arrays lie.
    pub layout: Layout,
    /// Entry points.
    pub stages: Vec<Stage>,
    /// What is launched, in this order, each finished before the next begins.
    pub passes: Vec<Pass>,
    /// How the program is shared out.
    pub structure: Structure,
    checked: check::Checked,
}

impl Module {
    /// Bytes of workgroup memory, of all entry points together: at most [`MAX_WORKGROUP_MEMORY`].
    pub fn workgroup_memory(&self) -> u32 {
        check::workgroup_memory(&self.checked.module)
    }
}

/// Emits a program in a structure; as one kernel where it has no other (no loop over tokens, or a past to be passed).
///
/// # Errors
/// E0402 where the text would be too long to be compiled; E0901 where naga refuses it, or where a phase could
/// read what another one is writing.
pub fn emit(program: &Verified<kernel::Program>, structure: Structure) -> Result<Module, Diagnostic> {
    size::check(program)?;
    let written = shader::write(program, structure)?;
    let checked = check::check(&program.name, &written.wgsl)?;
    Ok(Module {
        name: program.name.clone(),
        wgsl: written.wgsl,
        layout: written.layout,
        stages: written.stages,
        passes: written.passes,
        structure: written.structure,
        checked,
    })
}
