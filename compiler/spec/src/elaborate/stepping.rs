//! A step as the later rooms read it: retention before a single repeated step, and no point that waits for
//! a state.

use super::Builder;
use crate::layer::{Step, Weight};
use miras_base::Diagnostic;
use miras_term::{Mismatch, TermId, Terms, VarId};
use std::collections::HashMap;

impl Builder<'_> {
    /// Rewrites a step; `once` says that it is one step of an algorithm that asks for repeated steps.
    ///
    /// Repeated steps come after one retention with u = 0. Where there is a single one, everything it reads of
    /// the weights is what retention leaves of them. Points are known before states: a new state in a point
    /// is written out.
    pub(super) fn settled(&mut self, mut step: Step, once: bool) -> Result<Step, Box<Diagnostic>> {
        let weights = self.weights.clone();
        let settle = |terms: &mut Terms, step: &mut Step| {
            if once {
                after_retention(terms, step, &weights)?;
            }
            without_new_states(terms, step)
        };
        match settle(&mut self.terms, &mut step) {
            Ok(()) => Ok(step),
            Err(_) => Err(Box::new(Diagnostic::bug("a step has other shapes than its weights"))),
        }
    }
}

fn after_retention(terms: &mut Terms, step: &mut Step, weights: &[Weight]) -> Result<(), Mismatch> {
    let kept = weights.iter().zip(&step.retained).map(|(w, r)| (w.var, terms.use_var(*r)));
    let kept: HashMap<VarId, TermId> = kept.collect();
    for point in &mut step.points {
        point.at = terms.substitute(&point.at, &kept)?;
    }
    for state in &mut step.states {
        state.next = terms.substitute_one(state.next, &kept)?;
    }
    step.direction = terms.substitute(&step.direction, &kept)?;
    Ok(())
}

fn without_new_states(terms: &mut Terms, step: &mut Step) -> Result<(), Mismatch> {
    let mut known = HashMap::new();
    for state in &step.states {
        let next = terms.substitute_one(state.next, &known)?;
        known.insert(state.new, next);
    }
    for point in &mut step.points {
        point.at = terms.substitute(&point.at, &known)?;
    }
    Ok(())
}
