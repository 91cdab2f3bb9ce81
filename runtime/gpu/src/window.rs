//! Windows: the turns of a stage's loop shared out over launches that no driver cuts short, and invocations for
//! tokens over launches that no limit of groups refuses.

use crate::fault;
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::{MAX_GROUPS, MAX_TURNS};
use miras_emit_wgsl::{Each, LANES, Module, Stage, Turns};
use miras_kernel::Order;
use std::ops::Range;

/// One launch of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Which stage.
    pub stage: usize,
    /// Turns of its loop, from, and up to but not including.
    pub turns: (u32, u32),
    /// Tokens before the first that has an invocation.
    pub skip: u32,
    /// Workgroups along z.
    pub tiles: u32,
}

/// How long the longest tasks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Tokens of a run.
    pub tokens: usize,
    /// Tokens kept from before.
    pub kept: usize,
}

/// The numbers of the passes of a module, in order, each with whether it goes from token to token and in which order.
pub(crate) fn passes(module: &Module) -> Vec<(usize, Option<Order>)> {
    let mut all: Vec<(usize, Option<Order>)> = Vec::new();
    for stage in &module.stages {
        let order = match (stage.turns, stage.each) {
            (Turns::Tokens(order), Each::Task) => Some(order),
            (Turns::Once | Turns::Const(_) | Turns::Past, Each::Task) => None,
            (_, Each::Token) => Some(Order::Ascending),
        };
        if all.last().is_none_or(|(pass, _)| *pass != stage.pass) {
            all.push((stage.pass, order));
        }
    }
    all
}

/// The launches of a pass, in order, for these tokens of tasks of at most such lengths. `stops` is the number of
/// turns after which the device stops an invocation, if it does.
pub(crate) fn launches(
    module: &Module,
    pass: usize,
    piece: Range<usize>,
    lengths: Lengths,
    stops: Option<u64>,
) -> Result<Vec<Launch>, Diagnostic> {
    let mut all = Vec::new();
    for (at, stage) in module.stages.iter().enumerate().filter(|(_, s)| s.pass == pass) {
        let cost = stage.cost.at(lengths.tokens as u64, lengths.kept as u64).saturating_add(1);
        if let Some(most) = stops.filter(|most| cost > *most) {
            return Err(fault::limit(format!(
                "`{}` makes {cost} turns of loops at a time in `{}`; the device stops after {most}",
                module.name, stage.entry
            )));
        }
        let turns = turns(stage, &piece, lengths)?;
        for (skip, tiles) in tiles(stage, &piece)? {
            let launch = |turns| Launch { stage: at, turns, skip, tiles };
            match &turns {
                None => all.push(launch((0, 0))),
                Some(turns) => {
                    all.extend(windows(turns.clone(), (MAX_TURNS / cost).max(1)).map(launch));
                }
            }
        }
    }
    Ok(all)
}

/// The turns of a stage's loop for some tokens, `None` where it has no loop.
fn turns(stage: &Stage, piece: &Range<usize>, lengths: Lengths) -> Result<Option<Range<u32>>, Diagnostic> {
    let past = lengths.tokens.saturating_add(lengths.kept);
    let turns = match stage.turns {
        Turns::Once => return Ok(None),
        Turns::Const(n) => (0, n),
        Turns::Past => (0, past as u64),
        Turns::Tokens(Order::Ascending) => (piece.start as u64, piece.end as u64),
        Turns::Tokens(Order::Descending) => {
            ((lengths.tokens - piece.end) as u64, (lengths.tokens - piece.start) as u64)
        }
    };
    Ok(Some(number(turns.0)?..number(turns.1)?))
}

/// Where the invocations for some tokens begin, and how many workgroups they are.
fn tiles(stage: &Stage, piece: &Range<usize>) -> Result<Vec<(u32, u32)>, Diagnostic> {
    match stage.each {
        Each::Task => Ok(vec![(0, 1)]),
        Each::Token => {
            let (first, end) = (number(piece.start as u64)?, number(piece.end as u64)?);
            let most = MAX_GROUPS * LANES;
            let starts = (first..end).step_by(most as usize);
            Ok(starts.map(|skip| (skip, (end - skip).min(most).div_ceil(LANES))).collect())
        }
    }
}

fn number(n: u64) -> Result<u32, Diagnostic> {
    u32::try_from(n).map_err(|_| fault::limit(format!("a loop of {n} turns is more than 32 bits count")))
}

fn windows(turns: Range<u32>, window: u64) -> impl Iterator<Item = (u32, u32)> {
    let window = u32::try_from(window).unwrap_or(u32::MAX);
    let end = turns.end;
    turns.step_by(window as usize).map(move |first| (first, first.saturating_add(window).min(end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_emit_wgsl::Cost;

    fn stage(turns: Turns, each: Each) -> Stage {
        Stage { entry: "each_t".into(), turns, each, pass: 0, streams: true, cost: Cost::fixed(99) }
    }

    #[test]
    fn windows_cover_every_turn_once() {
        let all: Vec<_> = windows(0..1500, 600).collect();
        assert_eq!(all, [(0, 600), (600, 1200), (1200, 1500)]);
        assert_eq!(windows(0..0, 600).count(), 0);
    }

    #[test]
    fn a_piece_of_the_tokens_is_counted_in_the_order_of_the_loop() {
        let lengths = Lengths { tokens: 10, kept: 5 };
        let of = |turns| super::turns(&stage(turns, Each::Task), &(2..6), lengths).unwrap();
        assert_eq!(of(Turns::Tokens(Order::Ascending)), Some(2..6));
        assert_eq!(of(Turns::Tokens(Order::Descending)), Some(4..8));
        assert_eq!(of(Turns::Past), Some(0..15));
        assert_eq!(of(Turns::Once), None);
    }

    #[test]
    fn more_tokens_than_groups_hold_are_launched_in_turn() {
        let token = stage(Turns::Once, Each::Token);
        let most = 65_535 * 256;
        assert_eq!(tiles(&token, &(0..most)).unwrap(), [(0, 65_535)]);
        assert_eq!(tiles(&token, &(0..most + 1)).unwrap(), [(0, 65_535), (most as u32, 1)]);
        assert_eq!(tiles(&token, &(512..600)).unwrap(), [(512, 1)]);
        assert_eq!(tiles(&stage(Turns::Once, Each::Task), &(0..9)).unwrap(), [(0, 1)]);
    }
}
