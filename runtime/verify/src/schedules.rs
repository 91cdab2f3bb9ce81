//! The chunked schedule against the recurrence, as a function of the chunk's length.

use crate::measure::worst;
use crate::report::{Row, Section};
use crate::{Case, Failure, Reference, Runner};
use miras_host as host;
use miras_spec as spec;

/// How far chunks of one length are from the recurrence, both in float64 by the definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkError {
    /// The chunk's length.
    pub chunk: u32,
    /// Error of the outputs, max |a - b| / max |b|.
    pub outputs: f64,
}

/// What an exact schedule may differ by in float64.
const EXACT: f64 = 1e-12;

/// Chunk lengths to measure for so many tokens: powers of 2 up to the first that holds them all, and `own`.
pub fn chunk_lengths(tokens: usize, own: u32) -> Vec<u32> {
    let mut lengths: Vec<u32> =
        (0..12).map(|n| 1 << n).take_while(|c| (*c as usize) < 2 * tokens.max(1)).collect();
    lengths.push(own);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// The error of the chunked schedule by chunk length.
///
/// # Errors
/// Those of the reference.
pub fn curve(case: &Case<'_>, tokens: usize) -> Result<Vec<ChunkError>, Failure> {
    let mut reference = Reference::new(case.rule);
    let recurrent = reference.run(case.data, host::Schedule::Recurrent, false)?;
    let at = |chunk: u32| {
        let chunked = Reference::new(case.rule).run(case.data, host::Schedule::Chunked(chunk), false)?;
        Ok(ChunkError { chunk, outputs: worst(&chunked, &recurrent, |n| n == "o").0 })
    };
    chunk_lengths(tokens, case.chunk).into_iter().map(at).collect()
}

pub(crate) fn section(case: &Case<'_>, curve: &[ChunkError]) -> Section {
    let mut rows = Vec::new();
    for point in curve {
        let what = format!("chunked({}): outputs", point.chunk);
        rows.push(match case.exact {
            true => Row::promised(what, point.outputs, EXACT),
            false => Row::measured(what, point.outputs, ""),
        });
    }
    let about = match (case.exact, &case.rule.layer.algo) {
        (_, spec::Algo::Weigh(_)) => "A history has the same answer in chunks as token by token.",
        (true, _) => {
            "The definition in chunks against token by token, float64: a form of the same recurrence."
        }
        (false, _) => {
            "The definition in chunks, gradients frozen at each chunk's start, against token by token, float64. \
             This is what the approximation costs on this data; nothing is promised."
        }
    };
    Section { title: "Chunks against the recurrence".into(), about: about.into(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_end_with_one_chunk_for_all() {
        assert_eq!(chunk_lengths(5, 64), [1, 2, 4, 8, 64]);
        assert_eq!(chunk_lengths(0, 3), [1, 3]);
    }
}
