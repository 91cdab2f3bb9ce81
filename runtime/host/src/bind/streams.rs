//! Streams: rows of the batch, or segments of one packed row.

use super::bound::Stream;
use super::desk::Desk;
use super::sizes::Sizes;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;

/// The streams (at position 0), and whether they are packed.
pub(super) fn streams(desk: &mut Desk<'_>, sizes: &Sizes) -> Option<(Vec<Stream>, bool)> {
    let there = desk.bundle.has("segments");
    let cuts = desk.integers("segments", "N+1", None, "packed input");
    let Some(cuts) = cuts else {
        let row = |row| Stream { row, first: 0, last: sizes.tokens, position: 0 };
        return (!there).then(|| ((0..sizes.batch).map(row).collect(), false));
    };
    if sizes.batch != 1 {
        let message = format!("`segments` is given, but B is {}", sizes.batch);
        desk.problems.push(
            Diagnostic::new(code::SEGMENTS, message)
                .with_help("lay the sequences end to end along T with B = 1, or leave `segments` out"),
        );
        return None;
    }
    match ranges(cuts, sizes.tokens) {
        Ok(ranges) => {
            let stream = |(first, last)| Stream { row: 0, first, last, position: 0 };
            Some((ranges.into_iter().map(stream).collect(), true))
        }
        Err(why) => {
            let message = format!("`segments` does not cut the {} tokens: {why}", sizes.tokens);
            desk.problems.push(Diagnostic::new(code::SEGMENTS, message).with_help(RULE));
            None
        }
    }
}

/// What cuts must be.
pub(super) const RULE: &str = "N segments are N+1 numbers (N at least 1): the first 0, the last the number of \
                               tokens, none smaller than the one before it";

/// The ranges between cuts, or what is wrong with them.
pub(super) fn ranges(cuts: &[i64], end: usize) -> Result<Vec<(usize, usize)>, String> {
    let [first, .., last] = cuts else {
        return Err(format!("it has {} numbers", cuts.len()));
    };
    if *first != 0 {
        return Err(format!("its first number is {first}, not 0"));
    }
    if let Some(i) = cuts.windows(2).position(|w| w[1] < w[0]) {
        return Err(format!("number {} is {}, smaller than {} before it", i + 1, cuts[i + 1], cuts[i]));
    }
    if usize::try_from(*last) != Ok(end) {
        return Err(format!("its last number is {last}, not {end}"));
    }
    // All lie between 0 and `end` now.
    Ok(cuts.windows(2).map(|w| (w[0] as usize, w[1] as usize)).collect())
}
