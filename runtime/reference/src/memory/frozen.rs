//! Inside a chunk whose gradients are frozen (docs/mathematics.md).

use super::{Carry, Memory};
use crate::inputs::Desk;
use crate::interpret::Env;
use crate::ops::Ops;
use crate::plan::{Inside, Maps};
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_host::Remembered;

/// A chunk whose gradients are frozen.
pub(crate) struct Frozen {
    /// W_0.
    pub weights: Vec<Id>,
    /// The scale at the chunk's start, for weights read by one.
    pub scales: Vec<Option<Id>>,
}

impl Memory<'_> {
    /// W_0 and the frozen scales, with the parameters of the token at hand.
    pub fn freeze(&self, desk: &mut Desk<'_>, env: &Env<Id>, anchor: &[Id]) -> Made<Frozen> {
        let weights = self.values(desk, env, anchor)?;
        let mut scales = Vec::new();
        for (maps, theta) in self.weights.maps.iter().zip(anchor) {
            scales.push(match &maps.inside {
                Inside::FrozenScale(scale) => {
                    let mut env = env.clone();
                    env.bind(maps.rule.carried, *theta);
                    let scale = scale.run_one(self.scope, &mut desk.tape, &env)?;
                    Some(one_at_zero(desk, *theta, scale)?)
                }
                Inside::Identity
                | Inside::Mapped
                | Inside::Threshold { .. }
                | Inside::ProjectAtEnd
                | Inside::TokenByToken => None,
            });
        }
        Ok(Frozen { weights, scales })
    }

    /// The same as the stream remembers them.
    pub fn unfreeze(&self, carry: &Carry<Id>) -> Frozen {
        let scale = |(maps, scale): (&Maps<'_>, &Id)| match &maps.inside {
            Inside::FrozenScale(_) => Some(*scale),
            Inside::Identity
            | Inside::Mapped
            | Inside::Threshold { .. }
            | Inside::ProjectAtEnd
            | Inside::TokenByToken => None,
        };
        let scales = self.weights.maps.iter().zip(&carry.scale).map(scale).collect();
        let parts = (0..carry.start.len()).map(|n| self.plan.rule.remembered(n));
        let held = parts.map(|parts| parts.contains(&Remembered::Start));
        let starts = held.zip(carry.start.iter().zip(&carry.anchor));
        let weights = starts.map(|(held, (start, anchor))| if held { *start } else { *anchor }).collect();
        Frozen { weights, scales }
    }

    /// The frozen scales as they are remembered; 0 where a weight has none.
    pub fn scales(&self, desk: &mut Desk<'_>, frozen: &Frozen) -> Vec<Id> {
        frozen.scales.iter().map(|scale| scale.unwrap_or_else(|| desk.tape.num(0.0))).collect()
    }

    /// W_t inside the chunk.
    pub fn inside(
        &self,
        desk: &mut Desk<'_>,
        env: &Env<Id>,
        carry: &Carry<Id>,
        frozen: &Frozen,
    ) -> Made<Vec<Id>> {
        self.each(&carry.memory, |n, maps| {
            let theta = carry.memory[n];
            match &maps.inside {
                Inside::Identity | Inside::ProjectAtEnd => Ok(theta),
                Inside::Mapped | Inside::TokenByToken => self.value(desk, env, maps, n, theta),
                Inside::Threshold { .. } => soft(desk, theta, carry.threshold[n]),
                Inside::FrozenScale(_) => match frozen.scales[n] {
                    Some(scale) => desk.tape.mul(&theta, &scale),
                    None => Err(Trouble::bug("a scale was not frozen")),
                },
            }
        })
    }

    /// What ends a step inside the chunk: nothing, unless the retention is followed token by token.
    pub fn finish_inside(&self, desk: &mut Desk<'_>, env: &Env<Id>, carried: &[Id]) -> Made<Vec<Id>> {
        self.each(carried, |n, maps| match &maps.inside {
            Inside::TokenByToken => self.finish_one(desk, env, maps, n, carried[n]),
            Inside::Identity
            | Inside::Mapped
            | Inside::Threshold { .. }
            | Inside::FrozenScale(_)
            | Inside::ProjectAtEnd => Ok(carried[n]),
        })
    }

    /// Gamma' = keep * Gamma + threshold.
    pub fn raise_threshold(&self, desk: &mut Desk<'_>, env: &Env<Id>, old: &[Id]) -> Made<Vec<Id>> {
        self.each(old, |n, maps| {
            let Inside::Threshold { keep, threshold } = &maps.inside else { return Ok(old[n]) };
            let keep = keep.run_one(self.scope, &mut desk.tape, env)?;
            let threshold = threshold.run_one(self.scope, &mut desk.tape, env)?;
            let kept = desk.tape.mul(&keep, &old[n])?;
            desk.tape.add(&kept, &threshold)
        })
    }

    /// The carried values at the end of the chunk.
    pub fn close(&self, desk: &mut Desk<'_>, env: &Env<Id>, carry: &Carry<Id>) -> Made<Vec<Id>> {
        self.each(&carry.memory, |n, maps| {
            let theta = carry.memory[n];
            match &maps.inside {
                Inside::Threshold { .. } => soft(desk, theta, carry.threshold[n]),
                Inside::TokenByToken => Ok(theta),
                Inside::Identity | Inside::Mapped | Inside::FrozenScale(_) | Inside::ProjectAtEnd => {
                    self.finish_one(desk, env, maps, n, theta)
                }
            }
        })
    }
}

/// sign(z) max(|z| - gamma, 0).
fn soft(desk: &mut Desk<'_>, z: Id, gamma: Id) -> Made<Id> {
    let tape = &mut desk.tape;
    let zero = tape.num(0.0);
    let (sign, size) = (tape.fn1(Fn1::Sign, &z)?, tape.fn1(Fn1::Abs, &z)?);
    let above = tape.sub(&size, &gamma)?;
    let rest = tape.fn2(Fn2::Max, &above, &zero)?;
    tape.mul(&sign, &rest)
}

/// A scale, or 1 where the dual is exactly 0.
fn one_at_zero(desk: &mut Desk<'_>, theta: Id, scale: Id) -> Made<Id> {
    let tape = &mut desk.tape;
    let (zero, one) = (tape.num(0.0), tape.num(1.0));
    let size = tape.fn1(Fn1::Abs, &theta)?;
    let total = tape.sum(&size)?;
    let nothing = tape.compare(Cmp::Eq, &total, &zero)?;
    tape.select(&nothing, &one, &scale)
}
