//! Tasks that go through their streams together.

use super::pieces::{self, Piece, Written};
use super::tensors::{Collected, Tensors};
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
    programs: &'a Programs<R>,
    tensors: &'a Tensors<'a>,
    places: &'a [Place],
    /// The number of its first task among all.
    first: usize,
    stretch: usize,
    /// Of each task: the carries before each of its stretches, and at last after the last.
    carries: Vec<Vec<Named>>,
    /// Of each task: the cotangents of the carries where it is on its way back.
    cotangents: Vec<Named>,
    /// Of each task: the sums of gradients of per-head tensors.
    sums: Vec<Named>,
}

impl<'a, R: Runs> Batch<'a, R> {
    pub fn new(
        programs: &'a Programs<R>,
        tensors: &'a Tensors<'a>,
        places: &'a [Place],
        some: Range<usize>,
        stretch: usize,
    ) -> Self {
        let (first, places) = (some.start, &places[some]);
        Batch {
            programs,
            tensors,
            places,
            first,
            stretch,
            carries: Vec::new(),
            cotangents: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// From the start to the last token: results, and a checkpoint before each stretch.
    pub fn forwards(&mut self, collected: &mut Collected) -> Result<(), Diagnostic> {
        let start: Vec<Piece<'a>> = self.bare().collect();
        let firsts =
            pieces::run(&self.programs.start, &start, |array, piece| self.given(array, piece, None))?;
        self.carries = firsts.into_iter().map(|carries| vec![carries]).collect();
        for number in 0..self.most() {
            let some = self.pieces(|stretches| (number < stretches).then_some(number));
            let made = pieces::run(&self.programs.advance, &some, |array, piece| {
                self.given(array, piece, self.carries[piece.task].last())
            })?;
            for (piece, made) in some.iter().zip(made) {
                let (carries, results) = parted(made, CARRY);
                self.carries[piece.task].push(carries);
                collected.tokens(piece, results)?;
            }
        }
        for (at, carries) in self.carries.iter().enumerate() {
            let last = carries.last().ok_or_else(|| Diagnostic::bug("a task without carries"))?;
            for (state, carry) in &self.programs.states {
                let values = last.get(&format!("{CARRY}{carry}"));
                let values = values.ok_or_else(|| Diagnostic::bug(format!("`{state}` is not carried")))?;
                collected.state(state, self.first + at, values)?;
            }
        }
        Ok(())
    }

    /// From the last token to the start.
    pub fn backwards(&mut self, collected: &mut Collected) -> Result<(), Diagnostic> {
        self.seed()?;
        for number in 0..self.most() {
            let some = self.pieces(|stretches| stretches.checked_sub(number + 1));
            let mut tapes = vec![Written::new(); self.places.len()];
            if let Some(tape) = &self.programs.tape {
                let made = pieces::run(tape, &some, |array, piece| {
                    self.given(array, piece, self.carries[piece.task].get(piece.from / self.stretch))
                })?;
                some.iter().zip(made).for_each(|(piece, made)| tapes[piece.task] = made);
            }
            let made = pieces::run(&self.programs.back, &some, |array, piece| {
                self.given(array, piece, Some(&tapes[piece.task]))
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
        let some: Vec<Piece<'a>> = self.bare().collect();
        let made = pieces::run(&self.programs.before, &some, |array, piece| self.given(array, piece, None))?;
        for (at, made) in made.into_iter().enumerate() {
            let (sums, states) = parted(made, SUM);
            for (name, values) in states {
                collected.state(&name, self.first + at, &values)?;
            }
            // What a program gives no gradient to it does not hand out.
            let mut all = std::mem::take(&mut self.sums[at]);
            all.extend(sums);
            for (name, values) in all {
                let name = name.strip_prefix(SUM).unwrap_or(&name);
                collected.head(&format!("{D}{name}"), self.places[at].head, &values)?;
            }
        }
        Ok(())
    }

    /// The cotangents of what the last token hands on; sums of nothing.
    fn seed(&mut self) -> Result<(), Diagnostic> {
        for at in 0..self.places.len() {
            let mut cotangents = Named::new();
            for (name, values) in self.carries[at].last().into_iter().flatten() {
                let number = name.strip_prefix(CARRY).unwrap_or(name);
                let states = self.programs.states.iter().filter(|(_, i)| i.to_string() == number);
                let mut seed = vec![0.0; values.len()];
                for (state, _) in states {
                    self.tensors.add_cotangent(state, self.first + at, &mut seed)?;
                }
                cotangents.insert(format!("{COTANGENT}{number}"), seed);
            }
            self.cotangents.push(cotangents);
            let arrays = [&self.programs.back, &self.programs.before].map(|p| p.program().arrays.iter());
            let sums = arrays.into_iter().flatten().filter(|a| a.name.starts_with(SUM));
            self.sums.push(sums.map(|a| (a.name.clone(), vec![0.0; a.part().unwrap_or(0)])).collect());
        }
        Ok(())
    }

    /// What an array reads: something between programs, or part of a tensor.
    fn given<'s>(
        &'s self,
        array: &Array,
        piece: &Piece<'_>,
        between: Option<&'s Named>,
    ) -> Result<&'s [f32], Diagnostic> {
        let name = array.name.as_str();
        let own = match name {
            _ if name.starts_with(CARRY) || name.starts_with(TAPE) => between.and_then(|b| b.get(name)),
            _ if name.starts_with(COTANGENT) => self.cotangents.get(piece.task).and_then(|c| c.get(name)),
            _ if name.starts_with(SUM) => self.sums.get(piece.task).and_then(|c| c.get(name)),
            _ => return self.tensors.part(array, piece, self.first),
        };
        let missing = || Diagnostic::bug(format!("no program gave `{name}` ({:?})", Role::StateIn));
        own.map(Vec::as_slice).ok_or_else(missing)
    }

    /// One piece for each task, for programs without tokens: a device is not asked for tasks that have none.
    fn bare(&self) -> impl Iterator<Item = Piece<'a>> + use<'a, R> {
        let places = self.places;
        places.iter().enumerate().map(|(task, place)| Piece { task, place, from: 0, count: 1, kept: 0 })
    }

    /// Of each task the stretch whose number `which` gives, for its number of stretches.
    fn pieces(&self, which: impl Fn(usize) -> Option<usize>) -> Vec<Piece<'a>> {
        let piece = |(task, place): (usize, &'a Place)| {
            let from = which(place.tokens.div_ceil(self.stretch))? * self.stretch;
            Some(Piece { task, place, from, count: self.stretch.min(place.tokens - from), kept: 0 })
        };
        self.places.iter().enumerate().filter_map(piece).collect()
    }

    /// Stretches of the longest task.
    fn most(&self) -> usize {
        self.places.iter().map(|p| p.tokens.div_ceil(self.stretch)).max().unwrap_or(0)
    }
}

/// What has the prefix, and the rest.
fn parted(made: Written, prefix: &str) -> (Named, Named) {
    made.into_iter().partition(|(name, _)| name.starts_with(prefix))
}
