//! Whether states and results of a run fit into memory at all.

use super::desk::Desk;
use super::sizes::Sizes;
use crate::limit;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term as term;

/// Checks that what a run allocates for weights, states and results fits into the memory limit.
///
/// The tensors of the file are in memory already; but sizes such as dk = 10^12 with T = 0 take no bytes
/// there and 10^24 numbers here. Every head of every stream counts some bytes, whatever it holds.
pub(crate) fn fits(desk: &mut Desk<'_>, sizes: &Sizes, streams: usize) -> bool {
    let layer = &desk.rule.layer;
    let count = |shape: &term::Shape| {
        let size = |d: &miras_base::Dim| d.eval(&sizes.dims).map_or(u128::MAX, u128::from);
        shape.0.iter().fold(1_u128, |n, d| n.saturating_mul(size(d)))
    };
    let rows = (streams.max(1) as u128).saturating_mul(sizes.heads as u128);
    // Initial, carried, anchor and the one being computed; for a state start, carried and new.
    let mut state = 0_u128;
    for weight in &layer.memory.weights {
        state = state.saturating_add(count(&layer.terms.var(weight.var).shape).saturating_mul(4));
    }
    if let spec::Algo::Step(step) = &layer.algo {
        for s in &step.states {
            state = state.saturating_add(count(&layer.terms.var(s.old).shape).saturating_mul(3));
        }
    }
    for param in &layer.params {
        match param.source {
            spec::Source::Trained(_) | spec::Source::Slow(_) => {
                state = state.saturating_add(count(&layer.terms.var(param.var).shape));
            }
            // These are as large as the file says.
            spec::Source::Learned(_) | spec::Source::Input => {}
        }
    }
    let dv = sizes.dims.get("dv").map_or(0, |n| u128::from(*n));
    let output =
        [sizes.batch, sizes.heads, sizes.tokens].iter().fold(dv, |n, d| n.saturating_mul(*d as u128));
    let copies = if desk.options.grad { 2 } else { 1 };
    let numbers = state.max(1).saturating_mul(rows).saturating_add(output).saturating_mul(copies);
    let bytes =
        numbers.saturating_mul(desk.options.width.bytes() as u128).saturating_add(rows.saturating_mul(64));
    let limit = desk.options.memory_limit.unwrap_or_else(limit::memory);
    if bytes <= u128::from(limit) {
        return true;
    }
    let given: Vec<String> = sizes.dims.iter().map(|(name, n)| format!("{name} = {n}")).collect();
    let message = format!(
        "the run needs {} for weights, states and results, more than the {} there are",
        limit::human(bytes),
        limit::human(u128::from(limit))
    );
    desk.problems.push(
        Diagnostic::new(code::DEVICE_LIMIT, message)
            .with_help("run fewer rows, heads or tokens at a time, or smaller dk and dv")
            .with_note(format!(
                "B = {}, H = {}, T = {}, {}, {streams} streams",
                sizes.batch,
                sizes.heads,
                sizes.tokens,
                given.join(", ")
            )),
    );
    false
}
