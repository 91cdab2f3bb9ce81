//! Chunks whose gradients are computed at once, and whose tokens are retained and read one after the other.

use super::block::Steps;
use super::{Body, Build};
use crate::ir::{BlockId, Op, Size, ValueId};
use crate::lower::Failure;
use crate::lower::frozen::Chunk;
use crate::lower::token::{Given, Token};
use miras_base::scalar::Cmp;
use miras_rule::Inside;
use std::collections::HashMap;

impl Build<'_> {
    pub(super) fn gradients(&mut self, body: &Body) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let (weights, scales) = self.starts(body)?;
        let mut gradients = Vec::new();
        for body in self.each_step(body) {
            gradients.push(self.gradients_at(&body, &weights)?);
        }
        let (rule, step, from) = (self.rule, self.step, self.from);
        let shapes: Vec<_> = rule.layer.memory.weights.iter().map(|w| w.shape.clone()).collect();
        let mut zeros = Vec::new();
        for (retained, shape) in rule.retention.iter().zip(&shapes) {
            zeros.push(match retained.inside {
                Inside::Threshold(_) => {
                    let axes = self.shape_axes(shape)?;
                    let mut at = self.at(body.block, HashMap::new());
                    let zero = at.number(0.0);
                    Some(at.spread(zero, &axes))
                }
                Inside::Identity
                | Inside::Mapped
                | Inside::FrozenScale(_)
                | Inside::ProjectAtEnd
                | Inside::TokenByToken => None,
            });
        }
        let mut at = self.at(body.block, HashMap::new());
        let mut steps = Steps::begin(&mut at, from);
        let vars = body.vars.iter().map(|(v, value)| (*v, steps.slice(&mut at, *value))).collect();
        let mut slice = |v: ValueId| steps.slice(&mut at, v);
        let mut of_point = |given: Vec<Given>| given.into_iter().map(|g| sliced(g, &mut slice)).collect();
        let given =
            (gradients.into_iter()).map(|of_step| of_step.into_iter().map(&mut of_point).collect()).collect();
        let repeated = body.repeated.iter().map(|(v, value)| (*v, slice(*value))).collect();
        let mut carry = |first: ValueId, name: &str| steps.carry(&mut at, first, name);
        let before: Vec<(ValueId, usize)> = body.before.iter().map(|v| carry(*v, "carried")).collect();
        let thresholds: Vec<Option<(ValueId, usize)>> =
            zeros.iter().map(|z| z.map(|z| carry(z, "Gamma"))).collect();
        let block = steps.block();
        let closes = self.last_step(block);
        let count = rule.retention.len();
        let held = |l: usize| rule.retention[l].value.map(|_| weights[l]);
        let mut token = Token {
            rule,
            step,
            carried: before[..count].iter().map(|b| b.0).collect(),
            states: before[count..].iter().map(|b| b.0).collect(),
            primal: vec![None; count],
            chunk: Some(Chunk {
                closes,
                fresh: None,
                anchor: body.before[..count].to_vec(),
                threshold: thresholds.iter().map(|t| t.map(|t| t.0)).collect(),
                start_weight: (0..count).map(held).collect(),
                scale: scales,
            }),
            repeats: self.repeat.map(|axis| (axis, repeated)),
            given: Some(given),
            at: self.at(block, vars),
        };
        let answer = token.run()?;
        let after = token.carried.iter().chain(&token.states).copied().collect::<Vec<_>>();
        let raised = token.chunk.as_ref().map(|c| c.threshold.clone()).unwrap_or_default();
        for ((_, carry), value) in before.iter().zip(&after) {
            steps.becomes(*carry, *value);
        }
        for (carry, value) in thresholds.iter().zip(raised) {
            if let (Some((_, carry)), Some(value)) = (carry, value) {
                steps.becomes(*carry, value);
            }
        }
        steps.stack(answer);
        let mut at = self.at(block, HashMap::new());
        let (finals, stacks) = steps.end(&mut at);
        Ok((stacks[0], finals[..after.len()].to_vec()))
    }

    /// 1 at the chunk's last token, else 0.
    fn last_step(&mut self, block: BlockId) -> ValueId {
        let from = self.from;
        let mut at = self.at(block, HashMap::new());
        let Size::Fixed(n) = at.graph.axis(from).size else { return at.number(0.0) };
        let (step, last) = (at.add(Op::Step(from)), at.number((n - 1) as f64));
        let closes = at.add(Op::Compare(Cmp::Eq, step, last));
        let (one, zero) = (at.number(1.0), at.number(0.0));
        at.add(Op::Select(closes, one, zero))
    }
}

fn sliced(given: Given, slice: &mut impl FnMut(ValueId) -> ValueId) -> Given {
    Given {
        products: given.products.iter().map(|(a, b)| (slice(*a), slice(*b))).collect(),
        rest: given.rest.map(slice),
    }
}
