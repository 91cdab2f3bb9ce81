//! Steps of a derivation, written from the terms themselves.

use super::problem::Problem;
use super::refuse::Tried;
use crate::algebra::poly::Poly;
use crate::rule::{DerivationStep, Equation};
use miras_term::TermId;

/// Rows of the function table that a solution rests on, as the end of a sentence.
pub(super) fn with_rows(sentence: &str, rows: &[&'static str]) -> String {
    match rows {
        [] => format!("{sentence}."),
        rows => {
            let mut names: Vec<&str> = rows.to_vec();
            names.dedup();
            format!("{sentence}, by the function table's rows: {}.", names.join(", "))
        }
    }
}

/// A step of the retention's part of a derivation.
pub(super) fn step(title: &str, equations: Vec<(String, TermId)>, justification: String) -> DerivationStep {
    DerivationStep {
        choice: "retention",
        title: title.into(),
        equations: equations.into_iter().map(|(left, right)| Equation { left, right }).collect(),
        justification,
    }
}

impl Problem<'_> {
    /// What must hold at the weights after the step: the drive is the slope of the rest of the objective.
    pub fn stationarity(&mut self, slope: &Poly, multiplier: Option<&str>) -> Tried<DerivationStep> {
        let drive = self.ring.terms.var(self.drive).name.clone();
        let slope = self.ring.write_factored(slope)?;
        let (left, why) = match multiplier {
            None => (
                drive.clone(),
                format!("at the minimum the derivative of -<{drive}, W'> + local + global by W' is 0."),
            ),
            Some(zeta) => (
                format!("{drive} - {zeta}"),
                format!(
                    "at the minimum on the domain the derivative of -<{drive}, W'> + local + global by W' is one \
                     number in each slice, the multiplier {zeta} of its sum."
                ),
            ),
        };
        Ok(step("stationarity", vec![(left, slope)], why))
    }

    /// The name of the weights before or after the step.
    pub fn name(&self, var: miras_term::VarId) -> String {
        self.ring.terms.var(var).name.clone()
    }
}
