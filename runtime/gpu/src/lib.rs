//! # miras-gpu: kernel programs run as compute shaders
//!
//! **Purpose.** Chooses an adapter and says why ([`choose`]), opens and checks a device ([`Device`]), turns a verified
//! kernel program into pipelines once ([`Compiled`]) and runs tasks of it, one workgroup per (stream, head).
//!
//! **Takes** a verified program and, per task, the arrays it is given and those it shall write. **Gives** the
//! written arrays.
//!
//! **May touch** wgpu. **Must not** know any named rule or read files.
//!
//! **Invariants.** By default a device is asked for WebGPU's default limits and nothing more. Whatever does not fit
//! is cut into several launches or refused with both numbers; nothing is left out silently. State and scratch
//! stay on the device from the first launch to the last. No invocation makes more turns of loops than drivers
//! are known to allow. Without tokens nothing reaches the device. A lost device and missing memory are
//! diagnostics, never panics.

mod adapter;
mod arena;
mod batch;
mod device;
mod fault;
mod pipeline;
mod run;
mod startup;
mod transfer;
mod window;

pub use adapter::{Adapter, Choice, adapters, choose};
pub use device::{Ask, Device};
pub use miras_emit_wgsl::Structure;
pub use miras_tasks::{Buffer, Task};
pub use run::{Compiled, execute, structure};
