//! Windows: the turns of a stage's loop shared out over launches that no driver cuts short, and invocations for
//! tokens over launches that no limit of groups refuses; repeated launches, turn by turn.

use crate::fault;
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::{MAX_GROUPS, MAX_TURNS};
use miras_emit_wgsl::{Each, LANES, Launches, Module, Pass, Stage, Turns};
use miras_kernel::Order;
use std::ops::Range;

/// One launch of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Which stage.
    pub stage: usize,
    /// Turns of its loop, from, and up to but not including.
    pub turns: (u32, u32),
    /// Tokens before the first that has an invocation.
    pub skip: u32,
    /// Workgroups along z.
    pub tiles: u32,
    /// The turns of repeated launches, by [`miras_emit_wgsl::Layout::rounds`]; 0 of those that it is not inside of.
    pub rounds: Vec<u32>,
    /// Turns of loops that an invocation makes, about.
    pub work: u64,
}

/// How long the longest tasks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Tokens of a run.
    pub tokens: usize,
    /// Tokens kept from before.
    pub kept: usize,
}

/// What the launches of a pass are made for.
pub(crate) struct Span<'a> {
    pub module: &'a Module,
    /// These tokens of tasks.
    pub piece: Range<usize>,
    /// Of at most such lengths.
    pub lengths: Lengths,
    /// The number of turns after which the device stops an invocation, if it does.
    pub stops: Option<u64>,
}

/// Hands the launches of a pass on, in order.
pub(crate) fn launches(
    span: &Span<'_>,
    pass: &Pass,
    take: &mut impl FnMut(Launch) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut rounds = vec![0; span.module.layout.rounds.len()];
    span.all(&pass.launches, &mut rounds, take)
}

impl Span<'_> {
    fn all(
        &self,
        launches: &[Launches],
        rounds: &mut Vec<u32>,
        take: &mut impl FnMut(Launch) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        for one in launches {
            match one {
                Launches::Stage(at) => self.stage(*at, rounds, take)?,
                Launches::Repeat(repeat) => {
                    for turn in turns(repeat.turns, &self.piece, self.lengths)?.unwrap_or_default() {
                        let round = rounds.get_mut(repeat.round);
                        *round.ok_or_else(|| Diagnostic::bug("a repetition has no number"))? = turn;
                        self.all(&repeat.body, rounds, take)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn stage(
        &self,
        at: usize,
        rounds: &[u32],
        take: &mut impl FnMut(Launch) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let missing = || Diagnostic::bug("a launch of a stage that is not there");
        let stage = self.module.stages.get(at).ok_or_else(missing)?;
        let cost = self.cost(stage)?;
        let turns = turns(stage.turns, &self.piece, self.lengths)?;
        for (skip, tiles) in tiles(stage, &self.piece)? {
            let launch = |turns: (u32, u32)| {
                let work = cost.saturating_mul(u64::from(turns.1.saturating_sub(turns.0)).max(1));
                Launch { stage: at, turns, skip, tiles, rounds: rounds.to_vec(), work }
            };
            match &turns {
                None => take(launch((0, 0)))?,
                Some(turns) => {
                    let mut windows = windows(turns.clone(), (MAX_TURNS / cost).max(1));
                    windows.try_for_each(|turns| take(launch(turns)))?;
                }
            }
        }
        Ok(())
    }

    /// Turns of loops that an invocation makes in a launch, or in each turn of its stage's loop.
    fn cost(&self, stage: &Stage) -> Result<u64, Diagnostic> {
        let cost = stage.cost.at(self.lengths.tokens as u64, self.lengths.kept as u64).saturating_add(1);
        match self.stops.filter(|most| cost > *most) {
            None => Ok(cost),
            Some(most) => Err(fault::limit(format!(
                "`{}` makes {cost} turns of loops at a time in `{}`; the device stops after {most}",
                self.module.name, stage.entry
            ))),
        }
    }
}

/// The turns of a loop for some tokens, `None` where there is no loop.
fn turns(turns: Turns, piece: &Range<usize>, lengths: Lengths) -> Result<Option<Range<u32>>, Diagnostic> {
    let past = lengths.tokens.saturating_add(lengths.kept);
    let turns = match turns {
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
        Each::Parts(groups) => Ok(vec![(0, groups)]),
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
        Stage { entry: "each_t".into(), turns, each, streams: true, cost: Cost::fixed(99) }
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
        let of = |turns| super::turns(turns, &(2..6), lengths).unwrap();
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
        assert_eq!(tiles(&stage(Turns::Once, Each::Parts(7)), &(0..9)).unwrap(), [(0, 7)]);
    }
}
