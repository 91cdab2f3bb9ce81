//! A whole run: every head of every stream, then the results by name.

use crate::array::Array;
use crate::head::Head;
use crate::history::Past;
use crate::inputs::Gradients;
use crate::memory::Carry;
use crate::plan::{History, Plan, Weights, Work};
use crate::stream::Stream;
use crate::trouble::{Made, Trouble};
use miras_host as host;
use std::collections::HashSet;
use std::rc::Rc;

/// Performs a run. The results are named and shaped as docs/guide.md says, all in float64.
pub(crate) fn run(plan: &Plan<'_>) -> Made<host::Bundle> {
    let mut results = Results::new(plan);
    for stream in 0..plan.bound.streams.len() {
        for head in 0..plan.bound.heads {
            let head = Head::new(plan, stream, head);
            match &plan.work {
                Work::Weights(weights) => results.weights(&head, weights)?,
                Work::History(history) => results.history(&head, history)?,
            }
        }
    }
    results.bundle()
}

struct Results<'a> {
    plan: &'a Plan<'a>,
    /// [B, H, T, dv].
    output: Vec<f64>,
    /// What streams carry, in the order of [`Carry::iter`], each [N, H, ...].
    carried: Vec<Carried>,
    /// Kept keys and values of each stream and head.
    kept: Vec<[Vec<f64>; 2]>,
    gradients: Gradients,
}

struct Carried {
    name: String,
    values: Vec<f64>,
}

impl<'a> Results<'a> {
    fn new(plan: &'a Plan<'a>) -> Results<'a> {
        let bound = plan.bound;
        let carried = match &plan.work {
            Work::Weights(weights) => carried(plan, weights),
            Work::History(_) => Vec::new(),
        };
        Results {
            plan,
            output: vec![0.0; bound.batch * bound.heads * bound.tokens * plan.dv],
            carried,
            kept: Vec::new(),
            gradients: Gradients::zeros(bound),
        }
    }

    fn weights(&mut self, head: &Head<'_>, weights: &Weights<'_>) -> Made<()> {
        let cotangents = self.plan.bound.cotangents.as_ref();
        let stream = Stream { head, weights, differentiable: cotangents.is_some() };
        let flow = stream.forward()?;
        self.write_outputs(head, &flow.outputs)?;
        for (slot, array) in self.carried.iter_mut().zip(flow.last.iter()) {
            let start = head.index() * array.data.len();
            write(&mut slot.values, start, array)?;
        }
        let Some(cotangents) = cotangents else { return Ok(()) };
        let outputs = self.output_cotangents(head, cotangents)?;
        let mut slots = self.carried.iter();
        let last: Carry<Rc<Array>> = flow.last.map(|array| {
            let given = slots.next().and_then(|slot| cotangents.states.get(&slot.name));
            let start = head.index() * array.data.len();
            given.map_or_else(
                || Ok(Rc::new(Array::filled(&array.shape, 0.0))),
                |g| part(g, start, &array.shape),
            )
        })?;
        stream.backward(&flow, &outputs, last, &mut self.gradients)
    }

    fn history(&mut self, head: &Head<'_>, history: &History<'_>) -> Made<()> {
        let cotangents = self.plan.bound.cotangents.as_ref();
        let past = Past { head, history, differentiable: cotangents.is_some() };
        self.write_outputs(head, &past.forward()?)?;
        self.kept.push(past.state()?);
        let Some(cotangents) = cotangents else { return Ok(()) };
        let outputs = self.output_cotangents(head, cotangents)?;
        let [keys, values] = ["state.cache.k", "state.cache.v"].map(|name| cotangents.states.get(name));
        let keys = keys.map(|g| self.kept_cotangent(head, &past, g, self.plan.dk)).transpose()?;
        let values = values.map(|g| self.kept_cotangent(head, &past, g, self.plan.dv)).transpose()?;
        past.backward(&outputs, [keys.as_deref(), values.as_deref()], &mut self.gradients)
    }

    fn write_outputs(&mut self, head: &Head<'_>, outputs: &[Rc<Array>]) -> Made<()> {
        for (n, output) in outputs.iter().enumerate() {
            let start = head.row(self.plan.bound.tokens, head.span().first + n) * self.plan.dv;
            write(&mut self.output, start, output)?;
        }
        Ok(())
    }

    fn output_cotangents(&self, head: &Head<'_>, cotangents: &host::Cotangents) -> Made<Vec<Rc<Array>>> {
        let (span, dv) = (head.span(), self.plan.dv);
        let at = |token| part(&cotangents.output, head.row(self.plan.bound.tokens, token) * dv, &[dv]);
        (span.first..span.last).map(at).collect()
    }

    /// The cotangent of the kept keys or values of one stream and head.
    fn kept_cotangent(
        &self,
        head: &Head<'_>,
        past: &Past<'_>,
        whole: &host::Tensor,
        size: usize,
    ) -> Made<Vec<f64>> {
        let length = whole.shape.get(2).copied().unwrap_or(0);
        let (mut first, mut count) = (0, 0);
        for stream in 0..=head.stream {
            first += count;
            let other = Head::new(self.plan, stream, head.head);
            count = Past { head: &other, ..*past }.kept_count();
        }
        let first = if self.plan.bound.packed { first } else { 0 };
        let place = head.row(length, first);
        Ok(part(whole, place * size, &[count * size])?.data.clone())
    }
}

/// The results by name.
impl Results<'_> {
    fn bundle(mut self) -> Made<host::Bundle> {
        let bound = self.plan.bound;
        let mut outputs = host::Outputs::new(self.plan.rule, bound);
        let expected: HashSet<String> = outputs.expected().iter().map(|o| o.name.clone()).collect();
        outputs.set("o", host::Data::F64(std::mem::take(&mut self.output)))?;
        for slot in self.carried.drain(..).filter(|slot| expected.contains(&slot.name)) {
            outputs.set(&slot.name, host::Data::F64(slot.values))?;
        }
        if matches!(self.plan.work, Work::History(_)) {
            for (n, name) in ["state.cache.k", "state.cache.v"].into_iter().enumerate() {
                outputs.set(name, host::Data::F64(self.cache(n)))?;
            }
        }
        if bound.cotangents.is_some() {
            for (name, values) in self.gradients.into_values() {
                outputs.set(&format!("d.{name}"), host::Data::F64(values))?;
            }
        }
        Ok(outputs.finish()?)
    }

    /// Kept keys (0) or values (1) of all: [B, H, L, d], or packed [1, H, sum of L, d].
    fn cache(&self, which: usize) -> Vec<f64> {
        let (streams, heads) = (self.plan.bound.streams.len(), self.plan.bound.heads);
        let kept = |stream: usize, head: usize| self.kept[stream * heads + head][which].iter().copied();
        if self.plan.bound.packed {
            (0..heads).flat_map(|h| (0..streams).flat_map(move |s| kept(s, h))).collect()
        } else {
            (0..streams).flat_map(|s| (0..heads).flat_map(move |h| kept(s, h))).collect()
        }
    }
}

/// Names and places of what streams carry, in the order of [`Carry::iter`].
fn carried(plan: &Plan<'_>, weights: &Weights<'_>) -> Vec<Carried> {
    let tasks = plan.bound.streams.len() * plan.bound.heads;
    let slot = |name: String, shape: &[usize]| Carried {
        name,
        values: vec![0.0; tasks * shape.iter().product::<usize>()],
    };
    let named = |name: &dyn Fn(&str) -> String, sizes: &[Vec<usize>]| -> Vec<Carried> {
        plan.layer.memory.weights.iter().zip(sizes).map(|(w, shape)| slot(name(&w.name), shape)).collect()
    };
    let mut all = named(&|weight| format!("state.memory.{weight}"), &weights.weight_sizes);
    if weights.frozen.is_some() {
        all.extend(named(&|weight| format!("state.anchor.{weight}"), &weights.weight_sizes));
        for part in host::Remembered::ALL {
            all.extend(named(&|weight| part.tensor(weight), &weights.remembered_sizes(part)));
        }
    }
    let states = weights.step.states.iter().zip(&weights.state_sizes);
    all.extend(states.map(|(state, shape)| slot(format!("state.algo.{}", state.name), shape)));
    all
}

fn write(to: &mut [f64], start: usize, array: &Array) -> Made<()> {
    let slots =
        to.get_mut(start..start + array.data.len()).ok_or_else(|| Trouble::bug("a result does not fit"))?;
    slots.copy_from_slice(&array.data);
    Ok(())
}

fn part(tensor: &host::Tensor, start: usize, shape: &[usize]) -> Made<Rc<Array>> {
    let size: usize = shape.iter().product();
    let values = tensor.f64s().ok_or_else(|| Trouble::bug("a cotangent is not of floats"))?;
    let values = values.get(start..start + size).ok_or_else(|| Trouble::bug("a cotangent is too short"))?;
    Ok(Rc::new(Array::new(shape.to_vec(), values.to_vec())?))
}
