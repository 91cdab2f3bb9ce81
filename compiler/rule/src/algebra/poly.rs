//! Sums of products of powers of atoms: data and the operations that need no context.

use miras_term::TermId;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A float64 with a total order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Real {}
impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        // 0 and -0 are one exponent.
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}

/// A number and the magnitude of what was added up to it, so that a sum that is 0 but for rounding is
/// told from a small number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coefficient {
    pub value: f64,
    magnitude: f64,
}

/// Relative rounding that a handful of float64 additions may leave.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

impl Coefficient {
    pub fn new(value: f64) -> Self {
        Coefficient { value, magnitude: value.abs() }
    }

    pub fn add(self, other: Self) -> Self {
        let value = self.value + other.value;
        let magnitude = self.magnitude + other.magnitude;
        let whole = value.round();
        // 0.7 + 0.3 is 1, and 0.1 + 0.2 - 0.3 is 0.
        let value = if (value - whole).abs() <= ROUNDING * magnitude { whole } else { value };
        Coefficient { value, magnitude }
    }

    pub fn mul(self, other: Self) -> Self {
        Coefficient { value: self.value * other.value, magnitude: self.magnitude * other.magnitude }
    }

    pub fn scale(self, factor: f64) -> Self {
        self.mul(Coefficient::new(factor))
    }
}

/// constant + sum of factor * scalar term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exponent {
    pub constant: Real,
    pub symbols: Vec<(TermId, Real)>,
}

impl Exponent {
    pub fn number(x: f64) -> Self {
        Exponent { constant: Real(x), symbols: Vec::new() }
    }

    pub fn one() -> Self {
        Exponent::number(1.0)
    }

    /// The number, where there are no symbols.
    pub fn as_number(&self) -> Option<f64> {
        self.symbols.is_empty().then_some(self.constant.0)
    }

    /// The whole number, where it is one.
    pub fn as_whole(&self) -> Option<f64> {
        self.as_number().filter(|x| *x == x.trunc())
    }

    pub fn is_zero(&self) -> bool {
        self.as_number() == Some(0.0)
    }

    pub fn add(&self, other: &Self) -> Self {
        let mut symbols: BTreeMap<TermId, Coefficient> = BTreeMap::new();
        for (t, c) in self.symbols.iter().chain(&other.symbols) {
            let c = Coefficient::new(c.0);
            symbols.entry(*t).and_modify(|old| *old = old.add(c)).or_insert(c);
        }
        let constant = Coefficient::new(self.constant.0).add(Coefficient::new(other.constant.0));
        Exponent {
            constant: Real(constant.value),
            symbols: symbols
                .into_iter()
                .filter(|(_, c)| c.value != 0.0)
                .map(|(t, c)| (t, Real(c.value)))
                .collect(),
        }
    }

    pub fn scale(&self, factor: f64) -> Self {
        if factor == 0.0 {
            return Exponent::number(0.0);
        }
        Exponent {
            constant: Real(self.constant.0 * factor),
            symbols: self.symbols.iter().map(|(t, c)| (*t, Real(c.0 * factor))).collect(),
        }
    }
}

/// A product of powers of atoms, each atom once, in the order of their ids. Empty: 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Monomial(pub Vec<(TermId, Exponent)>);

impl Monomial {
    pub fn one() -> Self {
        Monomial::default()
    }

    pub fn power(atom: TermId, exponent: Exponent) -> Self {
        if exponent.is_zero() { Monomial::one() } else { Monomial(vec![(atom, exponent)]) }
    }

    /// The product with exponents added, whatever the atoms may be.
    pub fn raw_mul(&self, other: &Monomial) -> Monomial {
        let mut powers: BTreeMap<TermId, Exponent> = self.0.iter().cloned().collect();
        for (t, e) in &other.0 {
            let sum = powers.get(t).map_or_else(|| e.clone(), |old| old.add(e));
            powers.insert(*t, sum);
        }
        Monomial(powers.into_iter().filter(|(_, e)| !e.is_zero()).collect())
    }

    /// 1 divided by it, exponents negated.
    pub fn raw_inverse(&self) -> Monomial {
        Monomial(self.0.iter().map(|(t, e)| (*t, e.scale(-1.0))).collect())
    }

    /// The exponent of an atom; 0 where it is absent.
    pub fn exponent(&self, atom: TermId) -> Exponent {
        self.0.iter().find(|(t, _)| *t == atom).map_or_else(|| Exponent::number(0.0), |(_, e)| e.clone())
    }

    /// Lexicographic by exponents, lowest atom first: an order that products keep.
    pub fn lexicographic(&self, other: &Monomial) -> Ordering {
        let quotient = self.raw_mul(&other.raw_inverse());
        match quotient.0.first() {
            None => Ordering::Equal,
            Some((_, e)) => e.cmp(&Exponent::number(0.0)),
        }
    }
}

/// A sum of monomials with coefficients that are not 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Poly {
    pub monomials: BTreeMap<Monomial, Coefficient>,
}

impl Poly {
    pub fn zero() -> Self {
        Poly::default()
    }

    pub fn number(x: f64) -> Self {
        Poly::monomial(Coefficient::new(x), Monomial::one())
    }

    pub fn atom(id: TermId) -> Self {
        Poly::monomial(Coefficient::new(1.0), Monomial::power(id, Exponent::one()))
    }

    pub fn monomial(c: Coefficient, m: Monomial) -> Self {
        let mut p = Poly::zero();
        p.put(m, c);
        p
    }

    pub fn put(&mut self, m: Monomial, c: Coefficient) {
        let sum = self.monomials.get(&m).map_or(c, |old| old.add(c));
        if sum.value == 0.0 {
            self.monomials.remove(&m);
        } else {
            self.monomials.insert(m, sum);
        }
    }

    pub fn add(&self, other: &Poly) -> Poly {
        let mut sum = self.clone();
        for (m, c) in &other.monomials {
            sum.put(m.clone(), *c);
        }
        sum
    }

    pub fn scale(&self, factor: f64) -> Poly {
        if factor == 0.0 {
            return Poly::zero();
        }
        Poly { monomials: self.monomials.iter().map(|(m, c)| (m.clone(), c.scale(factor))).collect() }
    }

    pub fn sub(&self, other: &Poly) -> Poly {
        self.add(&other.scale(-1.0))
    }

    pub fn is_zero(&self) -> bool {
        self.monomials.is_empty()
    }

    pub fn len(&self) -> usize {
        self.monomials.len()
    }

    /// The number, where it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self.len() {
            0 => Some(0.0),
            1 => self.monomials.get(&Monomial::one()).map(|c| c.value),
            _ => None,
        }
    }

    /// The only monomial, where there is just one.
    pub fn single(&self) -> Option<(&Monomial, Coefficient)> {
        match self.len() {
            1 => self.monomials.iter().next().map(|(m, c)| (m, *c)),
            _ => None,
        }
    }

    /// The first monomial in the stored order.
    pub fn first(&self) -> Option<(&Monomial, Coefficient)> {
        self.monomials.iter().next().map(|(m, c)| (m, *c))
    }

    /// The monomials for which `keep` holds, and the others.
    pub fn split(&self, mut keep: impl FnMut(&Monomial) -> bool) -> (Poly, Poly) {
        let (mut yes, mut no) = (Poly::zero(), Poly::zero());
        for (m, c) in &self.monomials {
            let side = if keep(m) { &mut yes } else { &mut no };
            side.put(m.clone(), *c);
        }
        (yes, no)
    }

    /// The product with every monomial multiplied by one, exponents added.
    pub fn raw_shift(&self, by: &Monomial) -> Poly {
        let mut p = Poly::zero();
        for (m, c) in &self.monomials {
            p.put(m.raw_mul(by), *c);
        }
        p
    }

    /// The same sum term by term, coefficients equal but for rounding.
    pub fn same(&self, other: &Poly) -> bool {
        self.sub(other).is_zero()
    }

    /// The quotient by a sum where it divides without remainder.
    ///
    /// Monomials may have negative exponents; symbolic ones are refused.
    pub fn divide(&self, by: &Poly) -> Option<Poly> {
        let plain = |p: &Poly| p.monomials.keys().all(|m| m.0.iter().all(|(_, e)| e.symbols.is_empty()));
        if by.is_zero() || !plain(self) || !plain(by) {
            return None;
        }
        let (lead, c) = by.lead()?;
        let (mut rest, mut quotient) = (self.clone(), Poly::zero());
        for _ in 0..=2 * self.len() {
            let Some((top, d)) = rest.lead() else {
                return Some(quotient);
            };
            let m = top.raw_mul(&lead.raw_inverse());
            let factor = d.value / c.value;
            rest = rest.sub(&by.raw_shift(&m).scale(factor));
            if rest.monomials.contains_key(&top) {
                return None;
            }
            quotient.put(m, Coefficient::new(factor));
        }
        rest.is_zero().then_some(quotient)
    }

    fn lead(&self) -> Option<(Monomial, Coefficient)> {
        self.monomials.iter().max_by(|a, b| a.0.lexicographic(b.0)).map(|(m, c)| (m.clone(), *c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(i: u32) -> Poly {
        Poly::atom(TermId(i))
    }

    fn product(a: &Poly, b: &Poly) -> Poly {
        let mut p = Poly::zero();
        for (m, c) in &b.monomials {
            p = p.add(&a.raw_shift(m).scale(c.value));
        }
        p
    }

    #[test]
    fn a_product_divides_by_its_factors_and_by_nothing_else() {
        let one = Poly::number(1.0);
        let (a, b) = (one.sub(&var(1)), one.sub(&var(2)));
        let p = product(&a, &b);
        assert_eq!(p.len(), 4);
        assert!(p.divide(&a).unwrap().same(&b));
        assert!(p.divide(&b).unwrap().same(&a));
        assert!(p.add(&one).divide(&a).is_none());
        assert!(p.divide(&one.add(&var(1))).is_none());
    }

    #[test]
    fn rounding_does_not_keep_a_sum_from_being_zero_or_one() {
        let tenth = |x: f64| var(1).scale(x);
        assert!(tenth(0.1).add(&tenth(0.2)).sub(&tenth(0.3)).is_zero());
        assert!(tenth(0.7).add(&tenth(0.3)).same(&var(1)));
        assert!(!tenth(1e-30).is_zero());
    }
}
