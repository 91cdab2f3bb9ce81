//! A block gone through backwards.

use super::build::Build;
use super::copy::{Map, known};
use super::rules;
use crate::ir::{AxisId, BlockId, Graph, Op, ScanId, ValueId};
use miras_base::Diagnostic;
use std::collections::BTreeMap;

/// Cotangents of values of `source`, collected in one block of `target`.
pub(crate) struct Reverse<'a> {
    pub source: &'a Graph,
    pub target: &'a mut Graph,
    /// The block of `target` in which cotangents are computed.
    pub into: BlockId,
    /// The values of `source` as they are computed again in `target`.
    pub map: &'a mut Map,
    /// By value of `source`: its cotangent, with some of its axes (it is the same along the others).
    pub cotangents: BTreeMap<ValueId, ValueId>,
}

impl Reverse<'_> {
    /// Goes through the values of a block from the last to the first. What remains are cotangents of values
    /// that are given, and of values of blocks around it.
    pub fn block(&mut self, block: BlockId) -> Result<(), Diagnostic> {
        let mut done: Vec<ScanId> = Vec::new();
        for id in (0..self.source.values.len() as u32).rev().map(ValueId) {
            if self.source.value(id).block != block {
                continue;
            }
            if let Op::Final(scan, _) | Op::Stacked(scan, _) = self.source.value(id).op {
                if !done.contains(&scan) {
                    done.push(scan);
                    self.scan(scan)?;
                }
                continue;
            }
            if matches!(self.source.value(id).op, Op::Given) {
                continue;
            }
            if let Some(cotangent) = self.cotangents.remove(&id) {
                rules::pull(self, id, cotangent)?;
            }
        }
        Ok(())
    }

    /// Adds to the cotangent of a value.
    pub fn give(&mut self, to: ValueId, part: ValueId) {
        if self.cuts(to) {
            return;
        }
        let sum = match self.cotangents.get(&to) {
            Some(before) => {
                let before = *before;
                self.build().sum(before, part)
            }
            None => part,
        };
        self.cotangents.insert(to, sum);
    }

    /// Whether no gradient passes into this value.
    pub fn cuts(&self, id: ValueId) -> bool {
        let value = self.source.value(id);
        match value.op {
            Op::Number(_)
            | Op::Place(_)
            | Op::Kept
            | Op::Step(_)
            | Op::Index(_)
            | Op::Diagonal(..)
            | Op::Stop(_)
            | Op::Compare(..) => true,
            Op::Given
            | Op::Fn1(..)
            | Op::Fn2(..)
            | Op::Select(..)
            | Op::Einsum(..)
            | Op::Reduce(..)
            | Op::Rename { .. }
            | Op::Spread(..)
            | Op::At(..)
            | Op::Final(..)
            | Op::Stacked(..) => value.truth,
        }
    }

    pub(super) fn build(&mut self) -> Build<'_> {
        Build { graph: self.target, block: self.into }
    }

    /// The value itself, computed again.
    pub fn primal(&self, id: ValueId) -> Result<ValueId, Diagnostic> {
        known(self.map, id)
    }

    /// Axes of a value of the source.
    pub fn axes(&self, id: ValueId) -> Vec<AxisId> {
        self.source.value(id).axes.clone()
    }
}
