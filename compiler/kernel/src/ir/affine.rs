//! Places in arrays: whole-number affine functions of loop variables.

use super::ArrayId;
use std::collections::BTreeMap;

/// Index of a loop variable in [`super::Program::vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// `constant + sum of coefficient * variable`, counted in elements. Equal functions compare equal: no
/// coefficient is 0. Arithmetic saturates at the ends of 64 bits, which `verify` then finds out of range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// Value where every variable is 0.
    pub constant: i64,
    terms: BTreeMap<VarId, i64>,
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Which array.
    pub array: ArrayId,
    /// Which element of it, from 0.
    pub offset: Affine,
}

impl Access {
    /// `array[offset]`
    pub fn new(array: ArrayId, offset: Affine) -> Access {
        Access { array, offset }
    }

    /// `array[0]`
    pub fn start(array: ArrayId) -> Access {
        Access::new(array, Affine::default())
    }
}

impl Affine {
    /// A number.
    pub fn constant(constant: i64) -> Affine {
        Affine { constant, terms: BTreeMap::new() }
    }

    /// `coefficient * var`
    pub fn term(coefficient: i64, var: VarId) -> Affine {
        Affine::default().plus(coefficient, var)
    }

    /// Adds `coefficient * var`.
    #[must_use]
    pub fn plus(mut self, coefficient: i64, var: VarId) -> Affine {
        let sum = self.coefficient(var).saturating_add(coefficient);
        if sum == 0 {
            self.terms.remove(&var);
        } else {
            self.terms.insert(var, sum);
        }
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn shifted(mut self, by: i64) -> Affine {
        self.constant = self.constant.saturating_add(by);
        self
    }

    /// The sum of two.
    #[must_use]
    pub fn sum(self, other: &Affine) -> Affine {
        let start = self.shifted(other.constant);
        other.terms().fold(start, |a, (v, c)| a.plus(c, v))
    }

    /// The coefficient of a variable, 0 where it does not occur.
    pub fn coefficient(&self, var: VarId) -> i64 {
        self.terms.get(&var).copied().unwrap_or(0)
    }

    /// The terms, by variable; no coefficient is 0.
    pub fn terms(&self) -> impl Iterator<Item = (VarId, i64)> + '_ {
        self.terms.iter().map(|(&v, &c)| (v, c))
    }

    /// Whether any variable satisfies the test.
    pub fn mentions(&self, test: impl Fn(VarId) -> bool) -> bool {
        self.terms.keys().any(|&v| test(v))
    }
}
