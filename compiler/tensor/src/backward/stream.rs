//! The programs of a stream: start, advance, write down, go back, and back through the start.

use super::copy::{Map, copy, known};
use super::name::{CARRY, COTANGENT, D, GRAD, SUM, TAPE};
use super::reverse::Reverse;
use super::scan::Seeds;
use crate::ir::{AxisId, Carry, Graph, Input, Op, Origin, Output, Scan, ScanId, Size, Slice, ValueId};
use crate::live::prune;
use crate::lower::{CLOSES, FRESH};
use crate::verify::{Verified, verify};
use miras_base::Diagnostic;
use std::collections::BTreeMap;

/// What computes a stream's results and gradients, a stretch of tokens at a time. All are graphs of one task.
///
/// Names between them are those of [`super::name`]; all other names are tensors of files.
#[derive(Clone, Debug)]
pub struct Backward {
    /// Per-head tensors and incoming states -> the carries before the first token. No tokens.
    pub start: Verified,
    /// Tokens and carries -> the results of these tokens, and the carries after them; with [`Tape::Along`] also the
    /// tapes.
    pub advance: Verified,
    /// Tokens and carries -> for each token the carries before it that [`Self::back`] reads. None: it reads none, or
    /// [`Self::advance`] writes them.
    pub tape: Option<Verified>,
    /// Tokens, tapes, cotangents of results and of the carries after -> gradients of the tokens' inputs,
    /// cotangents of the carries before, and sums for per-head tensors.
    pub back: Verified,
    /// Cotangents of the carries before the first token -> sums for per-head tensors, gradients of incoming
    /// states. No tokens.
    pub before: Verified,
    /// The states handed on, by tensor name: which carry each is.
    pub states: Vec<(String, usize)>,
    /// Number of carries.
    pub carries: usize,
}

/// Which program writes down what is carried before each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tape {
    /// One of its own, which goes through a stretch once more: where a token is cheap beside what is carried.
    Apart,
    /// The one that goes forwards, beside its results: where a token of the graph is a whole block.
    Along,
}

/// Builds the programs from the graph of a stream, whose tokens may be whole blocks.
///
/// # Errors
/// E0901 where the graph is not one scan over tokens between its inputs and its outputs.
pub fn backward(graph: &Verified, tape: Tape) -> Result<Backward, Diagnostic> {
    let stream = Stream::new(graph.graph())?;
    let back = stream.back()?;
    let read = |i: &usize| back.inputs.iter().any(|input| input.tensor == format!("{TAPE}{i}"));
    let taped: Vec<usize> = (0..stream.scan.carries.len()).filter(read).collect();
    let (along, apart) = match tape {
        Tape::Along => (taped.as_slice(), None),
        Tape::Apart if taped.is_empty() => (&[][..], None),
        Tape::Apart => (&[][..], Some(verify(stream.advance(false, &taped)?)?)),
    };
    Ok(Backward {
        start: verify(stream.start()?)?,
        advance: verify(stream.advance(true, along)?)?,
        tape: apart,
        back: verify(back)?,
        before: verify(stream.before()?)?,
        states: stream.states()?,
        carries: stream.scan.carries.len(),
    })
}

/// A graph that is one scan over tokens.
struct Stream<'a> {
    source: &'a Graph,
    id: ScanId,
    scan: &'a Scan,
}

/// A program in the making, with what stands for the values of the source.
struct Made {
    graph: Graph,
    map: Map,
}

impl<'a> Stream<'a> {
    fn new(source: &'a Graph) -> Result<Stream<'a>, Diagnostic> {
        let over_tokens = |s: &Scan| {
            source.axis(s.axis).size == Size::Tokens && source.parents[s.body.0 as usize] == Some(Graph::TASK)
        };
        let mut found = source.scans.iter().enumerate().filter(|(_, s)| over_tokens(s));
        match (found.next(), found.next()) {
            (Some((at, scan)), None) => Ok(Stream { source, id: ScanId(at as u32), scan }),
            _ => Err(Diagnostic::bug("a stream that is not one scan over tokens has no backward pass")),
        }
    }

    /// A graph with the source's axes and its inputs of these origins.
    fn begin(&self, origins: &[Origin]) -> Made {
        let mut made = Made { graph: Graph::new(), map: Map::new() };
        made.graph.axes.clone_from(&self.source.axes);
        for input in self.source.inputs.iter().filter(|i| origins.contains(&i.origin)) {
            let axes = self.source.value(input.value).axes.clone();
            let value = made.input(&input.tensor, input.origin, axes);
            made.map.insert(input.value, value);
        }
        made
    }

    fn axes(&self, id: ValueId) -> Vec<AxisId> {
        self.source.value(id).axes.clone()
    }

    fn carry_axes(&self, i: usize) -> Vec<AxisId> {
        self.axes(self.scan.carries[i].before)
    }

    fn firsts(&self) -> Vec<ValueId> {
        self.scan.carries.iter().map(|c| c.first).collect()
    }

    /// Outputs of the scan: name, which stack, axes.
    fn outputs(&self) -> Result<Vec<(&Output, usize)>, Diagnostic> {
        let tokens = self.source.outputs.iter().filter(|o| o.origin == Origin::Token);
        tokens
            .map(|o| match self.source.value(o.value).op {
                Op::Stacked(scan, i) if scan == self.id => Ok((o, i)),
                _ => Err(Diagnostic::bug(format!("{} is not stacked by the scan over tokens", o.tensor))),
            })
            .collect()
    }

    fn states(&self) -> Result<Vec<(String, usize)>, Diagnostic> {
        let states = self.source.outputs.iter().filter(|o| o.origin == Origin::Stream);
        states
            .map(|o| match self.source.value(o.value).op {
                Op::Final(scan, i) if scan == self.id => Ok((o.tensor.clone(), i)),
                _ => Err(Diagnostic::bug(format!("{} is not carried by the scan over tokens", o.tensor))),
            })
            .collect()
    }

    fn start(&self) -> Result<Graph, Diagnostic> {
        let mut made = self.begin(&[Origin::Head, Origin::Stream]);
        let firsts = self.firsts();
        made.copy(self.source, &firsts)?;
        for (i, first) in firsts.into_iter().enumerate() {
            let value = known(&made.map, first)?;
            made.output(format!("{CARRY}{i}"), Origin::Stream, value, self.carry_axes(i));
        }
        Ok(made.finish())
    }

    /// A stretch of tokens: its results and the carries after it, where these are wanted, and the carries of these
    /// numbers before each token.
    fn advance(&self, results: bool, taped: &[usize]) -> Result<Graph, Diagnostic> {
        let mut made = self.begin(&[Origin::Token, Origin::Head]);
        made.copy(self.source, &self.captured())?;
        let body = made.graph.add_block(Graph::TASK);
        let (mut carries, mut slices) = (Vec::new(), Vec::new());
        for (i, carry) in self.scan.carries.iter().enumerate() {
            let first = made.input(&format!("{CARRY}{i}"), Origin::Stream, self.carry_axes(i));
            let before = made.parameter(self.source, body, carry.before);
            carries.push(Carry { first, before, after: before });
        }
        for slice in &self.scan.slices {
            let inner = made.parameter(self.source, body, slice.slice);
            slices.push(Slice { whole: known(&made.map, slice.whole)?, slice: inner });
        }
        let afters = self.scan.carries.iter().map(|c| c.after);
        let roots: Vec<ValueId> = afters.chain(self.scan.stacked.iter().copied()).collect();
        copy(self.source, &roots, self.scan.body, &mut made.graph, body, &mut made.map)?;
        for (carry, source) in carries.iter_mut().zip(&self.scan.carries) {
            carry.after = known(&made.map, source.after)?;
        }
        let mut stacked: Vec<ValueId> = taped.iter().map(|i| carries[*i].before).collect();
        if results {
            for value in &self.scan.stacked {
                stacked.push(known(&made.map, *value)?);
            }
        }
        let scan = Scan { axis: self.scan.axis, order: self.scan.order, body, carries, slices, stacked };
        let (finals, mut stacks) = made.graph.add_scan(Graph::TASK, scan);
        let own = stacks.split_off(taped.len());
        for (i, stack) in taped.iter().zip(stacks) {
            made.output(format!("{TAPE}{i}"), Origin::Token, stack, self.taped_axes(*i));
        }
        if results {
            for (output, i) in self.outputs()? {
                made.output(output.tensor.clone(), Origin::Token, own[i], output.axes.clone());
            }
            for (i, last) in finals.into_iter().enumerate() {
                made.output(format!("{CARRY}{i}"), Origin::Stream, last, self.carry_axes(i));
            }
        }
        Ok(made.finish())
    }

    fn taped_axes(&self, i: usize) -> Vec<AxisId> {
        std::iter::once(self.scan.axis).chain(self.carry_axes(i)).collect()
    }

    /// The same stretch backwards.
    fn back(&self) -> Result<Graph, Diagnostic> {
        let mut made = self.begin(&[Origin::Token, Origin::Head]);
        let sums = self.sums(&mut made);
        made.copy(self.source, &self.captured())?;
        let count = self.scan.carries.len();
        let tapes = (0..count)
            .map(|i| made.input(&format!("{TAPE}{i}"), Origin::Token, self.taped_axes(i)))
            .collect();
        let finals = (0..count).map(|i| Some(self.cotangent(&mut made, i))).collect();
        let mut stacked = vec![None; self.scan.stacked.len()];
        for (output, i) in self.outputs()? {
            let name = format!("{GRAD}{}", output.tensor);
            stacked[i] = Some(made.input(&name, Origin::Token, output.axes.clone()));
        }
        let mut reverse = made.reverse(self.source);
        let pulled = reverse.pull_scan(self.scan, &Seeds { tapes, finals, stacked })?;
        for (value, part) in pulled.captured {
            reverse.give(value, part);
        }
        reverse.block(Graph::TASK)?;
        let cotangents = reverse.cotangents;
        for (i, first) in pulled.firsts.into_iter().enumerate() {
            made.output(format!("{COTANGENT}{i}"), Origin::Stream, first, self.carry_axes(i));
        }
        self.add_up(&mut made, &sums, &cotangents);
        for (slice, whole) in self.scan.slices.iter().zip(pulled.wholes) {
            let input = self.source.inputs.iter().find(|i| i.value == slice.whole);
            let input = input.ok_or_else(|| Diagnostic::bug("tokens that are not given have no gradient"))?;
            if input.tensor != CLOSES && input.tensor != FRESH {
                made.output(format!("{D}{}", input.tensor), Origin::Token, whole, self.axes(input.value));
            }
        }
        Ok(made.finish())
    }

    /// Back through what happens before the first token.
    fn before(&self) -> Result<Graph, Diagnostic> {
        let mut made = self.begin(&[Origin::Head, Origin::Stream]);
        let sums = self.sums(&mut made);
        let firsts = self.firsts();
        made.copy(self.source, &firsts)?;
        let given: Vec<ValueId> = (0..firsts.len()).map(|i| self.cotangent(&mut made, i)).collect();
        let mut reverse = made.reverse(self.source);
        for (first, cotangent) in firsts.into_iter().zip(given) {
            reverse.give(first, cotangent);
        }
        reverse.block(Graph::TASK)?;
        let cotangents = reverse.cotangents;
        self.add_up(&mut made, &sums, &cotangents);
        for input in self.source.inputs.iter().filter(|i| i.origin == Origin::Stream) {
            let axes = self.axes(input.value);
            let value =
                made.reverse(self.source).whole(Graph::TASK, cotangents.get(&input.value).copied(), &axes);
            made.output(format!("{D}{}", input.tensor), Origin::Stream, value, axes);
        }
        Ok(made.finish())
    }

    fn cotangent(&self, made: &mut Made, i: usize) -> ValueId {
        made.input(&format!("{COTANGENT}{i}"), Origin::Stream, self.carry_axes(i))
    }

    /// The sums so far for every per-head input.
    fn sums(&self, made: &mut Made) -> BTreeMap<ValueId, ValueId> {
        let heads = self.source.inputs.iter().filter(|i| i.origin == Origin::Head);
        heads
            .map(|i| (i.value, made.input(&format!("{SUM}{}", i.tensor), Origin::Stream, self.axes(i.value))))
            .collect()
    }

    /// Hands out the sums of those tensors that a gradient reaches here.
    fn add_up(
        &self,
        made: &mut Made,
        sums: &BTreeMap<ValueId, ValueId>,
        cotangents: &BTreeMap<ValueId, ValueId>,
    ) {
        for input in self.source.inputs.iter().filter(|i| i.origin == Origin::Head) {
            let part = cotangents.get(&input.value);
            let (Some(sum), Some(part)) = (sums.get(&input.value), part) else { continue };
            let value = made.reverse(self.source).build().sum(*sum, *part);
            made.output(format!("{SUM}{}", input.tensor), Origin::Stream, value, self.axes(input.value));
        }
    }

    /// Values of the task that the steps use: operands of what lies inside the scan.
    fn captured(&self) -> Vec<ValueId> {
        let inside = |id: &ValueId| self.source.within(self.source.value(*id).block, self.scan.body);
        let values = (0..self.source.values.len() as u32).map(ValueId).filter(|id| inside(id));
        let mut used: Vec<ValueId> = values.flat_map(|id| self.source.operands(id)).collect();
        for scan in &self.source.scans {
            if self.source.within(scan.body, self.scan.body) && scan.body != self.scan.body {
                used.extend(scan.carries.iter().flat_map(|c| [c.first, c.after]));
                used.extend(scan.slices.iter().map(|s| s.whole));
                used.extend(&scan.stacked);
            }
        }
        used.extend(self.scan.carries.iter().map(|c| c.after).chain(self.scan.stacked.iter().copied()));
        used.retain(|id| !inside(id));
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl Made {
    fn input(&mut self, tensor: &str, origin: Origin, axes: Vec<AxisId>) -> ValueId {
        let value = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin, value });
        value
    }

    fn parameter(&mut self, source: &Graph, body: crate::ir::BlockId, of: ValueId) -> ValueId {
        let value = source.value(of);
        let copy = self.graph.given(body, value.axes.clone(), value.name.clone().unwrap_or_default());
        self.map.insert(of, copy);
        copy
    }

    fn output(&mut self, tensor: String, origin: Origin, value: ValueId, axes: Vec<AxisId>) {
        self.graph.outputs.push(Output { tensor, origin, value, axes });
    }

    fn copy(&mut self, source: &Graph, roots: &[ValueId]) -> Result<(), Diagnostic> {
        copy(source, roots, Graph::TASK, &mut self.graph, Graph::TASK, &mut self.map)
    }

    fn reverse<'r>(&'r mut self, source: &'r Graph) -> Reverse<'r> {
        Reverse {
            source,
            target: &mut self.graph,
            into: Graph::TASK,
            map: &mut self.map,
            cotangents: BTreeMap::new(),
        }
    }

    fn finish(mut self) -> Graph {
        prune(&mut self.graph);
        self.graph
    }
}
