//! The tensors of a run, the leaves they become on tapes, and the gradients that come back to them.

use crate::array::Array;
use crate::ops::{Arithmetic, Ops};
use crate::tape::{Id, Tape};
use crate::trouble::{Made, Trouble};
use miras_host as host;
use miras_spec as spec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// Which tensor of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Query,
    Key,
    Value,
    /// A parameter of the layer, by its number.
    Param(usize),
    /// The initial weight, by its number.
    Initial(usize),
    /// A weight's carried value.
    Memory(usize),
    /// The same at the start of the open chunk.
    Anchor(usize),
    /// What else is remembered of a weight in the open chunk.
    Remembered(usize, host::Remembered),
    /// A state of the algorithm.
    State(usize),
    CacheKey,
    CacheValue,
}

struct Input<'a> {
    name: String,
    values: Cow<'a, [f64]>,
}

/// All tensors of a run.
pub(crate) struct Inputs<'a> {
    /// What becomes of every result.
    pub arithmetic: Arithmetic,
    tensors: HashMap<Source, Input<'a>>,
    given: HashMap<&'a str, &'a [usize]>,
}

impl<'a> Inputs<'a> {
    pub fn new(layer: &spec::Layer, bound: &'a host::Bound, arithmetic: Arithmetic) -> Made<Inputs<'a>> {
        let given = bound.given.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
        let mut inputs = Inputs { arithmetic, tensors: HashMap::new(), given };
        inputs.add(Source::Query, "q", Some(&bound.query))?;
        inputs.add(Source::Key, "k", Some(&bound.key))?;
        inputs.add(Source::Value, "v", Some(&bound.value))?;
        for (n, (param, values)) in layer.params.iter().zip(&bound.params).enumerate() {
            inputs.add(Source::Param(n), &param.tensor, Some(&values.values))?;
        }
        for (n, (weight, values)) in layer.memory.weights.iter().zip(&bound.weights).enumerate() {
            let name = &weight.name;
            // A default is not read: it is computed here, where what it depends on can be differentiated by.
            let initial = values.initial.as_ref().filter(|_| values.given);
            inputs.add(Source::Initial(n), &format!("memory.{name}"), initial)?;
            inputs.add(Source::Memory(n), &format!("state.memory.{name}"), values.carried.as_ref())?;
            inputs.add(Source::Anchor(n), &format!("state.anchor.{name}"), values.anchor.as_ref())?;
            for (part, values) in &values.remembered {
                inputs.add(Source::Remembered(n, *part), &part.tensor(name), Some(values))?;
            }
        }
        if let spec::Algo::Step(step) = &layer.algo {
            for (n, (state, values)) in step.states.iter().zip(&bound.states).enumerate() {
                inputs.add(
                    Source::State(n),
                    &format!("state.algo.{}", state.name),
                    values.carried.as_ref(),
                )?;
            }
        }
        if let Some(cache) = &bound.cache {
            inputs.add(Source::CacheKey, "state.cache.k", Some(&cache.keys))?;
            inputs.add(Source::CacheValue, "state.cache.v", Some(&cache.values))?;
        }
        Ok(inputs)
    }

    fn add(
        &mut self,
        source: Source,
        name: &str,
        tensor: Option<&'a std::sync::Arc<host::Tensor>>,
    ) -> Made<()> {
        let Some(tensor) = tensor else { return Ok(()) };
        let values = tensor.f64s().ok_or_else(|| Trouble::bug(format!("`{name}` is not of floats")))?;
        self.tensors.insert(source, Input { name: name.to_string(), values });
        Ok(())
    }

    pub fn has(&self, source: Source) -> bool {
        self.tensors.contains_key(&source)
    }

    /// Part of a tensor: as many numbers from `start` on as the shape holds.
    pub fn part(&self, source: Source, start: usize, shape: &[usize]) -> Made<Array> {
        let input =
            self.tensors.get(&source).ok_or_else(|| Trouble::bug(format!("{source:?} was not bound")))?;
        let end = start + shape.iter().product::<usize>();
        let values = input.values.get(start..end);
        let values = values.ok_or_else(|| Trouble::bug(format!("`{}` is too short", input.name)))?;
        Array::new(shape.to_vec(), values.to_vec())
    }

    /// The name under which a tensor's gradient is wanted.
    fn wanted(&self, source: Source) -> Option<&str> {
        let input = self.tensors.get(&source)?;
        self.given.contains_key(input.name.as_str()).then_some(input.name.as_str())
    }
}

/// A tape with the leaves that it has so far.
pub(crate) struct Desk<'a> {
    pub tape: Tape,
    inputs: &'a Inputs<'a>,
    differentiable: bool,
    /// All leaves, and whether they are variables.
    leaves: HashMap<(Source, usize), (Id, bool)>,
}

impl<'a> Desk<'a> {
    pub fn new(inputs: &'a Inputs<'a>, differentiable: bool) -> Desk<'a> {
        Desk { tape: Tape::with(inputs.arithmetic), inputs, differentiable, leaves: HashMap::new() }
    }

    /// A part of a tensor as a leaf; the same leaf each time.
    pub fn leaf(&mut self, source: Source, start: usize, shape: &[usize]) -> Made<Id> {
        if let Some((id, _)) = self.leaves.get(&(source, start)) {
            return Ok(*id);
        }
        let array = Rc::new(self.inputs.part(source, start, shape)?);
        let variable = self.differentiable && self.inputs.wanted(source).is_some();
        let id = if variable { self.tape.variable(array)? } else { self.tape.constant(array) };
        self.leaves.insert((source, start), (id, variable));
        Ok(id)
    }

    /// Goes back from the cotangents of results: adds to the leaves' gradients and gives those of `carried`.
    pub fn backward(
        &self,
        seeds: &[(Id, Rc<Array>)],
        carried: &[Id],
        gradients: &mut Gradients,
    ) -> Made<Vec<Option<Rc<Array>>>> {
        let variables = self.leaves.iter().filter(|(_, (_, variable))| *variable);
        let (places, leaves): (Vec<(Source, usize)>, Vec<Id>) =
            variables.map(|(at, (id, _))| (*at, *id)).unzip();
        let wanted = [carried, &leaves].concat();
        let mut found = self.tape.backward(seeds, &wanted)?;
        for ((source, start), gradient) in places.into_iter().zip(found.split_off(carried.len())) {
            if let Some(gradient) = gradient {
                gradients.add(self.inputs, source, start, &gradient);
            }
        }
        Ok(found)
    }
}

/// Gradients by the name of the input.
pub(crate) struct Gradients {
    by_name: HashMap<String, Vec<f64>>,
}

impl Gradients {
    /// Zeros for every given input.
    pub fn zeros(bound: &host::Bound) -> Gradients {
        let zeros = |(name, shape): &(String, Vec<usize>)| (name.clone(), vec![0.0; shape.iter().product()]);
        Gradients { by_name: bound.given.iter().map(zeros).collect() }
    }

    /// Adds to the part of a tensor's gradient that begins at `start`.
    pub fn add(&mut self, inputs: &Inputs<'_>, source: Source, start: usize, part: &Array) {
        let slots = inputs
            .wanted(source)
            .and_then(|name| self.by_name.get_mut(name))
            .and_then(|g| g.get_mut(start..));
        for (slot, x) in slots.into_iter().flatten().zip(&part.data) {
            *slot += x;
        }
    }

    pub fn into_values(self) -> impl Iterator<Item = (String, Vec<f64>)> {
        self.by_name.into_iter()
    }
}
