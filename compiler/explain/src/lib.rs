//! # miras-explain: a plan told to people
//!
//! **Purpose.** Show what a layer is and does: the four choices, the data it needs, every step of the
//! derivation, the class with its certificate, the chunk in parallel form, the outer gradients' structure, what a
//! stream carries and what a token costs; and two layers side by side.
//!
//! **Takes** a [`schedule::Plan`](miras_schedule::Plan) and how the layer was [`Written`]. **Gives** a
//! [`Document`], and of it text for a terminal of 100 columns ([`text`]), a LaTeX document ([`latex`]), one HTML
//! page ([`html`]) or JSON ([`json`]); a [`Comparison`] in the same forms; charts as SVG ([`chart`]).
//! **May touch** base, term, spec, rule, schedule; serde_json. **Must not** decide anything about a rule: what it
//! shows is in the plan, or is asked of `rule` (the affine form of a step, linear coefficients).
//!
//! **Invariants.** Formulas are made from the very terms that are lowered and run; none is chosen by a name of the
//! library. Every form is made from the same document, every printed formula from the same tree.

pub mod chart;
mod compare;
mod document;
mod html;
mod json;
mod latex;
pub mod math;
mod text;
#[cfg(test)]
mod witness;
mod wrap;

pub use compare::Comparison;
pub use document::{Counted, Document, Measured, Written};
pub use html::html;
pub use json::{JSON_VERSION, json};
pub use latex::latex;
pub use text::text;

/// With a full stop.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', ':', ')']) { text.into() } else { format!("{text}.") }
}
