//! # miras-tasks: bound problems as tasks of a kernel program
//!
//! **Purpose.** Cuts the tensors of a bound problem into the arrays of one task per (stream, head), lets a device
//! run the tasks, and gathers the results ([`execute`]); in pieces, where whole blocks of tokens have a program of
//! their own ([`execute_pieces`]). With gradients, takes every task forwards and back again, stretch by stretch
//! ([`gradients`], [`gradients_in_pieces`], [`history_gradients`]).
//!
//! **Takes** programs, a bound problem and a device's way of running tasks. **Gives** the results by name.
//!
//! **May touch** host, schedule, tensor, kernel. **Must not** know a device, nor any named rule.
//!
//! **Invariants.** What is there already is lent, not copied. Parts that are written do not meet. Sums over streams are
//! taken in the order of the streams.

mod execute;
mod gradient;
mod task;

pub use execute::{Pieces, execute, execute_pieces, has_blocks, leaves_rest};
pub use gradient::{HistoryPrograms, Programs, Runs, gradients, gradients_in_pieces, history_gradients};
pub use task::{Buffer, Task};
