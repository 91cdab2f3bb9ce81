//! Tasks that go through their streams together.

use super::pieces::{self, Piece, Written};
use super::span::{Span, writes_tape};
use super::tensors::Collected;
use super::{Programs, Runs};
use crate::execute::Place;
use miras_base::Diagnostic;
use miras_kernel::{Array, Role};
use miras_tensor::backward::name::{CARRY, COTANGENT, D, SUM, TAPE};
use std::collections::HashMap;
use std::ops::Range;

/// Numbers by the name of an array.
type Named = HashMap<String, Vec<f32>>;

/// Tasks on their way.
pub(super) struct Batch<'a, R> {
    spans: &'a [Span<'a, R>],
    /// The numbers of its tasks among all.
    tasks: Range<usize>,
    /// Of each span, of each task: the carries before each of its stretches, and at last after the last.
    carries: Vec<Vec<Vec<Named>>>,
    /// Of each span, of each task: the tape of its last stretch, where going forwards wrote it.
    tapes: Vec<Vec<Named>>,
    /// Of each span, of each task: the states that the spans before it handed on, by name; at last what all hand on.
    states: Vec<Vec<Named>>,
    /// Of each task: the cotangents of those, on the way back.
    handed: Vec<Option<Named>>,
    /// Of each task: the cotangents of the carries where it is on its way back.
    cotangents: Vec<Named>,
    /// Of each task: the sums of gradients of per-head tensors.
    sums: Vec<Named>,
}

impl<'a, R: Runs> Batch<'a, R> {
    pub fn new(spans: &'a [Span<'a, R>], tasks: Range<usize>) -> Self {
        let each = tasks.len();
        Batch {
            spans,
            tasks,
            carries: vec![vec![Vec::new(); each]; spans.len()],
            tapes: vec![vec![Named::new(); each]; spans.len()],
            states: vec![vec![Named::new(); each]],
            handed: vec![None; each],
            cotangents: vec![Named::new(); each],
            sums: vec![Named::new(); each],
        }
    }

    /// From the start to the last token: results, and a checkpoint before each stretch.
    pub fn forwards(&mut self, collected: &mut Collected) -> Result<(), Diagnostic> {
        for at in 0..self.spans.len() {
            self.advance(at, collected)?;
        }
        for (task, states) in self.states.last().into_iter().flatten().enumerate() {
            for (state, values) in states {
                collected.state(state, self.tasks.start + task, values)?;
            }
        }
        Ok(())
    }

    /// One span forwards.
    fn advance(&mut self, at: usize, collected: &mut Collected) -> Result<(), Diagnostic> {
        let span = &self.spans[at];
        let bare = self.bare(at);
        let firsts = pieces::run(&span.programs.start, &bare, |array, piece| {
            self.given(at, array, piece, Some(&self.states[at][piece.task]))
        })?;
        for (piece, made) in bare.iter().zip(firsts) {
            self.carries[at][piece.task].push(made);
        }
        for number in 0..self.most(at) {
            let some = self.pieces(at, |stretches| (number < stretches).then_some(number));
            let made = pieces::run(&span.programs.advance, &some, |array, piece| {
                self.given(at, array, piece, self.carries[at][piece.task].last())
            })?;
            for (piece, made) in some.iter().zip(made) {
                let (carries, rest) = parted(made, CARRY);
                let (tape, results) = parted(rest, TAPE);
                self.carries[at][piece.task].push(carries);
                self.tapes[at][piece.task] = tape;
                collected.tokens(piece, results)?;
            }
        }
        let mut states = self.states[at].clone();
        for piece in &bare {
            let last = self.carries[at][piece.task].last();
            for (state, carry) in &span.programs.states {
                let values = last.and_then(|carries| carries.get(&format!("{CARRY}{carry}")));
                let values = values.ok_or_else(|| Diagnostic::bug(format!("`{state}` is not carried")))?;
                states[piece.task].insert(state.clone(), values.clone());
            }
            begin_chunk(&mut states[piece.task], span.programs);
        }
        self.states.push(states);
        Ok(())
    }

    /// From the last token to the start.
    pub fn backwards(&mut self, collected: &mut Collected) -> Result<(), Diagnostic> {
        for span in self.spans {
            let arrays = [&span.programs.back, &span.programs.before].map(|p| p.program().arrays.iter());
            for array in arrays.into_iter().flatten().filter(|a| a.name.starts_with(SUM)) {
                for sums in &mut self.sums {
                    sums.insert(array.name.clone(), vec![0.0; array.part().unwrap_or(0)]);
                }
            }
        }
        for at in (0..self.spans.len()).rev() {
            self.back(at, collected)?;
        }
        for (task, sums) in self.sums.iter().enumerate() {
            let head = self.spans[0].places[self.tasks.start + task].head;
            for (name, values) in sums {
                let name = name.strip_prefix(SUM).unwrap_or(name);
                collected.head(&format!("{D}{name}"), head, values)?;
            }
        }
        Ok(())
    }

    /// One span backwards.
    fn back(&mut self, at: usize, collected: &mut Collected) -> Result<(), Diagnostic> {
        let span = &self.spans[at];
        let bare = self.bare(at);
        self.seed(at, &bare)?;
        for number in 0..self.most(at) {
            let some = self.pieces(at, |stretches| stretches.checked_sub(number + 1));
            let tapes = self.taped(at, &some, number == 0)?;
            let made = pieces::run(&span.programs.back, &some, |array, piece| {
                self.given(at, array, piece, tapes.get(&piece.task))
            })?;
            drop(tapes);
            for (piece, made) in some.iter().zip(made) {
                let (cotangents, rest) = parted(made, COTANGENT);
                let (sums, gradients) = parted(rest, SUM);
                self.cotangents[piece.task] = cotangents;
                self.sums[piece.task].extend(sums);
                collected.tokens(piece, gradients)?;
            }
        }
        let made = pieces::run(&span.programs.before, &bare, |array, piece| {
            self.given(at, array, piece, Some(&self.states[at][piece.task]))
        })?;
        for (piece, made) in bare.iter().zip(made) {
            let (sums, states) = parted(made, SUM);
            self.sums[piece.task].extend(sums);
            if at > 0 {
                self.handed[piece.task] = Some(at_border(states));
                continue;
            }
            for (name, values) in states {
                collected.state(&name, self.tasks.start + piece.task, &values)?;
            }
        }
        Ok(())
    }

    /// The tapes of these stretches, by task; `last`: they are the last of their tasks.
    fn taped(
        &mut self,
        at: usize,
        some: &[Piece<'_>],
        last: bool,
    ) -> Result<HashMap<usize, Named>, Diagnostic> {
        let span = &self.spans[at];
        let along = writes_tape(span.programs);
        if along && last {
            return Ok(some.iter().map(|p| (p.task, std::mem::take(&mut self.tapes[at][p.task]))).collect());
        }
        let again = if along { Some(&span.programs.advance) } else { span.programs.tape.as_ref() };
        let Some(again) = again else { return Ok(HashMap::new()) };
        let made = pieces::run(again, some, |array, piece| {
            self.given(at, array, piece, self.carries[at][piece.task].get(piece.from / span.stretch))
        })?;
        Ok(some.iter().zip(made).map(|(piece, made)| (piece.task, parted(made, TAPE).0)).collect())
    }

    /// The cotangents of what a span's last token hands on: those that the span after it gives, or the data's.
    fn seed(&mut self, at: usize, bare: &[Piece<'_>]) -> Result<(), Diagnostic> {
        let span = &self.spans[at];
        let carried = |state: &str| span.programs.states.iter().any(|(s, _)| s == state);
        for piece in bare {
            let mut cotangents = Named::new();
            for (name, values) in self.carries[at][piece.task].last().into_iter().flatten() {
                let number = name.strip_prefix(CARRY).unwrap_or(name);
                cotangents.insert(format!("{COTANGENT}{number}"), vec![0.0; values.len()]);
            }
            let handed = self.handed[piece.task].take();
            for (state, carry) in &span.programs.states {
                let slots = cotangents.get_mut(&format!("{COTANGENT}{carry}"));
                let slots = slots.ok_or_else(|| Diagnostic::bug(format!("`{state}` is not carried")))?;
                if let Some(handed) = &handed {
                    let more = handed.get(&format!("{D}{state}"));
                    slots.iter_mut().zip(more.into_iter().flatten()).for_each(|(a, b)| *a += b);
                    continue;
                }
                let task = self.tasks.start + piece.task;
                span.tensors.add_cotangent(state, task, slots)?;
                // A chunk's start that no carry stands for is the carried value.
                let start = state.strip_prefix(MEMORY).map(|weight| format!("{ANCHOR}{weight}"));
                if let Some(start) = start.filter(|start| !carried(start)) {
                    span.tensors.add_cotangent(&start, task, slots)?;
                }
            }
            self.cotangents[piece.task] = cotangents;
        }
        Ok(())
    }

    /// What an array reads: something between programs, or part of a tensor.
    fn given<'s>(
        &'s self,
        at: usize,
        array: &Array,
        piece: &Piece<'_>,
        between: Option<&'s Named>,
    ) -> Result<&'s [f32], Diagnostic> {
        let name = array.name.as_str();
        let own = match name {
            _ if name.starts_with(CARRY) || name.starts_with(TAPE) => between.and_then(|b| b.get(name)),
            _ if name.starts_with(COTANGENT) => self.cotangents.get(piece.task).and_then(|c| c.get(name)),
            _ if name.starts_with(SUM) => self.sums.get(piece.task).and_then(|c| c.get(name)),
            _ if at > 0 && array.role == Role::StateIn => between.and_then(|b| b.get(name)),
            _ => return self.spans[at].tensors.part(array, piece, self.tasks.start),
        };
        let missing = || Diagnostic::bug(format!("no program gave `{name}` ({:?})", array.role));
        own.map(Vec::as_slice).ok_or_else(missing)
    }

    /// One piece for each task that a span has a part of, for programs without tokens: a device is not asked for tasks
    /// that have none.
    fn bare(&self, at: usize) -> Vec<Piece<'a>> {
        let places = self.spans[at].places[self.tasks.clone()].iter().enumerate();
        let some = places.filter(|(_, place)| at == 0 || place.tokens > 0);
        some.map(|(task, place)| Piece { task, place, from: 0, count: 1, kept: 0 }).collect()
    }

    /// Of each task the stretch whose number `which` gives, for its number of stretches.
    fn pieces(&self, at: usize, which: impl Fn(usize) -> Option<usize>) -> Vec<Piece<'a>> {
        let span = &self.spans[at];
        let piece = |(task, place): (usize, &'a Place)| {
            let from = which(span.stretches(place.tokens))? * span.stretch;
            Some(Piece { task, place, from, count: span.stretch.min(place.tokens - from), kept: 0 })
        };
        span.places[self.tasks.clone()].iter().enumerate().filter_map(piece).collect()
    }

    /// Stretches of the longest task.
    fn most(&self, at: usize) -> usize {
        let span = &self.spans[at];
        span.places[self.tasks.clone()].iter().map(|p| span.stretches(p.tokens)).max().unwrap_or(0)
    }
}

const MEMORY: &str = "state.memory.";
const ANCHOR: &str = "state.anchor.";

/// After whole blocks, whose programs carry no chunk's start, that is the carried value, and a threshold 0.
fn begin_chunk<R>(states: &mut Named, programs: &Programs<R>) {
    let carried = |name: &str| programs.states.iter().any(|(s, _)| s == name);
    let starts: Vec<String> =
        states.keys().filter(|n| n.starts_with(ANCHOR) && !carried(n)).cloned().collect();
    for name in starts {
        let weight = name.strip_prefix(ANCHOR).unwrap_or(&name);
        let value = states.get(&format!("{MEMORY}{weight}")).cloned();
        if let Some(start) = states.get_mut(&name) {
            *start = value.unwrap_or_else(|| vec![0.0; start.len()]);
        }
    }
}

/// Gradients of what a span begins with, at a chunk's border: a chunk's start is the carried value there.
fn at_border(mut gradients: Named) -> Named {
    let starts: Vec<String> = gradients.keys().filter(|n| n.starts_with(D_ANCHOR)).cloned().collect();
    for name in starts {
        let (weight, more) = (name.strip_prefix(D_ANCHOR).unwrap_or(&name), gradients.remove(&name));
        let carried = gradients.get_mut(&format!("{D}{MEMORY}{weight}"));
        let pairs = carried.into_iter().flatten().zip(more.into_iter().flatten());
        pairs.for_each(|(a, b)| *a += b);
    }
    gradients
}

const D_ANCHOR: &str = "d.state.anchor.";

/// What has the prefix, and the rest.
fn parted(made: Written, prefix: &str) -> (Named, Named) {
    made.into_iter().partition(|(name, _)| name.starts_with(prefix))
}
