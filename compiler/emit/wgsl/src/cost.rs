//! How many turns of loops one invocation makes: some drivers stop silently after a number of them.

use std::collections::BTreeMap;

/// A polynomial in the number of tokens T and that of the past, P = K + T, counted in turns of loops. Saturates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Coefficients, by the powers of T and P.
    by_powers: BTreeMap<(u32, u32), u64>,
}

impl Cost {
    /// So many turns, whatever the number of tokens.
    pub fn fixed(turns: u64) -> Cost {
        Cost { by_powers: BTreeMap::from([((0, 0), turns)]) }
    }

    /// The turns for so many tokens after so many kept ones.
    pub fn at(&self, tokens: u64, kept: u64) -> u64 {
        let past = tokens.saturating_add(kept);
        let term = |(&(t, p), c): (_, &u64)| {
            c.saturating_mul(tokens.saturating_pow(t)).saturating_mul(past.saturating_pow(p))
        };
        self.by_powers.iter().map(term).fold(0, u64::saturating_add)
    }

    /// The turns, where they do not depend on the number of tokens.
    pub fn constant(&self) -> Option<u64> {
        let whole = self.by_powers.keys().all(|powers| *powers == (0, 0));
        whole.then(|| self.at(0, 0))
    }

    /// The turns as text over `T` and `K`.
    pub fn formula(&self) -> String {
        let term = |(&(t, p), c): (_, &u64)| {
            let (tokens, past) = (" * T".repeat(t as usize), " * (K + T)".repeat(p as usize));
            format!("{c}{tokens}{past}")
        };
        let terms: Vec<String> = self.by_powers.iter().map(term).collect();
        if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
    }

    /// One after the other.
    #[must_use]
    pub fn and(mut self, other: &Cost) -> Cost {
        for (powers, theirs) in &other.by_powers {
            let mine = self.by_powers.entry(*powers).or_default();
            *mine = mine.saturating_add(*theirs);
        }
        self
    }

    /// So many turns of a loop with this inside.
    #[must_use]
    pub fn times(&self, turns: u64) -> Cost {
        self.turned(|powers, c| (powers, c.saturating_mul(turns)))
    }

    /// A turn for each token with this inside.
    #[must_use]
    pub fn each_token(&self) -> Cost {
        self.turned(|(t, p), c| ((t.saturating_add(1), p), c))
    }

    /// A turn for each token of the past with this inside.
    #[must_use]
    pub fn each_past(&self) -> Cost {
        self.turned(|(t, p), c| ((t, p.saturating_add(1)), c))
    }

    /// Every turn of a loop is one itself.
    fn turned(&self, by: impl Fn((u32, u32), u64) -> ((u32, u32), u64)) -> Cost {
        let one = self.clone().and(&Cost::fixed(1));
        Cost { by_powers: one.by_powers.into_iter().map(|(powers, c)| by(powers, c)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_through_nested_loops() {
        let inside = Cost::fixed(10).times(3);
        assert_eq!((inside.at(99, 0), inside.constant()), (33, Some(33)));
        let all = inside.each_token().and(&Cost::fixed(5));
        assert_eq!((all.at(0, 9), all.at(1, 9), all.at(100, 9)), (5, 39, 3405));
        assert_eq!(Cost::fixed(u64::MAX).each_token().at(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn a_pass_over_the_past_takes_what_was_kept_too() {
        let pass = Cost::fixed(2).each_past().each_token();
        assert_eq!((pass.at(4, 0), pass.at(4, 6)), (4 + 4 * 4 * 3, 4 + 4 * 10 * 3));
        assert_eq!((pass.formula().as_str(), pass.constant()), ("1 * T + 3 * T * (K + T)", None));
    }
}
