//! Copies of values of one graph in another that has the same axes.

use crate::ir::{BlockId, Carry, Graph, Op, Scan, ScanId, Slice, ValueId};
use miras_base::Diagnostic;
use std::collections::{BTreeSet, HashMap};

/// Which value of the copy stands for a value of the original.
pub(crate) type Map = HashMap<ValueId, ValueId>;

/// Copies what `roots` need, out of `from` and into `into`; values that the map knows already are not copied again.
/// Roots and what they need lie in that block, inside it, or are known. What a scan carries before each step is stacked
/// by its copy, and that stack stands for it around the scan.
pub(crate) fn copy(
    source: &Graph,
    roots: &[ValueId],
    from: BlockId,
    target: &mut Graph,
    into: BlockId,
    map: &mut Map,
) -> Result<(), Diagnostic> {
    let needed = needed(source, roots, map);
    Copier { source, target, map, needed: &needed }.block(from, into)
}

/// Everything that the roots are computed from, scans with all that they carry.
fn needed(source: &Graph, roots: &[ValueId], known: &Map) -> BTreeSet<ValueId> {
    let mut needed = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(id) = open.pop() {
        if known.contains_key(&id) || !needed.insert(id) {
            continue;
        }
        open.extend(source.operands(id));
        if let Op::Final(scan, _) | Op::Stacked(scan, _) = source.value(id).op {
            let scan = source.scan(scan);
            open.extend(scan.carries.iter().flat_map(|c| [c.first, c.after]));
            open.extend(scan.slices.iter().map(|s| s.whole));
            open.extend(&scan.stacked);
        }
    }
    needed
}

struct Copier<'a> {
    source: &'a Graph,
    target: &'a mut Graph,
    map: &'a mut Map,
    needed: &'a BTreeSet<ValueId>,
}

impl Copier<'_> {
    fn block(&mut self, from: BlockId, into: BlockId) -> Result<(), Diagnostic> {
        for id in self.needed.iter().copied().filter(|i| self.source.value(*i).block == from) {
            if self.map.contains_key(&id) {
                continue;
            }
            match &self.source.value(id).op {
                Op::Final(scan, _) | Op::Stacked(scan, _) => self.scan(*scan, into)?,
                Op::Given => return Err(Diagnostic::bug(format!("%{} is given nowhere in a copy", id.0))),
                op => {
                    let op = remap(op, self.map)?;
                    let copy = self.target.add(into, op);
                    self.describe(id, copy);
                }
            }
        }
        Ok(())
    }

    /// Takes over the name and the equation, and notes the copy.
    fn describe(&mut self, id: ValueId, copy: ValueId) {
        let value = self.source.value(id);
        if let Some(name) = &value.name {
            self.target.set_name(copy, name);
        }
        if let Some(equation) = &value.equation {
            self.target.set_equation(copy, || equation.clone());
        }
        self.map.insert(id, copy);
    }

    fn scan(&mut self, id: ScanId, into: BlockId) -> Result<(), Diagnostic> {
        let scan = self.source.scan(id).clone();
        let body = self.target.add_block(into);
        for given in scan.carries.iter().map(|c| c.before).chain(scan.slices.iter().map(|s| s.slice)) {
            let value = self.source.value(given);
            let copy = self.target.given(body, value.axes.clone(), value.name.clone().unwrap_or_default());
            self.map.insert(given, copy);
        }
        self.block(scan.body, body)?;
        let of = |id: ValueId| known(self.map, id);
        let carry = |c: &Carry| Ok(Carry { first: of(c.first)?, before: of(c.before)?, after: of(c.after)? });
        let slice = |s: &Slice| Ok(Slice { whole: of(s.whole)?, slice: of(s.slice)? });
        let mut copied = Scan {
            axis: scan.axis,
            order: scan.order,
            body,
            carries: scan.carries.iter().map(carry).collect::<Result<_, Diagnostic>>()?,
            slices: scan.slices.iter().map(slice).collect::<Result<_, Diagnostic>>()?,
            stacked: scan.stacked.iter().map(|s| of(*s)).collect::<Result<_, _>>()?,
        };
        let tapes: Vec<usize> = (copied.carries.iter())
            .map(|c| {
                let known = copied.stacked.iter().position(|s| *s == c.before);
                known.unwrap_or_else(|| {
                    copied.stacked.push(c.before);
                    copied.stacked.len() - 1
                })
            })
            .collect();
        let (finals, stacks) = self.target.add_scan(into, copied);
        for (carry, tape) in scan.carries.iter().zip(tapes) {
            self.map.insert(carry.before, stacks[tape]);
        }
        for at in (0..self.source.values.len() as u32).map(ValueId) {
            match self.source.value(at).op {
                Op::Final(s, i) if s == id => self.map.insert(at, finals[i]),
                Op::Stacked(s, i) if s == id => self.map.insert(at, stacks[i]),
                _ => None,
            };
        }
        Ok(())
    }
}

/// The copy of a value.
pub(super) fn known(map: &Map, id: ValueId) -> Result<ValueId, Diagnostic> {
    map.get(&id).copied().ok_or_else(|| Diagnostic::bug(format!("%{} has no copy", id.0)))
}

/// The operation on the copies of its operands.
fn remap(op: &Op, map: &Map) -> Result<Op, Diagnostic> {
    let of = |id: &ValueId| known(map, *id);
    Ok(match op {
        Op::Given
        | Op::Number(_)
        | Op::Place(_)
        | Op::Kept
        | Op::Step(_)
        | Op::Index(_)
        | Op::Diagonal(..)
        | Op::Final(..)
        | Op::Stacked(..) => op.clone(),
        Op::Fn1(f, a) => Op::Fn1(*f, of(a)?),
        Op::Fn2(f, a, b) => Op::Fn2(*f, of(a)?, of(b)?),
        Op::Compare(c, a, b) => Op::Compare(*c, of(a)?, of(b)?),
        Op::Select(c, a, b) => Op::Select(of(c)?, of(a)?, of(b)?),
        Op::Einsum(a, b, over) => Op::Einsum(of(a)?, of(b)?, over.clone()),
        Op::Reduce(r, over, a) => Op::Reduce(*r, over.clone(), of(a)?),
        Op::Rename { value, from, to } => Op::Rename { value: of(value)?, from: *from, to: *to },
        Op::Spread(a, axes) => Op::Spread(of(a)?, axes.clone()),
        Op::At(a, axis, i) => Op::At(of(a)?, *axis, *i),
        Op::Stop(a) => Op::Stop(of(a)?),
    })
}
