//! # miras-explain: a plan told to people
//!
//! **Purpose.** Show what a layer is and does: the four choices, the data it needs, every step of the
//! derivation, the class with its certificate, the schedule, what a stream carries and what a token costs.
//!
//! **Takes** a [`schedule::Plan`](miras_schedule::Plan). **Gives** text for a terminal of 100 columns
//! ([`text`]) or a LaTeX document ([`latex`]).
//! **May touch** base, term, spec, rule, schedule. **Must not** compute anything: all it shows is in the plan.
//!
//! **Invariants.** Formulas are printed from the very terms that are lowered and run; nothing about a rule is
//! written here by hand.

mod facts;
mod formula;
mod latex;
mod text;
mod wrap;

pub use latex::latex;
pub use text::text;
