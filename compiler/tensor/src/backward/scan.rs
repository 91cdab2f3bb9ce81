//! A scan gone through backwards: a scan the other way round, whose body performs a step once more and pulls
//! it back.

use super::build::Build;
use super::copy::{Map, copy};
use super::reverse::Reverse;
use crate::ir::{AxisId, BlockId, Carry, Op, Order, Scan, ScanId, Slice, ValueId};
use miras_base::Diagnostic;

/// What a scan is pulled back from. All values lie in the block in which it is pulled back.
pub(super) struct Seeds {
    /// For each carry its value before every step, stacked along the scan's axis.
    pub tapes: Vec<ValueId>,
    /// Cotangents of the final carries; None: 0.
    pub finals: Vec<Option<ValueId>>,
    /// Cotangents of the stacks; None: 0.
    pub stacked: Vec<Option<ValueId>>,
}

/// What comes out: cotangents, in the same block.
pub(super) struct Pulled {
    /// Of the carries before the first step, with all their axes.
    pub firsts: Vec<ValueId>,
    /// Of what is sliced, along the scan's axis.
    pub wholes: Vec<ValueId>,
    /// Of values around the scan that its body uses: the value, and its cotangent summed over the steps.
    pub captured: Vec<(ValueId, ValueId)>,
}

impl Reverse<'_> {
    /// Pulls back a scan inside a step, if anything depends on it. Its copy has written its carries down.
    pub(super) fn scan(&mut self, id: ScanId) -> Result<(), Diagnostic> {
        let scan = self.source.scan(id).clone();
        let mut finals = vec![None; scan.carries.len()];
        let mut stacked = vec![None; scan.stacked.len()];
        for at in (0..self.source.values.len() as u32).map(ValueId) {
            match self.source.value(at).op {
                Op::Final(s, i) if s == id => finals[i] = self.cotangents.remove(&at),
                Op::Stacked(s, i) if s == id => stacked[i] = self.cotangents.remove(&at),
                _ => {}
            }
        }
        if finals.iter().chain(&stacked).all(Option::is_none) {
            return Ok(());
        }
        // Around its copy stand the stacks.
        let tapes = scan.carries.iter().map(|c| self.primal(c.before)).collect::<Result<_, _>>()?;
        let pulled = self.pull_scan(&scan, &Seeds { tapes, finals, stacked })?;
        for (carry, part) in scan.carries.iter().zip(pulled.firsts) {
            self.give(carry.first, part);
        }
        for (slice, part) in scan.slices.iter().zip(pulled.wholes) {
            self.give(slice.whole, part);
        }
        for (value, part) in pulled.captured {
            self.give(value, part);
        }
        Ok(())
    }

    /// Pulls back a scan whose carries are written down.
    pub(super) fn pull_scan(&mut self, scan: &Scan, seeds: &Seeds) -> Result<Pulled, Diagnostic> {
        let mut map = self.outside(scan);
        let body = self.target.add_block(self.into);
        let befores = self.given(body, scan.carries.iter().map(|c| c.before), &mut map);
        let inputs = self.given(body, scan.slices.iter().map(|s| s.slice), &mut map);
        let mut slices = self.sliced(scan, inputs)?;
        slices.extend(
            seeds.tapes.iter().zip(&befores).map(|(whole, slice)| Slice { whole: *whole, slice: *slice }),
        );
        let stacked = self.seeds(body, scan, seeds, &mut slices);
        let coming: Vec<ValueId> =
            scan.carries.iter().map(|c| self.parameter(body, c.before, "cotangent of ")).collect();
        let roots: Vec<ValueId> =
            scan.carries.iter().map(|c| c.after).chain(scan.stacked.iter().copied()).collect();
        copy(self.source, &roots, scan.body, self.target, body, &mut map)?;

        let mut inner = Reverse {
            source: self.source,
            target: &mut *self.target,
            into: body,
            map: &mut map,
            cotangents: Default::default(),
        };
        for (carry, cotangent) in scan.carries.iter().zip(&coming) {
            inner.give(carry.after, *cotangent);
        }
        for (value, cotangent) in scan.stacked.iter().zip(stacked) {
            if let Some(cotangent) = cotangent {
                inner.give(*value, cotangent);
            }
        }
        inner.block(scan.body)?;
        let mut found = inner.cotangents;

        let mut carries = Vec::new();
        for ((carry, before), seed) in scan.carries.iter().zip(coming).zip(&seeds.finals) {
            let axes = self.axes(carry.before);
            let first = self.whole(self.into, *seed, &axes);
            let after = self.whole(body, found.remove(&carry.before), &axes);
            carries.push(Carry { first, before, after });
        }
        let stacked = (scan.slices.iter())
            .map(|s| found.remove(&s.slice).unwrap_or_else(|| self.zero(body)))
            .collect::<Vec<_>>();
        let captured: Vec<ValueId> = found.keys().copied().collect();
        for (value, cotangent) in found {
            let (axes, before) = (self.axes(value), self.parameter(body, value, "gradient of "));
            let sum = Build { graph: self.target, block: body }.sum(before, cotangent);
            let first = self.whole(self.into, None, &axes);
            carries.push(Carry { first, before, after: sum });
        }
        let order = match scan.order {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        };
        let back = Scan { axis: scan.axis, order, body, carries, slices, stacked };
        let (mut firsts, wholes) = self.target.add_scan(self.into, back);
        let sums = firsts.split_off(scan.carries.len());
        Ok(Pulled { firsts, wholes, captured: captured.into_iter().zip(sums).collect() })
    }

    /// What is known around a scan: its steps are performed again, whatever stands for their values elsewhere.
    fn outside(&self, scan: &Scan) -> Map {
        let inside = |id: &ValueId| self.source.within(self.source.value(*id).block, scan.body);
        self.map.iter().filter(|(id, _)| !inside(id)).map(|(a, b)| (*a, *b)).collect()
    }

    /// Parameters of a block that stand for values of the source.
    fn given(&mut self, body: BlockId, of: impl Iterator<Item = ValueId>, map: &mut Map) -> Vec<ValueId> {
        of.map(|id| {
            let copy = self.parameter(body, id, "");
            map.insert(id, copy);
            copy
        })
        .collect()
    }

    /// A parameter with the axes of a value of the source.
    fn parameter(&mut self, body: BlockId, like: ValueId, prefix: &str) -> ValueId {
        let value = self.source.value(like);
        let name = format!("{prefix}{}", value.name.as_deref().unwrap_or("x"));
        self.target.given(body, value.axes.clone(), name)
    }

    fn sliced(&self, scan: &Scan, inner: Vec<ValueId>) -> Result<Vec<Slice>, Diagnostic> {
        let slice = |(s, slice): (&Slice, ValueId)| Ok(Slice { whole: self.primal(s.whole)?, slice });
        scan.slices.iter().zip(inner).map(slice).collect()
    }

    /// The cotangents of the stacks at the step at hand.
    fn seeds(
        &mut self,
        body: BlockId,
        scan: &Scan,
        seeds: &Seeds,
        slices: &mut Vec<Slice>,
    ) -> Vec<Option<ValueId>> {
        let mut at_step = |whole: ValueId| {
            let axes: Vec<AxisId> = self.target.value(whole).axes.clone();
            if !axes.contains(&scan.axis) {
                return whole;
            }
            let inner = axes.into_iter().filter(|a| *a != scan.axis).collect();
            let slice = self.target.given(body, inner, "cotangent of what is handed out");
            slices.push(Slice { whole, slice });
            slice
        };
        seeds.stacked.iter().map(|s| s.map(&mut at_step)).collect()
    }

    /// A cotangent with all these axes; zeros where there is none.
    pub(super) fn whole(&mut self, block: BlockId, cotangent: Option<ValueId>, axes: &[AxisId]) -> ValueId {
        let cotangent = cotangent.unwrap_or_else(|| self.zero(block));
        Build { graph: self.target, block }.whole(cotangent, axes)
    }

    pub(super) fn zero(&mut self, block: BlockId) -> ValueId {
        self.target.add(block, Op::Number(0.0))
    }
}
