//! From sums of products back to terms, factored where that is shorter.

use super::poly::{Exponent, Monomial, Poly};
use super::ring::{Out, Ring};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::TermId;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A summand with its sign: true where it is added.
type Part = (bool, TermId);

impl Ring<'_> {
    /// A sum as a term, multiplied out, in the shape that its parts have: positive parts first, parts
    /// over the same denominator together (so that 0/0 stays 0/0).
    pub fn write(&mut self, p: &Poly) -> Out<TermId> {
        let id = self.write_parts(p, false)?;
        self.remember(id, p);
        Ok(id)
    }

    /// A sum as a term in which the sums that occurred as factors in what was read, and powers that all
    /// parts share, are drawn out.
    pub fn write_factored(&mut self, p: &Poly) -> Out<TermId> {
        self.write_parts(p, true)
    }

    fn write_parts(&mut self, p: &Poly, factored: bool) -> Out<TermId> {
        let mut parts = Vec::new();
        for (below, above) in self.by_denominator(p) {
            if below.0.is_empty() {
                parts.extend(self.numerator(&above, factored)?);
            } else if let Some((m, c)) = above.single() {
                let whole = m.raw_mul(&below.raw_inverse());
                parts.push((c.value > 0.0, self.write_monomial(&whole, c.value.abs())?));
            } else {
                let positive = above.monomials.values().any(|c| c.value > 0.0);
                let above = if positive { above } else { above.scale(-1.0) };
                let above = self.numerator(&above, factored)?;
                let (above, below) = (self.add_up(above)?, self.write_monomial(&below, 1.0)?);
                parts.push((positive, self.terms.div(above, below)?));
            }
        }
        self.add_up(parts)
    }

    /// The parts of a sum by what they are divided by.
    fn by_denominator(&mut self, p: &Poly) -> BTreeMap<Monomial, Poly> {
        let mut groups: BTreeMap<Monomial, Poly> = BTreeMap::new();
        for (m, c) in &p.monomials {
            let below: Vec<_> =
                m.0.iter()
                    .filter(|(t, e)| e.as_number().is_some_and(|n| n < 0.0) && self.divisible(*t))
                    .map(|(t, e)| (*t, e.scale(-1.0)))
                    .collect();
            let below = Monomial(below);
            let above = m.raw_mul(&below);
            groups.entry(below).or_default().put(above, *c);
        }
        groups
    }

    /// Signed parts of a sum without denominators: one product where it factors.
    fn numerator(&mut self, p: &Poly, factored: bool) -> Out<Vec<Part>> {
        if factored && let Some(product) = self.factored(p)? {
            return Ok(vec![product]);
        }
        let mut parts = Vec::new();
        for (m, c) in &p.monomials {
            parts.push((c.value > 0.0, self.write_monomial(m, c.value.abs())?));
        }
        Ok(parts)
    }

    fn add_up(&mut self, parts: Vec<Part>) -> Out<TermId> {
        let (positive, negative): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| p.0);
        let mut sum: Option<TermId> = None;
        for (sign, part) in positive.into_iter().chain(negative) {
            sum = Some(match (sum, sign) {
                (None, true) => part,
                (None, false) => self.terms.neg(part)?,
                (Some(sum), true) => self.terms.add(sum, part)?,
                (Some(sum), false) => self.terms.sub(sum, part)?,
            });
        }
        Ok(sum.unwrap_or_else(|| self.terms.num(0.0)))
    }

    /// A sum as a signed product, where known factors or powers common to all parts divide it.
    fn factored(&mut self, p: &Poly) -> Out<Option<Part>> {
        let (mut rest, mut factors) = (p.clone(), Vec::new());
        let known: Vec<Rc<Poly>> = self.factors.clone();
        for factor in known {
            while rest.len() > 1
                && let Some(quotient) = rest.divide(&factor)
                && quotient.len() < rest.len()
                && self.by_denominator(&quotient).keys().all(|m| m.0.is_empty())
            {
                factors.push(self.write(&factor)?);
                rest = quotient;
            }
        }
        if factors.is_empty() {
            let (_, content, _) = super::product::primitive(p, false);
            if p.len() < 2 || content.0.is_empty() {
                return Ok(None);
            }
            rest = p.raw_shift(&content.raw_inverse());
            factors.push(self.write_monomial(&content, 1.0)?);
        }
        let positive = rest.monomials.values().any(|c| c.value > 0.0);
        let rest = if positive { rest } else { rest.scale(-1.0) };
        if rest.as_number() != Some(1.0) {
            let parts = self.numerator(&rest, false)?;
            let rest = self.add_up(parts)?;
            let scalar_first = self.extent(rest) == 0;
            factors.insert(if scalar_first { 0 } else { factors.len() }, rest);
        }
        Ok(Some((positive, self.multiply(&factors)?)))
    }

    fn write_monomial(&mut self, m: &Monomial, c: f64) -> Out<TermId> {
        let mut powers = m.0.clone();
        powers.sort_by_key(|(t, _)| (self.extent(*t), *t));
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for (t, e) in powers {
            let divides = e.as_number().is_some_and(|n| n < 0.0) && self.divisible(t);
            let (side, e) = if divides { (&mut below, e.scale(-1.0)) } else { (&mut above, e) };
            side.push(self.write_power(t, &e)?);
        }
        let by = 1.0 / c;
        let fraction = c < 1.0 && by == by.round() && by < 1e9 && 1.0 / by == c;
        if fraction && !above.is_empty() {
            below.insert(0, self.terms.num(by));
        } else if c != 1.0 || above.is_empty() {
            above.insert(0, self.terms.num(c));
        }
        let above = self.multiply(&above)?;
        if below.is_empty() {
            return Ok(above);
        }
        let below = self.multiply(&below)?;
        Ok(self.terms.div(above, below)?)
    }

    fn multiply(&mut self, factors: &[TermId]) -> Out<TermId> {
        let mut product: Option<TermId> = None;
        for f in factors {
            product = Some(match product {
                Some(product) => self.terms.mul(product, *f)?,
                None => *f,
            });
        }
        Ok(product.unwrap_or_else(|| self.terms.num(1.0)))
    }

    /// Whether a negative power of an atom may be written as a division.
    fn divisible(&mut self, t: TermId) -> bool {
        !self.reciprocals.contains(&t) || self.nonzero(t)
    }

    fn write_power(&mut self, t: TermId, e: &Exponent) -> Out<TermId> {
        match e.as_number() {
            Some(1.0) => Ok(t),
            Some(0.5) => Ok(self.terms.fn1(Fn1::Sqrt, t)?),
            _ => {
                let e = self.exponent_poly(e)?;
                let e = self.write(&e)?;
                Ok(self.terms.fn2(Fn2::Pow, t, e)?)
            }
        }
    }

    /// Number of axes longer than 1: scalars come before vectors in a product.
    fn extent(&self, t: TermId) -> usize {
        self.terms.shape(t).0.iter().filter(|d| !d.is_one()).count()
    }
}
