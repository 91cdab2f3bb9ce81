//! Windows: the turns of a stage's loop shared out over launches that no driver cuts short.

use crate::fault;
use miras_base::Diagnostic;
use miras_emit_wgsl::plan::MAX_TURNS;
use miras_emit_wgsl::{Module, Stage, Turns};

/// One launch of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Which stage.
    pub stage: usize,
    /// Turns of its loop, from, and up to but not including.
    pub turns: (u32, u32),
}

/// The launches of a module, in order, for tasks of at most so many tokens. `stops` is the number of turns after
/// which the device stops an invocation, if it does.
pub(crate) fn launches(
    module: &Module,
    tokens: usize,
    stops: Option<u64>,
) -> Result<Vec<Launch>, Diagnostic> {
    let mut all = Vec::new();
    for (at, stage) in module.stages.iter().enumerate() {
        let cost = stage.cost.at(tokens as u64).saturating_add(1);
        if let Some(most) = stops.filter(|most| cost > *most) {
            return Err(fault::limit(format!(
                "`{}` makes {cost} turns of loops at a time in `{}`; the device stops after {most}",
                module.name, stage.entry
            )));
        }
        all.extend(windows(at, stage, tokens, (MAX_TURNS / cost).max(1))?);
    }
    Ok(all)
}

fn windows(at: usize, stage: &Stage, tokens: usize, window: u64) -> Result<Vec<Launch>, Diagnostic> {
    let turns = match stage.turns {
        Turns::Once => return Ok(vec![Launch { stage: at, turns: (0, 0) }]),
        Turns::Const(n) => n,
        Turns::Tokens => tokens as u64,
    };
    let too_many = || fault::limit(format!("a loop of {turns} turns is more than 32 bits count"));
    let turns = u32::try_from(turns).map_err(|_| too_many())?;
    let window = u32::try_from(window).unwrap_or(u32::MAX);
    let firsts = (0..turns).step_by(window as usize);
    Ok(firsts
        .map(|first| Launch { stage: at, turns: (first, first.saturating_add(window).min(turns)) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_emit_wgsl::Cost;

    #[test]
    fn windows_cover_every_turn_once() {
        let stage = Stage { entry: "each_t".into(), turns: Turns::Tokens, cost: Cost::fixed(99) };
        let all = windows(0, &stage, 1500, 600).unwrap();
        let turns: Vec<_> = all.iter().map(|l| l.turns).collect();
        assert_eq!(turns, [(0, 600), (600, 1200), (1200, 1500)]);
        assert_eq!(windows(0, &stage, 0, 600).unwrap(), []);
    }
}
