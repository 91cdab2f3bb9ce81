//! Steps of a derivation, written from the terms themselves.

use super::problem::Problem;
use super::refuse::Tried;
use crate::algebra::poly::Poly;
use crate::rule::{DerivationStep, Equation};
use miras_term::{Role, TermId};

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
        let slope = self.by_weights(slope)?;
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
        let assumed = match self.assumed.as_slice() {
            [] => String::new(),
            names => format!(" Not 0, since the objective divides by it: {}.", names.join(", ")),
        };
        Ok(step("stationarity", vec![(left, slope)], why + &assumed))
    }

    /// A slope with the weights after the step first, then those before it, then the rest, each factored.
    fn by_weights(&mut self, slope: &Poly) -> Tried<TermId> {
        let (after, rest) = self.with_and_without(slope, self.unknown);
        let (before, rest) = self.with_and_without(&rest, self.old);
        let mut sum: Option<TermId> = None;
        for part in [after, before, rest] {
            if part.is_zero() {
                continue;
            }
            let part = self.ring.write_factored(&part)?;
            sum = Some(match sum {
                None => part,
                Some(sum) => self.plus(sum, part)?,
            });
        }
        Ok(sum.unwrap_or_else(|| self.ring.terms.num(0.0)))
    }

    /// A variable that stands for an intermediate result in equations that are told.
    pub fn intermediate(&mut self, name: &str) -> TermId {
        let var = self.ring.terms.add_var(name, Role::Bound, self.shape.clone(), None);
        self.ring.terms.use_var(var)
    }

    /// The name of the weights before or after the step.
    pub fn name(&self, var: miras_term::VarId) -> String {
        self.ring.terms.var(var).name.clone()
    }
}
