//! Gradients of a memory that keeps its past: once through the past of each token, once through the queries of
//! each past token.

use super::pieces::{self, Piece, Written};
use super::tensors::{Collected, Tensors};
use super::{ROOM, Runs};
use crate::execute::{self, Place, misfit};
use miras_base::Diagnostic;
use miras_host as host;
use miras_host::Data;
use miras_kernel::{Array, Role};
use miras_tensor::backward::name::{D, SUM, TAPE};
use miras_tensor::lower::{INDEX, PAST_KEYS, PAST_VALUES};
use std::collections::HashMap;

/// The programs of a memory that keeps its past, compiled: a forward run and [`miras_tensor::HistoryBack`].
#[derive(Clone, Debug)]
pub struct HistoryPrograms<R> {
    /// A forward run.
    pub forward: R,
    /// Back, for each token through its past.
    pub queries: R,
    /// Back, for each past token through the queries.
    pub past: R,
}

/// Runs a problem bound in float32 with cotangents: all results of a forward run and `d.*` of every given
/// floating input.
///
/// # Errors
/// Those of the device; E0402 where memory does not suffice; E0901 where the programs and the problem do not
/// belong together.
pub fn history_gradients<R: Runs>(
    programs: &HistoryPrograms<R>,
    rule: &host::Rule,
    bound: &host::Bound,
) -> Result<host::Bundle, Diagnostic> {
    let places = execute::places(bound, 1);
    let queries = || programs.queries.program().arrays.iter();
    let tensors = Tensors::new(queries(), rule, bound)?;
    let mut collected = Collected::new(queries().map(|a| (a, 1)), bound)?;
    forwards(programs, rule, bound, &mut collected)?;
    let mut pasts: Vec<Written> = Vec::new();
    let room = together(programs, &places);
    for first in (0..places.len()).step_by(room) {
        let some = &places[first..(first + room).min(places.len())];
        pasts.extend(Batch { programs, tensors: &tensors, places: some, first }.backwards(&mut collected)?);
    }
    for (array, name) in [(PAST_KEYS, "k"), (PAST_VALUES, "v")] {
        Kept { rule, bound, places: &places, pasts: &mut pasts, array, name }.share(&mut collected)?;
    }
    collected.results(rule, bound)
}

/// The results of a forward run.
fn forwards<R: Runs>(
    programs: &HistoryPrograms<R>,
    rule: &host::Rule,
    bound: &host::Bound,
    collected: &mut Collected,
) -> Result<(), Diagnostic> {
    let plain = host::Bound { cotangents: None, ..bound.clone() };
    let program = &programs.forward;
    let results = execute::execute(program.program(), rule, &plain, |tasks| program.run(tasks))?;
    for (name, tensor) in results.iter() {
        if let Data::F32(values) = &tensor.data {
            collected.whole(name, values.clone());
        }
    }
    Ok(())
}

/// How many tasks go together; at least one.
fn together<R: Runs>(programs: &HistoryPrograms<R>, places: &[Place]) -> usize {
    let arrays = programs.queries.program().arrays.iter().chain(&programs.past.program().arrays);
    let each = arrays.filter(|a| a.role.entries().is_some()).filter_map(Array::part).sum::<usize>();
    let longest = places.iter().map(|p| p.tokens.saturating_add(p.scalars.kept)).max().unwrap_or(0);
    (ROOM / each.saturating_mul(longest).saturating_mul(4).max(1)).max(1)
}

/// Tasks that go together.
struct Batch<'a, R> {
    programs: &'a HistoryPrograms<R>,
    tensors: &'a Tensors<'a>,
    places: &'a [Place],
    first: usize,
}

impl<R: Runs> Batch<'_, R> {
    /// Collects what belongs to tokens and heads; gives what belongs to the past of each task.
    fn backwards(&self, collected: &mut Collected) -> Result<Vec<Written>, Diagnostic> {
        let all = self.places.iter().enumerate().filter(|(_, p)| p.tokens > 0);
        let pieces: Vec<Piece<'_>> = all
            .map(|(task, place)| Piece {
                task,
                place,
                from: 0,
                count: place.tokens,
                kept: place.scalars.kept,
            })
            .collect();
        let arrays = self.programs.queries.program().arrays.iter().filter(|a| a.name.starts_with(SUM));
        let nothing: HashMap<&str, Vec<f32>> =
            arrays.map(|a| (a.name.as_str(), vec![0.0; a.part().unwrap_or(0)])).collect();
        let made = pieces::run(&self.programs.queries, &pieces, |array, piece| {
            match nothing.get(array.name.as_str()) {
                Some(zeros) => Ok(zeros.as_slice()),
                None => self.tensors.part(array, piece, self.first),
            }
        })?;
        let mut tapes = Vec::new();
        for (piece, made) in pieces.iter().zip(made) {
            let (tape, rest): (Written, Written) = made.into_iter().partition(|(n, _)| n.starts_with(TAPE));
            let (sums, gradients): (Written, Written) =
                rest.into_iter().partition(|(n, _)| n.starts_with(SUM));
            for (name, values) in sums {
                let name = format!("{D}{}", name.strip_prefix(SUM).unwrap_or(&name));
                collected.head(&name, piece.place.head, &values)?;
            }
            collected.tokens(piece, gradients)?;
            tapes.push(tape);
        }
        self.past(&pieces, &tapes)
    }

    /// The gradients of the keys and values of each task's past.
    fn past(&self, pieces: &[Piece<'_>], tapes: &[Written]) -> Result<Vec<Written>, Diagnostic> {
        let mut given: Vec<Written> = Vec::new();
        for (piece, tape) in pieces.iter().zip(tapes) {
            let mut own = Written::new();
            for array in &self.programs.past.program().arrays {
                if let Some(values) = self.read(array, piece, tape)? {
                    own.insert(array.name.clone(), values);
                }
            }
            given.push(own);
        }
        let turned: Vec<Piece<'_>> = pieces
            .iter()
            .enumerate()
            .map(|(task, piece)| Piece { task, count: piece.count + piece.kept, kept: 0, ..*piece })
            .collect();
        let made = pieces::run(&self.programs.past, &turned, |array, piece| {
            let own = given.get(piece.task).and_then(|g| g.get(&array.name));
            own.map(Vec::as_slice).ok_or_else(|| misfit(array, "is given by no program"))
        })?;
        let mut by_task = vec![Written::new(); self.places.len()];
        for (piece, made) in pieces.iter().zip(made) {
            by_task[piece.task] = made;
        }
        Ok(by_task)
    }

    /// What an array of the second program reads: for queries from before the run there is nothing, so zeros.
    fn read(&self, array: &Array, piece: &Piece<'_>, tape: &Written) -> Result<Option<Vec<f32>>, Diagnostic> {
        let size = array.part().ok_or_else(|| misfit(array, "is too large to count"))?;
        let padded = |values: &[f32]| [vec![0.0; piece.kept * size].as_slice(), values].concat();
        Ok(match array.role {
            Role::TokenInput { .. } | Role::HeadInput => {
                Some(self.tensors.part(array, piece, self.first)?.to_vec())
            }
            Role::PastInput { .. } if array.name == INDEX => {
                let before = vec![-1.0; piece.kept];
                Some(before.into_iter().chain((0..piece.count).map(|i| (piece.kept + i) as f32)).collect())
            }
            Role::PastInput { .. } => Some(match tape.get(&array.name) {
                Some(values) => padded(values),
                None => padded(self.tensors.part(array, piece, self.first)?),
            }),
            Role::StateIn => return Err(misfit(array, "is no state of a history")),
            Role::StateOut | Role::TokenOutput { .. } | Role::Scratch => None,
        })
    }
}

/// The gradients of all tasks' pasts, on their way to `d.k` or `d.v` and `d.state.cache.*`.
struct Kept<'a> {
    rule: &'a host::Rule,
    bound: &'a host::Bound,
    places: &'a [Place],
    pasts: &'a mut [Written],
    array: &'a str,
    name: &'a str,
}

impl Kept<'_> {
    fn share(&mut self, collected: &mut Collected) -> Result<(), Diagnostic> {
        let short = |what: &str| Diagnostic::bug(format!("the gradient of a past does not fit {what}"));
        let tensor = if self.name == "k" { &self.bound.key } else { &self.bound.value };
        let size = tensor.shape.last().copied().unwrap_or(1);
        let mut own = vec![0.0; tensor.len()];
        let mut before = vec![
            0.0;
            self.bound.cache.as_ref().map_or(0, |c| if self.name == "k" {
                c.keys.len()
            } else {
                c.values.len()
            })
        ];
        for task in 0..self.places.len() {
            let place = &self.places[task];
            let past = (place.scalars.kept + place.tokens) * size;
            let mut all =
                self.pasts[task].remove(&format!("{D}{}", self.array)).unwrap_or_else(|| vec![0.0; past]);
            self.add_cotangent(task, size, &mut all).ok_or_else(|| short("its cotangent"))?;
            let (kept, run) =
                all.split_at_checked(place.scalars.kept * size).ok_or_else(|| short("its tokens"))?;
            let start = place.token * size;
            own.get_mut(start..start + run.len()).ok_or_else(|| short("the run"))?.copy_from_slice(run);
            if let (Some(cache), false) = (&self.bound.cache, kept.is_empty()) {
                let length = cache.keys.shape.get(2).copied().unwrap_or(0);
                let row = self.bound.streams[place.stream].row * self.bound.heads + place.head;
                let start = (row * length + cache.ranges[place.stream].0) * size;
                before
                    .get_mut(start..start + kept.len())
                    .ok_or_else(|| short("the cache"))?
                    .copy_from_slice(kept);
            }
        }
        collected.whole(&format!("{D}{}", self.name), own);
        collected.whole(&format!("{D}state.cache.{}", self.name), before);
        Ok(())
    }

    /// Adds the cotangent of what a task keeps: the last tokens of its past. None where it does not fit.
    fn add_cotangent(&self, task: usize, size: usize, to: &mut [f32]) -> Option<()> {
        let states = &self.bound.cotangents.as_ref()?.states;
        let Some(tensor) = states.get(&format!("state.cache.{}", self.name)) else { return Some(()) };
        let Data::F32(values) = &tensor.data else { return None };
        let lengths = host::cache_lengths(&self.rule.layer, self.bound)?;
        let (place, length) = (&self.places[task], tensor.shape.get(2)?);
        let first: usize = if self.bound.packed { lengths.get(..place.stream)?.iter().sum() } else { 0 };
        let row = self.bound.streams.get(place.stream)?.row * self.bound.heads + place.head;
        let (start, count) = ((row * length + first) * size, lengths.get(place.stream)? * size);
        let at = to.len().checked_sub(count)?;
        to[at..].iter_mut().zip(values.get(start..start + count)?).for_each(|(a, b)| *a += b);
        Some(())
    }
}
