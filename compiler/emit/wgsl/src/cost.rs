//! How many turns of loops one invocation makes: some drivers stop silently after a number of them.

/// A polynomial in the number of tokens, counted in turns of loops. Saturates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Coefficients of T^0, T^1, ...
    by_power: Vec<u64>,
}

impl Cost {
    /// So many turns, whatever the number of tokens.
    pub fn fixed(turns: u64) -> Cost {
        Cost { by_power: vec![turns] }
    }

    /// The turns for so many tokens.
    pub fn at(&self, tokens: u64) -> u64 {
        let down = self.by_power.iter().rev();
        down.fold(0_u64, |sum, c| sum.saturating_mul(tokens).saturating_add(*c))
    }

    /// The turns as text over `T`.
    pub fn formula(&self) -> String {
        let term = |(power, c): (usize, &u64)| match power {
            0 => c.to_string(),
            n => format!("{c}{}", " * T".repeat(n)),
        };
        let terms: Vec<String> = self.by_power.iter().enumerate().map(term).collect();
        if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
    }

    /// One after the other.
    #[must_use]
    pub fn and(mut self, other: &Cost) -> Cost {
        let len = self.by_power.len().max(other.by_power.len());
        self.by_power.resize(len, 0);
        for (mine, theirs) in self.by_power.iter_mut().zip(&other.by_power) {
            *mine = mine.saturating_add(*theirs);
        }
        self
    }

    /// So many turns of a loop with this inside.
    #[must_use]
    pub fn times(&self, turns: u64) -> Cost {
        let one = self.clone().and(&Cost::fixed(1));
        Cost { by_power: one.by_power.iter().map(|c| c.saturating_mul(turns)).collect() }
    }

    /// A turn for each token with this inside.
    #[must_use]
    pub fn each_token(&self) -> Cost {
        let mut one = self.clone().and(&Cost::fixed(1));
        one.by_power.insert(0, 0);
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_through_nested_loops() {
        let inside = Cost::fixed(10).times(3);
        assert_eq!(inside.at(99), 33);
        let all = inside.each_token().and(&Cost::fixed(5));
        assert_eq!((all.at(0), all.at(1), all.at(100)), (5, 39, 3405));
        assert_eq!(Cost::fixed(u64::MAX).each_token().at(u64::MAX), u64::MAX);
    }
}
