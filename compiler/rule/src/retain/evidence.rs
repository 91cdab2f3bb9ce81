//! Evidence where the interval rules find no proof: whether a sum rises, from its slope at many points.

use super::problem::Problem;
use super::refuse::Tried;
use crate::algebra::Dice;
use crate::algebra::poly::Poly;
use crate::calculus::vector_jacobian;
use miras_base::DimEnv;
use miras_term::{Env, Tensor, TermId, VarId};
use std::sync::Arc;

/// Tensors of points that are looked at.
const DRAWS: usize = 60;

/// Rows and columns of each.
const SIZE: u64 = 5;

/// Falls of this part of the steepest rise are rounding.
const ROUNDING: f64 = 1e-9;

impl Problem<'_> {
    /// Whether the derivative of a sum by the unknown is nowhere negative at many points of the domain, drawn
    /// at several scales. It is no proof: derivations must say so.
    pub(super) fn seems_to_rise(&mut self, p: &Poly) -> Tried<bool> {
        if !self.ring.poly_uses(p, self.unknown) {
            return Ok(true);
        }
        let (term, shape) = (self.written(p)?, self.shape.clone());
        let one = self.ring.terms.fill(1.0, shape);
        let slope = vector_jacobian(self.ring.terms, &[(term, one)], &[self.unknown])?;
        Ok(slope.first().is_some_and(|slope| self.never_negative(*slope)))
    }

    fn never_negative(&self, slope: TermId) -> bool {
        let vars: Vec<VarId> = self.ring.terms.vars_of(&[slope]).into_iter().collect();
        let mut points = Dice(1);
        let (mut lowest, mut highest) = (f64::INFINITY, 0.0_f64);
        for draw in 0..DRAWS {
            let Some(values) = self.slopes(slope, &vars, &mut points, draw) else { return false };
            for value in values {
                if !value.is_finite() {
                    return false;
                }
                (lowest, highest) = (lowest.min(value), highest.max(value.abs()));
            }
        }
        lowest >= -ROUNDING * (1.0 + highest)
    }

    /// The slopes at one draw of all variables; None where they have no value.
    fn slopes(&self, slope: TermId, vars: &[VarId], points: &mut Dice, draw: usize) -> Option<Vec<f64>> {
        let dims = ["dk", "dv"].map(|name| (Arc::from(name), SIZE));
        let mut env = Env { dims: DimEnv::from(dims), heads: 4, layers: 2, ..Env::default() };
        env.head = draw as u64 % 4;
        for var in vars {
            let shape = self.ring.terms.sizes(&self.ring.terms.var(*var).shape, &env).ok()?;
            let bounds = self.ring.facts.of_var(*var);
            let data = (0..shape.iter().product()).map(|_| points.scattered(bounds)).collect();
            env.vars.insert(*var, Tensor { shape, data });
        }
        Some(self.ring.terms.eval_one(slope, &env).ok()?.data)
    }
}
