//! The tensors that go in, and the results that are collected.

use super::pieces::Piece;
use super::{Programs, Runs};
use crate::execute::{self, Supply, misfit};
use miras_base::Diagnostic;
use miras_host as host;
use miras_host::{Data, Remembered};
use miras_kernel::Array;
use miras_tensor::backward::name::{CARRY, COTANGENT, D, GRAD, SUM, TAPE};
use std::collections::HashMap;

/// What the programs read of a bound problem.
pub(super) struct Tensors<'a> {
    supplies: HashMap<String, Supply<'a>>,
    cotangents: &'a host::Cotangents,
}

impl<'a> Tensors<'a> {
    /// Those that the arrays read.
    pub fn new<'p>(
        arrays: impl Iterator<Item = &'p Array>,
        rule: &host::Rule,
        bound: &'a host::Bound,
    ) -> Result<Tensors<'a>, Diagnostic> {
        let missing = || Diagnostic::bug("gradients of a problem that was bound without cotangents");
        let cotangents = bound.cotangents.as_ref().ok_or_else(missing)?;
        let mut supplies = HashMap::new();
        for array in arrays.filter(|a| !a.role.writable() && !between(&a.name)) {
            let supply = match array.name.strip_prefix(GRAD) {
                Some("o") => Supply::PerToken(floats(&cotangents.output, array)?),
                Some(_) => return Err(misfit(array, "is the cotangent of no result")),
                None => execute::supply(array, 1, rule, bound)?,
            };
            supplies.insert(array.name.clone(), supply);
        }
        Ok(Tensors { supplies, cotangents })
    }

    /// The part of a tensor that belongs to a piece; `first` is the number of the first task.
    pub fn part(&self, array: &Array, piece: &Piece<'_>, first: usize) -> Result<&[f32], Diagnostic> {
        let size = array.part().ok_or_else(|| misfit(array, "is too large to count"))?;
        let (values, from, count): (&[f32], usize, usize) = match self.supplies.get(&array.name) {
            Some(Supply::PerToken(values)) => {
                let range = piece.tokens(size);
                let part = range.and_then(|range| values.get(range));
                return part.ok_or_else(|| misfit(array, "is longer than its tensor"));
            }
            Some(Supply::PerHead(values)) => (values, piece.place.head, 1),
            Some(Supply::PerTask(values)) => (values, first + piece.task, 1),
            Some(Supply::PerStream(values)) => {
                let own = values.get(piece.place.stream).map(Vec::as_slice);
                (own.unwrap_or(&[]), piece.from, piece.count)
            }
            Some(Supply::Past(values)) => {
                let own = values.get(first + piece.task).map(Vec::as_slice);
                return own.ok_or_else(|| misfit(array, "lacks a task"));
            }
            Some(Supply::Answers(_) | Supply::States(_) | Supply::Nothing) | None => {
                return Err(misfit(array, "is no tensor of a stream"));
            }
        };
        let range = from.checked_mul(size).zip(from.checked_add(count).and_then(|end| end.checked_mul(size)));
        let part = range.and_then(|(start, end)| values.get(start..end));
        part.ok_or_else(|| misfit(array, "is longer than its tensor"))
    }

    /// Adds what is given as the cotangent of a state of a task.
    pub fn add_cotangent(&self, state: &str, task: usize, to: &mut [f32]) -> Result<(), Diagnostic> {
        let Some(tensor) = self.cotangents.states.get(state) else { return Ok(()) };
        let short = || Diagnostic::bug(format!("the cotangent of `{state}` does not fit"));
        let Data::F32(values) = &tensor.data else { return Err(short()) };
        let own = values.get(task * to.len()..(task + 1) * to.len()).ok_or_else(short)?;
        to.iter_mut().zip(own).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

/// Results by name, for all tasks.
pub(super) struct Collected {
    /// Token results, [B, H, T, ...].
    tokens: HashMap<String, Vec<f32>>,
    /// States and gradients of states, [N, H, ...].
    states: HashMap<String, Vec<f32>>,
    /// Gradients of per-head tensors, [H, ...].
    heads: HashMap<String, Vec<f64>>,
    tasks: usize,
}

impl Collected {
    /// Room for what the arrays hold of all tasks, each with how many of the problem's tokens are one of its own.
    pub fn new<'p>(
        arrays: impl Iterator<Item = (&'p Array, usize)>,
        bound: &host::Bound,
    ) -> Result<Collected, Diagnostic> {
        let (mut tokens, mut heads) = (HashMap::new(), HashMap::new());
        let all = bound.batch.checked_mul(bound.heads).and_then(|n| n.checked_mul(bound.tokens));
        for (array, unit) in arrays.filter(|(a, _)| a.role.writable()) {
            if let Some(name) = array.name.strip_prefix(SUM) {
                let count = array.part().unwrap_or(0) * bound.heads;
                heads.insert(format!("{D}{name}"), vec![0.0; count]);
            } else if array.role.entries().is_some() && !between(&array.name) {
                let count = array.part().zip(all).and_then(|(part, all)| (part / unit).checked_mul(all));
                if !tokens.contains_key(&array.name) {
                    tokens.insert(array.name.clone(), execute::room(array, count)?);
                }
            }
        }
        let tasks = bound.streams.len() * bound.heads;
        Ok(Collected { tokens, states: HashMap::new(), heads, tasks })
    }

    /// A result as a whole.
    pub fn whole(&mut self, name: &str, values: Vec<f32>) {
        self.states.insert(name.to_string(), values);
    }

    /// Takes what a piece wrote for its tokens.
    pub fn tokens(&mut self, piece: &Piece<'_>, made: HashMap<String, Vec<f32>>) -> Result<(), Diagnostic> {
        for (name, values) in made.into_iter().filter(|(name, _)| !between(name)) {
            let range = piece.tokens(values.len() / piece.count.max(1));
            let slots = self.tokens.get_mut(&name).zip(range).and_then(|(all, range)| all.get_mut(range));
            let lost = || Diagnostic::bug(format!("there is no room for `{name}`"));
            slots.ok_or_else(lost)?.copy_from_slice(&values);
        }
        Ok(())
    }

    /// Takes a state of a task, or the gradient of one.
    pub fn state(&mut self, name: &str, task: usize, values: &[f32]) -> Result<(), Diagnostic> {
        let count = values.len() * self.tasks;
        let all = self.states.entry(name.to_string()).or_insert_with(|| vec![0.0; count]);
        let slots = all.get_mut(task * values.len()..(task + 1) * values.len());
        let lost = || Diagnostic::bug(format!("there is no room for `{name}`"));
        slots.ok_or_else(lost)?.copy_from_slice(values);
        Ok(())
    }

    /// Adds to the gradient of a head's tensor. Called in the order of the tasks.
    pub fn head(&mut self, name: &str, head: usize, values: &[f32]) -> Result<(), Diagnostic> {
        let start = head * values.len();
        let slots = self.heads.get_mut(name).and_then(|all| all.get_mut(start..start + values.len()));
        let lost = || Diagnostic::bug(format!("there is no room for `{name}`"));
        slots.ok_or_else(lost)?.iter_mut().zip(values).for_each(|(a, b)| *a += f64::from(*b));
        Ok(())
    }

    /// The results by name.
    pub fn results(mut self, rule: &host::Rule, bound: &host::Bound) -> Result<host::Bundle, Diagnostic> {
        self.anchors(rule, bound);
        let mut outputs = host::Outputs::new(rule, bound);
        let expected: Vec<(String, Vec<usize>)> =
            outputs.expected().iter().map(|o| (o.name.clone(), o.shape.clone())).collect();
        let mut carried: Vec<(&str, Vec<f32>)> = Vec::new();
        for (name, shape) in &expected {
            let heads = self.heads.remove(name).map(|all| all.into_iter().map(|x| x as f32).collect());
            let found = self.tokens.remove(name).or_else(|| self.states.remove(name)).or(heads);
            match found {
                Some(values) => carried.push((name, values)),
                // A tensor that is given and not read has no influence.
                None if name.starts_with(D) => carried.push((name, vec![0.0; shape.iter().product()])),
                None => {}
            }
        }
        execute::settle(&mut carried, bound);
        for (name, values) in carried {
            outputs.set(name, Data::F32(values))?;
        }
        outputs.finish()
    }

    /// Where no chunk's start was given, or a stream is at a boundary, the start is the carried value: its gradient is
    /// that value's. What else is remembered is 0 at a boundary, whatever was given.
    fn anchors(&mut self, rule: &host::Rule, bound: &host::Bound) {
        for (declared, weight) in rule.layer.memory.weights.iter().zip(&bound.weights) {
            let (anchor, memory) =
                (format!("{D}state.anchor.{}", declared.name), format!("{D}state.memory.{}", declared.name));
            let Some(mut starts) = self.states.remove(&anchor) else { continue };
            let rows = execute::at_boundary(starts.len(), bound, weight.anchor.is_none());
            for range in rows {
                if let Some(memory) = self.states.get_mut(&memory) {
                    memory[range.clone()].iter_mut().zip(&starts[range.clone()]).for_each(|(a, b)| *a += b);
                }
                starts[range].fill(0.0);
            }
            for part in Remembered::ALL.map(|part| format!("{D}{}", part.tensor(&declared.name))) {
                let Some(part) = self.states.get_mut(&part) else { continue };
                for range in execute::at_boundary(part.len(), bound, weight.anchor.is_none()) {
                    part[range].fill(0.0);
                }
            }
            if weight.anchor.is_some() {
                self.states.insert(anchor, starts);
            }
        }
    }
}

/// The arrays of all programs.
pub(super) fn arrays<R: Runs>(programs: &Programs<R>) -> impl Iterator<Item = &Array> {
    let always = [&programs.start, &programs.advance, &programs.back, &programs.before];
    always.into_iter().chain(&programs.tape).flat_map(|p| p.program().arrays.iter())
}

/// Whether an array goes from program to program.
fn between(name: &str) -> bool {
    [CARRY, TAPE, COTANGENT, SUM].iter().any(|prefix| name.starts_with(prefix))
}

fn floats<'a>(tensor: &'a host::Tensor, array: &Array) -> Result<&'a [f32], Diagnostic> {
    match &tensor.data {
        Data::F32(values) => Ok(values),
        Data::F64(_) | Data::I64(_) => Err(misfit(array, "was not bound in float32")),
    }
}
