//! The derivation told: steps and notes, generated from the objects of the rule.

mod formula;
mod notes;
pub(crate) mod shared;
mod steps;

pub(crate) use formula::formula;
pub(crate) use notes::notes;
pub(crate) use steps::{SlopeFrom, steps};
