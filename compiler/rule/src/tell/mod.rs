//! The derivation told: steps and notes, generated from the objects of the rule.

mod notes;
mod steps;

pub(crate) use notes::notes;
pub(crate) use steps::{SlopeFrom, steps};
