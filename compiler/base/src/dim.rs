//! Symbolic dimensions: polynomials over `dk` and `dv` with whole coefficients.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A symbolic dimension such as `dk`, `4*dk` or `3`. Two dimensions are equal when their polynomials
/// are; the display name (`hidden`) takes no part in that.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Monomial (sorted symbols) -> coefficient; no zero coefficients.
    terms: BTreeMap<Vec<Arc<str>>, i64>,
    name: Option<Arc<str>>,
}

/// Sizes of the symbols in one run.
pub type DimEnv = BTreeMap<Arc<str>, u64>;

impl PartialEq for Dim {
    fn eq(&self, other: &Self) -> bool {
        self.terms == other.terms
    }
}
impl Eq for Dim {}
impl Hash for Dim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.terms.hash(state);
    }
}

impl Dim {
    /// The symbol `name`.
    pub fn symbol(name: &str) -> Dim {
        Dim { terms: BTreeMap::from([(vec![Arc::from(name)], 1)]), name: None }
    }

    /// A number.
    pub fn constant(n: i64) -> Dim {
        Dim { terms: if n == 0 { BTreeMap::new() } else { BTreeMap::from([(vec![], n)]) }, name: None }
    }

    /// The key dimension.
    pub fn dk() -> Dim {
        Dim::symbol("dk")
    }

    /// The value dimension.
    pub fn dv() -> Dim {
        Dim::symbol("dv")
    }

    /// 1: the size of a broadcast axis.
    pub fn one() -> Dim {
        Dim::constant(1)
    }

    /// The same dimension shown as `name`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Dim {
        self.name = Some(Arc::from(name));
        self
    }

    /// Whether it is the number 1.
    pub fn is_one(&self) -> bool {
        self.as_constant() == Some(1)
    }

    /// The number, where it is one.
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&vec![] as &Vec<Arc<str>>).copied(),
            _ => None,
        }
    }

    /// Whether no positive sizes of the symbols make the two equal, as far as signs tell: their
    /// difference has terms of one sign only.
    pub fn never_equals(&self, other: &Dim) -> bool {
        let Some(difference) = other.neg().and_then(|n| self.add(&n)) else {
            return false;
        };
        let signs: Vec<bool> = difference.terms.values().map(|c| *c > 0).collect();
        !signs.is_empty() && signs.iter().all(|s| *s == signs[0])
    }

    /// Whether it is positive for all sizes of its symbols (which are at least 1), for none, or (None) for some,
    /// as far as signs tell: the polynomial is written in what the symbols exceed 1 by.
    pub fn is_positive(&self) -> Option<bool> {
        let mut shifted = Dim::constant(0);
        for (monomial, c) in &self.terms {
            let mut product = Dim::constant(*c);
            for symbol in monomial {
                product = product.mul(&Dim::symbol(symbol).add(&Dim::one())?)?;
            }
            shifted = shifted.add(&product)?;
        }
        let at_one = shifted.terms.get(&vec![] as &Vec<Arc<str>>).copied().unwrap_or(0);
        let signs = |wrong: fn(&i64) -> bool| !shifted.terms.values().any(wrong);
        match at_one {
            1.. if signs(|c| *c < 0) => Some(true),
            ..=0 if signs(|c| *c > 0) => Some(false),
            _ => None,
        }
    }

    /// Sum; None on overflow.
    pub fn add(&self, other: &Dim) -> Option<Dim> {
        let mut terms = self.terms.clone();
        for (m, c) in &other.terms {
            let slot = terms.entry(m.clone()).or_insert(0);
            *slot = slot.checked_add(*c)?;
        }
        terms.retain(|_, c| *c != 0);
        Some(Dim { terms, name: None })
    }

    /// Two sizes, none ever negative, whose difference it is: the parts with positive coefficients, and the others
    /// negated. None on overflow.
    pub fn parts(&self) -> Option<(Dim, Dim)> {
        let part = |keep: fn(i64) -> bool| Dim {
            terms: self.terms.iter().filter(|(_, c)| keep(**c)).map(|(m, c)| (m.clone(), *c)).collect(),
            name: None,
        };
        Some((part(|c| c > 0), part(|c| c < 0).neg()?))
    }

    /// Negation; None on overflow.
    pub fn neg(&self) -> Option<Dim> {
        let mut terms = BTreeMap::new();
        for (m, c) in &self.terms {
            terms.insert(m.clone(), c.checked_neg()?);
        }
        Some(Dim { terms, name: None })
    }

    /// Product; None on overflow.
    pub fn mul(&self, other: &Dim) -> Option<Dim> {
        let mut terms: BTreeMap<Vec<Arc<str>>, i64> = BTreeMap::new();
        for (m, c) in &self.terms {
            for (n, d) in &other.terms {
                let mut monomial = [m.as_slice(), n.as_slice()].concat();
                monomial.sort();
                let slot = terms.entry(monomial).or_insert(0);
                *slot = slot.checked_add(c.checked_mul(*d)?)?;
            }
        }
        terms.retain(|_, c| *c != 0);
        Some(Dim { terms, name: None })
    }

    /// The size in one run; None where a symbol has no size, or the result is negative or overflows.
    pub fn eval(&self, env: &DimEnv) -> Option<u64> {
        let mut sum: i64 = 0;
        for (monomial, c) in &self.terms {
            let mut product = *c;
            for s in monomial {
                product = product.checked_mul(i64::try_from(*env.get(s)?).ok()?)?;
            }
            sum = sum.checked_add(product)?;
        }
        u64::try_from(sum).ok()
    }

    /// The polynomial written out, e.g. `4*dk`, whatever the display name.
    pub fn formula(&self) -> String {
        if self.terms.is_empty() {
            return "0".into();
        }
        let mut text = String::new();
        for (monomial, c) in self.terms.iter().rev() {
            let sign = if *c < 0 {
                "-"
            } else if text.is_empty() {
                ""
            } else {
                "+"
            };
            let spaced = !text.is_empty();
            let body = match (monomial.is_empty(), c.unsigned_abs()) {
                (true, c) => c.to_string(),
                (false, 1) => monomial.join("*"),
                (false, c) => format!("{c}*{}", monomial.join("*")),
            };
            text += &if spaced { format!(" {sign} {body}") } else { format!("{sign}{body}") };
        }
        text
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => f.write_str(&self.formula()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_never_negative_and_differ_by_the_whole() {
        let dim = Dim::constant(3).add(&Dim::dk().neg().unwrap()).unwrap();
        let (more, less) = dim.parts().unwrap();
        assert_eq!((more.clone(), less.clone()), (Dim::constant(3), Dim::dk()));
        assert_eq!(more.add(&less.neg().unwrap()), Some(dim));
    }

    #[test]
    fn polynomials_compare_by_value() {
        let four = Dim::constant(4);
        let hidden = four.mul(&Dim::dk()).unwrap().named("hidden");
        assert_eq!(hidden, Dim::dk().mul(&four).unwrap());
        assert_eq!(hidden.to_string(), "hidden");
        assert_eq!(hidden.formula(), "4*dk");
        assert_eq!(hidden.eval(&DimEnv::from([(Arc::from("dk"), 8)])), Some(32));
        assert_eq!(hidden.eval(&DimEnv::new()), None);
        assert_eq!(hidden.is_positive(), Some(true));
        let less = |n| Dim::dk().add(&Dim::constant(n)).unwrap();
        assert_eq!([less(-9), less(-1), less(0)].map(|d| d.is_positive()), [None, None, Some(true)]);
        assert_eq!(less(0).neg().and_then(|d| d.add(&Dim::one())).unwrap().is_positive(), Some(false));
        let zero = Dim::dk().add(&Dim::dk().neg().unwrap()).unwrap();
        assert_eq!(zero.as_constant(), Some(0));
    }
}
