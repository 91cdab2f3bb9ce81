//! The tape: every operation of a run with its result, so that it can be gone through backwards.

use crate::array::Array;
use crate::ops::{Arithmetic, Eager, Ops, Prim};
use crate::pull::pull;
use crate::trouble::{Made, Trouble};
use std::rc::Rc;

/// A value on a [`Tape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u32);

struct Node {
    /// None for constants and variables.
    prim: Option<Prim<Id>>,
    array: Rc<Array>,
    /// Whether a variable reaches it.
    live: bool,
}

/// Operations in the order in which they were performed; operands come before their users.
#[derive(Default)]
pub(crate) struct Tape {
    nodes: Vec<Node>,
    arithmetic: Arithmetic,
}

impl Ops for Tape {
    type Value = Id;

    fn apply(&mut self, prim: Prim<Id>) -> Made<Id> {
        let array = self.arithmetic.keep(prim.map(|id| self.node(*id).array.clone()).compute()?);
        let live = !matches!(prim, Prim::Stop(_) | Prim::Compare(..))
            && prim.operands().iter().any(|id| self.node(**id).live);
        self.push(Node { prim: Some(prim), array, live })
    }

    fn constant(&mut self, array: Rc<Array>) -> Id {
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(Node { prim: None, array, live: false });
        id
    }

    fn array(&self, value: &Id) -> Rc<Array> {
        self.node(*value).array.clone()
    }
}

impl Tape {
    pub fn new() -> Tape {
        Tape::default()
    }

    pub fn with(arithmetic: Arithmetic) -> Tape {
        Tape { nodes: Vec::new(), arithmetic }
    }

    /// A value that can be differentiated by.
    pub fn variable(&mut self, array: Rc<Array>) -> Made<Id> {
        self.push(Node { prim: None, array, live: true })
    }

    /// The same value as a variable of its own for [`Tape::gradient`].
    pub fn alias(&mut self, of: Id) -> Made<Id> {
        self.apply(Prim::Alias(of))
    }

    /// d `of` / d `by`, recorded, so that it can be differentiated again. `seed` is the cotangent of `of`.
    ///
    /// Only what was recorded after the first of `by` takes part, and none of `by` depends on another.
    pub fn gradient(&mut self, of: Id, seed: Id, by: &[Id]) -> Made<Vec<Id>> {
        let first = by.iter().min().copied().unwrap_or(of).0 as usize;
        let touched = self.touched(first, of, by);
        let mut cotangents: Vec<Option<Id>> = vec![None; touched.len()];
        if let Some(slot) = cotangents.last_mut() {
            *slot = Some(seed);
        }
        for n in (0..touched.len()).rev() {
            let id = Id((first + n) as u32);
            let (Some(g), true, false) = (cotangents[n], touched[n], by.contains(&id)) else { continue };
            let Some(prim) = self.node(id).prim.clone() else { continue };
            let operands: Vec<Id> = prim.operands().into_iter().copied().collect();
            let at = |m: usize| (operands[m].0 as usize).checked_sub(first);
            let want = |m: usize| at(m).is_some_and(|i| touched[i]);
            for (m, part) in pull(self, &prim, &id, &g, &want)? {
                let Some(slot) = at(m) else { continue };
                cotangents[slot] = Some(match cotangents[slot] {
                    Some(sum) => self.add(&sum, &part)?,
                    None => part,
                });
            }
        }
        by.iter()
            .map(|id| self.found(*id, cotangents.get(id.0 as usize - first).copied().flatten()))
            .collect()
    }

    /// The cotangents of `wanted` from those of results. Nothing is recorded.
    pub fn backward(&self, seeds: &[(Id, Rc<Array>)], wanted: &[Id]) -> Made<Vec<Option<Rc<Array>>>> {
        let mut cotangents: Vec<Option<Rc<Array>>> = vec![None; self.nodes.len()];
        for (id, seed) in seeds {
            collect(self.arithmetic, &mut cotangents[id.0 as usize], seed.clone())?;
        }
        for n in (0..self.nodes.len()).rev() {
            let node = &self.nodes[n];
            let (Some(prim), true) = (&node.prim, node.live) else { continue };
            let Some(g) = cotangents[n].take() else { continue };
            let operands: Vec<Id> = prim.operands().into_iter().copied().collect();
            let arrays = prim.map(|id| self.node(*id).array.clone());
            let want = |m: usize| self.node(operands[m]).live;
            for (m, part) in pull(&mut Eager(self.arithmetic), &arrays, &node.array, &g, &want)? {
                collect(self.arithmetic, &mut cotangents[operands[m].0 as usize], part)?;
            }
        }
        Ok(wanted.iter().map(|id| cotangents[id.0 as usize].take()).collect())
    }

    /// From `first` to `of`: whether one of `by` reaches the value through something differentiable.
    fn touched(&self, first: usize, of: Id, by: &[Id]) -> Vec<bool> {
        let mut touched: Vec<bool> = Vec::new();
        for n in first..=of.0 as usize {
            let through = |prim: &Prim<Id>| {
                !matches!(prim, Prim::Stop(_) | Prim::Compare(..))
                    && prim.operands().iter().any(|o| o.0 as usize >= first && touched[o.0 as usize - first])
            };
            let hit = by.contains(&Id(n as u32)) || self.nodes[n].prim.as_ref().is_some_and(through);
            touched.push(hit);
        }
        touched
    }

    fn found(&mut self, by: Id, cotangent: Option<Id>) -> Made<Id> {
        let shape = self.node(by).array.shape.clone();
        let g = match cotangent {
            Some(g) => g,
            None => self.num(0.0),
        };
        self.spread(&g, &shape)
    }

    fn push(&mut self, node: Node) -> Made<Id> {
        if self.nodes.len() >= u32::MAX as usize {
            return Err(Trouble::limit(
                "the reference's tape is full; use shorter chunks or a smaller layer",
            ));
        }
        self.nodes.push(node);
        Ok(Id(self.nodes.len() as u32 - 1))
    }

    fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }
}

fn collect(arithmetic: Arithmetic, slot: &mut Option<Rc<Array>>, part: Rc<Array>) -> Made<()> {
    *slot = Some(match slot.take() {
        Some(sum) => Eager(arithmetic).add(&sum, &part)?,
        None => part,
    });
    Ok(())
}
