//! # miras-tensor: from a plan to a graph over named axes
//!
//! **Purpose.** What one task (one head of one stream) computes, as a static single assignment graph of
//! few operations over named axes, with [`ir::Scan`] for everything that happens in sequence. Reverse mode on it ([`backward`](mod@backward)).
//!
//! **Takes** a [`schedule::Plan`](miras_schedule::Plan) and the sizes of a run. **Gives** a verified
//! [`Graph`]. **May touch** base, term, spec, rule, schedule. **Must not** know workgroups, buffers or
//! machine code.
//!
//! **Invariants.** Operands are defined before their users, in the same block or one around it.
//! Broadcasting is by axis name; a value has each axis at most once. Only the axis of a stream's tokens
//! has no size before a run.

pub mod backward;
pub mod eval;
pub mod ir;
mod live;
pub mod lower;
pub mod print;
pub mod verify;

pub use backward::{Backward, Tape, backward};
pub use ir::{Graph, ValueId};
pub use lower::{
    CLOSES, FRESH, HistoryBack, PAST_KEYS, PAST_VALUES, Sizes, Start, by_token, history_back, lower,
    lower_blocks,
};
pub use verify::{Verified, verify};
