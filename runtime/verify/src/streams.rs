//! One semantics (docs/mathematics.md): streams cut, packed, continued and repeated against the whole.

use crate::backends::refusal;
use crate::measure::{allowance, error, forward, worst};
use crate::report::{Row, Section};
use crate::{Case, Failure, Runner, cut};
use miras_host as host;
use std::ops::Range;

/// How far cuts of a float64 run may differ from the whole.
const FLOAT64: f64 = 1e-11;

pub(crate) fn section(case: &Case<'_>, sizes: [usize; 3], backend: &mut dyn Runner, exact: bool) -> Section {
    let mut rows = Vec::new();
    for (order, schedule) in [
        ("recurrent".to_string(), host::Schedule::Recurrent),
        (format!("chunked({})", case.chunk), host::Schedule::Chunked(case.chunk)),
    ] {
        let mut run = Streams { case, sizes, backend, schedule, exact };
        for (what, check) in CHECKS {
            let what = format!("{order}: {what}");
            rows.push(match check(&mut run) {
                Ok(Some((figure, bound))) => Row::promised(what, figure, bound),
                Ok(None) => Row::not_run(what, "there are too few tokens or rows"),
                Err(why) => refusal(what, &why),
            });
        }
    }
    let about = "Streams cut in pieces with the state handed on, packed end to end, and run again. Where nothing \
                 but the cuts differs the results are equal to the bit.";
    Section { title: format!("Streams, {}", backend.name()), about: about.into(), rows }
}

struct Streams<'a> {
    case: &'a Case<'a>,
    sizes: [usize; 3],
    backend: &'a mut dyn Runner,
    schedule: host::Schedule,
    /// Whether the backend is the float64 reference.
    exact: bool,
}

/// A figure and its bound; None where the data is too small for the check.
type Check = fn(&mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure>;

const CHECKS: [(&str, Check); 5] = [
    ("the same run again", again),
    ("three pieces", pieces),
    ("the last tokens one by one", one_by_one),
    ("packed end to end", packed),
    ("tokens after t changed: outputs up to t", future),
];

impl Streams<'_> {
    fn run(&mut self, data: &host::Bundle) -> Result<host::Bundle, Failure> {
        self.backend.run(data, self.schedule, false)
    }

    /// Runs the pieces of the data one after the other; gives all outputs and the last states.
    fn in_pieces(&mut self, ends: &[usize]) -> Result<host::Bundle, Failure> {
        let (tokens, mut from) = (self.sizes[2], 0);
        let mut done: Option<(host::Tensor, host::Bundle)> = None;
        for end in ends {
            let mut piece = cut::tokens(self.case.rule, self.case.data, tokens, from..*end);
            if let Some((_, before)) = &done {
                piece = cut::continued(&piece, before);
            }
            let results = self.run(&piece)?;
            let outputs =
                results.get("o").map(|t| host::Tensor::clone(t)).unwrap_or(host::Tensor::f64([0], vec![]));
            let outputs = match &done {
                Some((earlier, _)) => cut::joined(earlier, &outputs, 2),
                None => outputs,
            };
            (done, from) = (Some((outputs, results)), *end);
        }
        let (outputs, mut results) = done.unwrap_or((host::Tensor::f64([0], vec![]), host::Bundle::new()));
        results.insert("o", outputs);
        Ok(results)
    }

    /// The figure that cuts may differ by: rounding only.
    fn bound(&self) -> Result<f64, Failure> {
        match self.exact {
            true => Ok(FLOAT64),
            false => allowance(self.case, self.schedule, false, self.case.data, forward),
        }
    }
}

fn again(run: &mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure> {
    let [first, second] = [run.run(run.case.data)?, run.run(run.case.data)?];
    Ok(Some((worst(&second, &first, forward).0, 0.0)))
}

fn pieces(run: &mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure> {
    let (tokens, chunk) = (run.sizes[2], run.case.chunk as usize);
    if tokens < 3 {
        return Ok(None);
    }
    let whole = run.run(run.case.data)?;
    let second = (chunk.min(tokens - 1)).max(2);
    let first = (second / 2).max(1);
    let cut = run.in_pieces(&[first, second, tokens])?;
    Ok(Some((worst(&cut, &whole, forward).0, run.bound()?)))
}

fn one_by_one(run: &mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure> {
    let tokens = run.sizes[2];
    if tokens < 4 {
        return Ok(None);
    }
    let whole = run.run(run.case.data)?;
    let cut = run.in_pieces(&[tokens - 3, tokens - 2, tokens - 1, tokens])?;
    Ok(Some((worst(&cut, &whole, forward).0, run.bound()?)))
}

fn packed(run: &mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure> {
    let tokens = run.sizes[2];
    if tokens < 3 {
        return Ok(None);
    }
    let row = cut::row(run.case.rule, run.case.data, 0);
    let ends = [0, tokens / 3, tokens / 3, tokens - 1, tokens];
    let mut together = row.clone();
    together.insert("segments", host::Tensor::i64([ends.len()], ends.iter().map(|e| *e as i64).collect()));
    let together = run.run(&together)?;
    let mut worst = 0.0_f64;
    for pair in ends.windows(2) {
        let range: Range<usize> = pair[0]..pair[1];
        let apart = run.run(&cut::tokens(run.case.rule, &row, tokens, range.clone()))?;
        if let (Some(all), Some(own)) = (together.get("o"), apart.get("o")) {
            worst = worst.max(error(&cut::along(all, 2, range), own));
        }
    }
    Ok(Some((worst, 0.0)))
}

fn future(run: &mut Streams<'_>) -> Result<Option<(f64, f64)>, Failure> {
    let tokens = run.sizes[2];
    if tokens < 2 {
        return Ok(None);
    }
    let t = tokens / 2;
    let mut changed = run.case.data.clone();
    for name in ["q", "k", "v"] {
        let Some(tensor) = run.case.data.get(name) else { continue };
        let entries = tensor.shape[2] / tokens;
        let [before, after] =
            [0..t * entries, t * entries..tokens * entries].map(|r| cut::along(tensor, 2, r));
        let values = after.f64s().unwrap_or_default().iter().map(|x| 0.5 - x).collect();
        changed.insert(name, cut::joined(&before, &host::Tensor::f64(after.shape.clone(), values), 2));
    }
    let [one, other] = [run.run(run.case.data)?, run.run(&changed)?];
    let (Some(one), Some(other)) = (one.get("o"), other.get("o")) else { return Ok(None) };
    Ok(Some((error(&cut::along(other, 2, 0..t), &cut::along(one, 2, 0..t)), 0.0)))
}
