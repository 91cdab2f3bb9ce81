//! Products, powers and reciprocals in the ring.

use super::poly::{Coefficient, Exponent, Monomial, Poly, Real};
use super::ring::{Halt, LONGEST, Out, Ring};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::TermId;
use std::collections::BTreeMap;

type Powers = BTreeMap<TermId, Exponent>;

/// The highest whole power of a sum that is multiplied out.
const HIGHEST: f64 = 6.0;

impl Ring<'_> {
    /// The product of two sums, multiplied out.
    pub fn mul(&mut self, a: &Poly, b: &Poly) -> Out<Poly> {
        if a.len() * b.len() > LONGEST {
            return Err(Halt::Work);
        }
        let mut sum = Poly::zero();
        for (m, c) in &a.monomials {
            for (n, d) in &b.monomials {
                self.spend(1)?;
                let product = self.mul_monomials(m, n)?;
                let factor = c.mul(*d);
                for (p, e) in product.monomials {
                    sum.put(p, e.mul(factor));
                }
            }
        }
        self.reduce(sum)
    }

    fn mul_monomials(&mut self, a: &Monomial, b: &Monomial) -> Out<Poly> {
        let mut powers: Powers = a.0.iter().cloned().collect();
        for (t, e) in &b.0 {
            let sum = powers.get(t).map_or_else(|| e.clone(), |old| old.add(e));
            if !sum.is_zero() {
                powers.insert(*t, sum);
                continue;
            }
            powers.remove(t);
            if !self.nonzero(*t) {
                // x / x is 1 except at 0, where it is 0.
                let ratio = self.terms.div(*t, *t)?;
                powers.insert(ratio, Exponent::one());
            }
        }
        self.normalise(powers)
    }

    /// A product of powers with exponentials joined, signs and magnitudes joined, and whole powers of
    /// sums multiplied out.
    pub(super) fn normalise(&mut self, mut powers: Powers) -> Out<Poly> {
        self.spend(1)?;
        let mut others = Vec::new();
        if let Some(e) = self.join_exponentials(&mut powers)? {
            others.push(e);
        }
        others.extend(self.join_signs(&mut powers)?);
        let sums: Vec<(TermId, f64)> =
            powers.iter().filter_map(|(t, e)| e.as_whole().filter(|n| *n > 0.0).map(|n| (*t, n))).collect();
        for (t, n) in sums {
            let p = self.poly(t)?;
            if p.len() > 1 {
                powers.remove(&t);
                others.push(self.whole_power(&p, n)?);
            }
        }
        let mut product = Poly::monomial(Coefficient::new(1.0), Monomial(powers.into_iter().collect()));
        for other in others {
            product = self.mul(&product, &other)?;
        }
        Ok(product)
    }

    /// e^a e^b = e^(a + b), (e^a)^n = e^(n a).
    fn join_exponentials(&mut self, powers: &mut Powers) -> Out<Option<Poly>> {
        let found: Vec<(TermId, Exponent)> = powers
            .iter()
            .filter(|(t, _)| self.argument_of(Fn1::Exp, **t).is_some())
            .map(|(t, e)| (*t, e.clone()))
            .collect();
        if found.is_empty() || (found.len() == 1 && found[0].1 == Exponent::one()) {
            return Ok(None);
        }
        let mut sum = Poly::zero();
        for (t, e) in found {
            powers.remove(&t);
            let Some(argument) = self.argument_of(Fn1::Exp, t) else {
                continue;
            };
            let (argument, e) = (self.poly(argument)?, self.exponent_poly(&e)?);
            sum = sum.add(&self.mul(&argument, &e)?);
        }
        Ok(Some(self.exp(&sum)?))
    }

    /// sign(x)^a |x|^b x^c as one power of x or |x|, with sign(x) where the parity asks for it.
    fn join_signs(&mut self, powers: &mut Powers) -> Out<Vec<Poly>> {
        let arguments: Vec<TermId> = powers
            .keys()
            .filter_map(|t| self.argument_of(Fn1::Sign, *t).or_else(|| self.argument_of(Fn1::Abs, *t)))
            .collect();
        let mut found = Vec::new();
        for x in arguments {
            found.extend(self.join_sign_of(x, powers)?);
        }
        Ok(found)
    }

    fn join_sign_of(&mut self, x: TermId, powers: &mut Powers) -> Out<Option<Poly>> {
        let (sign, magnitude) = (self.terms.fn1(Fn1::Sign, x)?, self.terms.fn1(Fn1::Abs, x)?);
        let number = |t: &TermId| powers.get(t).map_or(Some(0.0), Exponent::as_number);
        let (Some(a), Some(b), Some(c)) = (number(&sign), number(&magnitude), number(&x)) else {
            return Ok(None);
        };
        let whole = |n: f64| n == n.trunc();
        if a < 0.0 || !whole(a) || !whole(c) {
            return Ok(None);
        }
        let (odd, size) = ((a + c) % 2.0 != 0.0, b + c);
        let even_size = size % 2.0 == 0.0;
        // Exponents of sign(x), |x| and x that say the same.
        let joined = match (odd, whole(size)) {
            (_, false) => (if odd { 1.0 } else { 0.0 }, size, 0.0),
            (false, true) if size == 0.0 && !self.nonzero(x) => (a.min(2.0), b, c),
            (false, true) if even_size => (0.0, 0.0, size),
            (false, true) => (0.0, size, 0.0),
            (true, true) if even_size => (1.0, 0.0, size),
            (true, true) => (0.0, 0.0, size),
        };
        if joined == (a, b, c) {
            return Ok(None);
        }
        for t in [sign, magnitude, x] {
            powers.remove(&t);
        }
        if joined.0 != 0.0 {
            powers.insert(sign, Exponent::number(joined.0));
        }
        if joined.1 != 0.0 {
            powers.insert(magnitude, Exponent::number(joined.1));
        }
        if joined.2 == 0.0 {
            return Ok(None);
        }
        if joined.2 < 0.0 {
            self.reciprocals.insert(x);
        }
        let base = self.poly(x)?;
        Ok(Some(self.whole_power(&base, joined.2)?))
    }

    /// p^n for a whole n.
    pub fn whole_power(&mut self, p: &Poly, n: f64) -> Out<Poly> {
        if n == 0.0 {
            return Ok(Poly::number(1.0));
        }
        if n < 0.0 {
            let power = self.whole_power(p, -n)?;
            return self.reciprocal(&power);
        }
        if let Some((m, c)) = p.single() {
            let powers = m.0.iter().map(|(t, e)| (*t, e.scale(n))).collect();
            return Ok(self.normalise(powers)?.scale(c.value.powf(n)));
        }
        if n > HIGHEST {
            return Err(Halt::Work);
        }
        let mut power = Poly::number(1.0);
        for _ in 0..n as u32 {
            power = self.mul(&power, p)?;
        }
        Ok(power)
    }

    /// 1 / p.
    pub fn reciprocal(&mut self, p: &Poly) -> Out<Poly> {
        if p.is_zero() {
            return Err(Halt::Work);
        }
        let (c, content, base) = primitive(p, true);
        let mut powers: Powers = content.raw_inverse().0.into_iter().collect();
        if base.as_number() != Some(1.0) {
            let base = self.write(&base)?;
            powers.insert(base, Exponent::number(-1.0));
        }
        Ok(self.normalise(powers)?.scale(1.0 / c))
    }

    /// p^y for any exponent; an error where the side conditions do not hold.
    pub fn power(&mut self, p: &Poly, y: &Poly) -> Out<Poly> {
        if let Some(n) = y.as_number()
            && n == n.trunc()
        {
            return self.whole_power(p, n);
        }
        let (c, content, base) = primitive(p, false);
        if c <= 0.0 {
            return Err(Halt::Work);
        }
        let exponent = self.exponent_of(y)?;
        let mut powers = Powers::new();
        for (t, e) in content.0 {
            let even = e.as_whole().is_some_and(|n| n % 2.0 == 0.0);
            let t = if even { self.magnitude(t)? } else { t };
            self.require_base(t, &exponent)?;
            powers.insert(t, self.times(&e, &exponent)?);
        }
        if base.as_number() != Some(1.0) {
            let base = self.write(&base)?;
            self.require_base(base, &exponent)?;
            powers.insert(base, exponent.clone());
        }
        let factor = match exponent.as_number() {
            Some(n) => Poly::number(c.powf(n)),
            None if c == 1.0 => Poly::number(1.0),
            None => {
                let (c, y) = (self.terms.num(c), self.write(y)?);
                Poly::atom(self.terms.fn2(Fn2::Pow, c, y)?)
            }
        };
        let power = self.normalise(powers)?;
        self.mul(&factor, &power)
    }

    fn magnitude(&mut self, t: TermId) -> Out<TermId> {
        if self.bounds(t).not_negative() { Ok(t) } else { Ok(self.terms.fn1(Fn1::Abs, t)?) }
    }

    /// Powers of a base join only where it is not negative, and with symbols only where it is positive.
    fn require_base(&mut self, base: TermId, exponent: &Exponent) -> Out<()> {
        let b = self.bounds(base);
        let holds = b.positive() || (b.not_negative() && exponent.symbols.is_empty());
        if holds { Ok(()) } else { Err(Halt::Work) }
    }

    fn times(&mut self, e: &Exponent, by: &Exponent) -> Out<Exponent> {
        if let Some(n) = e.as_number() {
            return Ok(by.scale(n));
        }
        let (a, b) = (self.exponent_poly(e)?, self.exponent_poly(by)?);
        let product = self.mul(&a, &b)?;
        self.exponent_of(&product)
    }

    fn exponent_of(&mut self, p: &Poly) -> Out<Exponent> {
        let mut e = Exponent::number(0.0);
        for (m, c) in &p.monomials {
            if m.0.is_empty() {
                e.constant = Real(c.value);
            } else {
                let symbol = self.write(&Poly::monomial(Coefficient::new(1.0), m.clone()))?;
                e.symbols.push((symbol, Real(c.value)));
            }
        }
        e.symbols.sort();
        Ok(e)
    }

    /// The sum with every numerator over a power of a sum divided by that sum where it divides it.
    pub fn reduce(&mut self, mut p: Poly) -> Out<Poly> {
        let mut tried = Vec::new();
        loop {
            let below =
                p.monomials.keys().flat_map(|m| &m.0).find(|(t, e)| {
                    e.as_whole().is_some_and(|n| n < 0.0) && !tried.contains(&(*t, e.constant))
                });
            let Some((base, e)) = below.cloned() else {
                return Ok(p);
            };
            tried.push((base, e.constant));
            let divisor = self.poly(base)?;
            if divisor.len() < 2 || !self.nonzero(base) {
                continue;
            }
            let (over, rest) = p.split(|m| m.exponent(base) == e);
            let numerator = over.raw_shift(&Monomial::power(base, e.scale(-1.0)));
            if let Some(quotient) = numerator.divide(&divisor) {
                let raised = Monomial::power(base, e.add(&Exponent::one()));
                p = rest.add(&quotient.raw_shift(&raised));
            }
        }
    }
}

/// A sum as number * monomial * sum, the last with leading coefficient 1 (or -1, where the number must
/// be positive) and no factor in common.
pub(super) fn primitive(p: &Poly, signed: bool) -> (f64, Monomial, Poly) {
    let Some((lead, c)) = p.first() else {
        return (0.0, Monomial::one(), Poly::zero());
    };
    if p.len() == 1 {
        let sign = if signed || c.value > 0.0 { 1.0 } else { -1.0 };
        return (c.value * sign, lead.clone(), Poly::number(sign));
    }
    let mut content = Monomial::one();
    for (t, e) in &lead.0 {
        let Some(mut least) = e.as_whole() else {
            continue;
        };
        for m in p.monomials.keys() {
            least = least.min(m.exponent(*t).as_whole().unwrap_or(f64::NEG_INFINITY));
        }
        // Negative powers are a common denominator only where every part has them.
        if least > 0.0
            || (least.is_finite() && p.monomials.keys().all(|m| m.exponent(*t).as_number() < Some(0.0)))
        {
            content = content.raw_mul(&Monomial::power(*t, Exponent::number(least)));
        }
    }
    let c = if signed { c.value } else { c.value.abs() };
    (c, content.clone(), p.raw_shift(&content.raw_inverse()).scale(1.0 / c))
}
