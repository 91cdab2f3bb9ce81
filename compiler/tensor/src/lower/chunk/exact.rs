//! Steps that are affine in the weight: masked products, and a unit-triangular system for what corrects it.

use super::block::{Kept, Running, Steps, factor, running};
use super::low_rank::{Axes, Factor, LowRank, Part, times};
use crate::ir::{AxisId, Op, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_schedule::{Affine, Factors};
use miras_term::{Reduce, Shape, TermId, VarId};

/// Outer products of all tokens of a block, from one step of each token.
struct Source {
    /// Which of a token's steps.
    step: usize,
    /// [from, cols]
    right: ValueId,
    /// What does not depend on the weight, [from, rows].
    left: Option<ValueId>,
    corrections: Vec<Correction>,
}

/// `scale * ((entry * W) @ input + beside)`, all over `from`.
struct Correction {
    beside: Option<ValueId>,
    scale: Option<ValueId>,
    entry: Factor,
    input: ValueId,
}

/// What repeated steps have an entry each for: the axis of steps, and the values over `from` and it.
pub(super) type Repeated<'a> = Option<(AxisId, &'a [(VarId, ValueId)], usize)>;

/// A block of tokens that has been read; the weight after it is still to be made.
pub(super) struct Block {
    kept: Running,
    parts: Vec<Part>,
}

/// A block of tokens. Gives the weights as its tokens read them, and what makes the weight after the block.
pub(super) fn block(
    at: &mut TermLowering<'_>,
    axes: &Axes,
    affine: &Affine,
    shape: &Shape,
    weight: ValueId,
    repeated: Repeated<'_>,
    read_before: bool,
) -> Result<(LowRank, Block), Failure> {
    let keep = factor(at, axes, &affine.keep, shape)?;
    let kept = running(at, axes, keep);
    let mut sources = Vec::new();
    match repeated {
        None => add_sources(at, axes, affine, shape, 0, &mut sources)?,
        Some((axis, values, steps)) => {
            for step in 0..steps {
                for (var, all) in values {
                    let entry = at.graph.add(at.block, Op::At(*all, axis, step));
                    at.bind(*var, entry);
                }
                add_sources(at, axes, affine, shape, step, &mut sources)?;
            }
        }
    }
    let lefts = System { axes, weight, sources: &sources, several: repeated.is_some() }.solve(at, &kept);
    let seen = if read_before { kept.before } else { kept.after };
    let with = |factor: Factor| {
        let part =
            move |(source, left): (&Source, &ValueId)| Part { left: *left, right: source.right, factor };
        sources.iter().zip(&lefts).map(part).collect::<Vec<_>>()
    };
    let low = LowRank {
        axes: *axes,
        wholes: vec![(weight, seen.whole)],
        parts: with(seen.parts),
        own: !read_before,
        scale: None,
    };
    Ok((low, Block { kept, parts: with(kept.after.parts) }))
}

impl Block {
    /// The weight after the block, from the one before it.
    pub(super) fn next(&self, at: &mut TermLowering<'_>, axes: &Axes, weight: ValueId) -> ValueId {
        let Kept { parts, whole } = last(at, axes, self.kept.after);
        let mut next = axes.kept(at, weight, whole);
        for part in &self.parts {
            let more = axes.gathered(at, part.left, part.right, parts);
            next = at.fn2(Fn2::Add, next, more);
        }
        next
    }
}

/// What is kept after the last token.
fn last(at: &mut TermLowering<'_>, axes: &Axes, kept: Kept) -> Kept {
    Kept { parts: end(at, axes, kept.parts), whole: end(at, axes, kept.whole) }
}

/// A factor at the last of the tokens `to`.
pub(super) fn end(at: &mut TermLowering<'_>, axes: &Axes, factor: Factor) -> Factor {
    factor.map(|value| last_of(at, axes.to, value))
}

/// The entry at the last place of an axis.
pub(super) fn last_of(at: &mut TermLowering<'_>, axis: AxisId, value: ValueId) -> ValueId {
    let crate::ir::Size::Fixed(n) = at.graph.axis(axis).size else { return value };
    if at.has(value, axis) { at.add(Op::At(value, axis, n - 1)) } else { value }
}

fn add_sources(
    at: &mut TermLowering<'_>,
    axes: &Axes,
    affine: &Affine,
    shape: &Shape,
    step: usize,
    sources: &mut Vec<Source>,
) -> Result<(), Failure> {
    let [rows, cols] = [shape.0[0].clone(), shape.0[1].clone()];
    for family in &affine.families {
        let right = vector(at, family.right, &cols, Some([axes.from, axes.cols]))?;
        let over = [axes.from, axes.rows];
        let left = family.left.map(|l| vector(at, l, &rows, Some(over))).transpose()?;
        let mut corrections = Vec::new();
        for c in &family.corrections {
            let entry: &Factors = &c.entry;
            corrections.push(Correction {
                beside: c.beside.map(|b| vector(at, b, &rows, Some(over))).transpose()?,
                scale: c.scale.map(|s| vector(at, s, &rows, None)).transpose()?,
                entry: factor(at, axes, entry, shape)?,
                input: vector(at, c.input, &cols, Some([axes.from, axes.cols]))?,
            });
        }
        sources.push(Source { step, right, left, corrections });
    }
    Ok(())
}

/// A vector term (or a scalar) with its axis called as that of `dim`, and repeated over axes.
fn vector(
    at: &mut TermLowering<'_>,
    term: TermId,
    dim: &Dim,
    over: Option<[AxisId; 2]>,
) -> Result<ValueId, Failure> {
    let own = at.terms.shape(term).clone();
    let value = at.lower(term)?;
    let value = at.fit_value(value, &own, &Shape::vector(dim.clone()))?;
    Ok(over.map_or(value, |axes| at.spread(value, &axes)))
}

/// The system that gives what each token writes: `left_t + sum of corrections of the weights before it`.
struct System<'a> {
    axes: &'a Axes,
    weight: ValueId,
    sources: &'a [Source],
    /// Whether a token has several steps after one retention.
    several: bool,
}

/// A correction without what the system solves for: over `to`.
struct Row {
    source: usize,
    /// What is known of `W @ input`, [to, rows].
    known: ValueId,
    /// For each unknown source: scores of earlier tokens with a factor of rows, and of the same token where its
    /// step came before.
    met: Vec<Met>,
    beside: Option<ValueId>,
    scale: Option<ValueId>,
    rows: Option<ValueId>,
}

struct Met {
    source: usize,
    scores: ValueId,
    by_row: Option<ValueId>,
    own: Option<ValueId>,
}

impl System<'_> {
    /// What each source writes, [from, rows].
    fn solve(&self, at: &mut TermLowering<'_>, kept: &Running) -> Vec<ValueId> {
        let zero = at.number(0.0);
        let over = [self.axes.from, self.axes.rows];
        let mut lefts: Vec<ValueId> =
            (self.sources.iter()).map(|s| s.left.unwrap_or_else(|| at.spread(zero, &over))).collect();
        let unknown: Vec<usize> = self.unknown().collect();
        if unknown.is_empty() {
            return lefts;
        }
        // With several steps the weights that a step meets are kept already.
        let seen = if self.several { kept.after } else { kept.before };
        let mut rows = Vec::new();
        for s in &unknown {
            for c in &self.sources[*s].corrections {
                rows.push(self.row(at, *s, c, seen, &lefts));
            }
        }
        for (s, solved) in unknown.iter().zip(self.substitute(at, &rows, &lefts)) {
            lefts[*s] = solved;
        }
        lefts
    }

    fn unknown(&self) -> impl Iterator<Item = usize> + '_ {
        self.sources.iter().enumerate().filter(|(_, s)| !s.corrections.is_empty()).map(|(i, _)| i)
    }

    fn row(&self, at: &mut TermLowering<'_>, s: usize, c: &Correction, seen: Kept, lefts: &[ValueId]) -> Row {
        let axes = self.axes;
        let (from, to) = (axes.from, axes.to);
        let input_from = times(at, c.input, c.entry.cols);
        let input = at.rename(input_from, from, to);
        let mut known = axes.whole(at, self.weight, seen.whole, input);
        let mut met = Vec::new();
        for (other, source) in self.sources.iter().enumerate() {
            let scores = axes.scores(at, source.right, seen.parts, input);
            let (scores, by_row) = axes.masked(at, scores, seen.parts, false);
            let own = (source.step < self.sources[s].step).then(|| {
                let product = at.fn2(Fn2::Mul, source.right, input_from);
                let own = at.add(Op::Reduce(Reduce::Sum, vec![axes.cols], product));
                at.rename(own, from, to)
            });
            if !source.corrections.is_empty() {
                met.push(Met { source: other, scores, by_row, own });
                continue;
            }
            let scores = times(at, scores, by_row);
            let more = at.add(Op::Einsum(scores, lefts[other], vec![from]));
            known = at.fn2(Fn2::Add, known, more);
            if let Some(own) = own {
                let left = at.rename(lefts[other], from, to);
                let more = at.fn2(Fn2::Mul, own, left);
                known = at.fn2(Fn2::Add, known, more);
            }
        }
        let mut over_to = |v: Option<ValueId>| v.map(|v| at.rename(v, from, to));
        let (beside, scale, rows) = (over_to(c.beside), over_to(c.scale), over_to(c.entry.rows));
        Row { source: s, known, met, beside, scale, rows }
    }

    /// Forward substitution, token by token.
    fn substitute(&self, at: &mut TermLowering<'_>, rows: &[Row], lefts: &[ValueId]) -> Vec<ValueId> {
        let axes = self.axes;
        let zero = at.number(0.0);
        let empty = at.spread(zero, &[axes.from, axes.rows]);
        let lefts: Vec<ValueId> = lefts.iter().map(|l| at.rename(*l, axes.from, axes.to)).collect();
        let mut steps = Steps::begin(at, axes.to);
        let unknown: Vec<usize> = self.unknown().collect();
        let carries: Vec<(ValueId, usize)> =
            unknown.iter().map(|_| steps.carry(at, empty, "written")).collect();
        let place = |s: usize| unknown.iter().position(|u| *u == s).unwrap_or(0);
        let mut solved: Vec<ValueId> = Vec::new();
        for s in &unknown {
            let mut value = steps.slice(at, lefts[*s]);
            for row in rows.iter().filter(|r| r.source == *s) {
                let mut sum = steps.slice(at, row.known);
                for met in &row.met {
                    let mut scores = steps.slice(at, met.scores);
                    if let Some(by_row) = met.by_row {
                        let by_row = steps.slice(at, by_row);
                        scores = at.fn2(Fn2::Mul, scores, by_row);
                    }
                    let more = at.add(Op::Einsum(scores, carries[place(met.source)].0, vec![axes.from]));
                    sum = at.fn2(Fn2::Add, sum, more);
                    if let Some(own) = met.own {
                        let own = steps.slice(at, own);
                        let more = at.fn2(Fn2::Mul, own, solved[place(met.source)]);
                        sum = at.fn2(Fn2::Add, sum, more);
                    }
                }
                let mut slice = |at: &mut TermLowering<'_>, v: Option<ValueId>| v.map(|v| steps.slice(at, v));
                let [rows, beside, scale] = [row.rows, row.beside, row.scale].map(|v| slice(at, v));
                sum = times(at, sum, rows);
                if let Some(beside) = beside {
                    sum = at.fn2(Fn2::Add, sum, beside);
                }
                sum = times(at, sum, scale);
                value = at.fn2(Fn2::Add, value, sum);
            }
            let value = at.spread(value, &[axes.rows]);
            solved.push(value);
        }
        let own = steps.own(at, axes.from);
        for ((before, carry), value) in carries.iter().zip(&solved) {
            let after = at.add(Op::Select(own, *value, *before));
            steps.becomes(*carry, after);
            steps.stack(*value);
        }
        let (_, stacks) = steps.end(at);
        stacks.into_iter().map(|s| at.rename(s, axes.to, axes.from)).collect()
    }
}
