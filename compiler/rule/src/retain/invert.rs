//! Solving s(w) = y for one unknown, entry by entry, by the facts of the scalar table.
//!
//! A single occurrence is peeled off from the outside; several occurrences need a row of the table's
//! identities (which makes one of them) or of its inverses.

use super::problem::Problem;
use super::refuse::{Tried, refuse};
use crate::algebra::poly::{Coefficient, Exponent, Monomial, Poly};
use crate::algebra::ring::Out;
use crate::algebra::{Bounds, is_var};
use miras_base::scalar::{Fn1, Fn2, Monotone, row};
use miras_term::{Op, TermId, VarId, print_within};
use std::collections::BTreeMap;

/// A limit of s at an end of the unknown's domain.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// It falls without bound.
    Minus,
    /// It rises without bound.
    Plus,
    /// It has this limit.
    At(Poly),
}

/// The solution of s(w) = y.
#[derive(Clone, Debug)]
pub(super) struct Inverse {
    /// w in terms of y.
    pub map: Poly,
    /// Limits of s at the lower and the upper end of the domain of w.
    pub ends: [End; 2],
    /// Whether s rises with w.
    pub rising: bool,
    /// Rows of the table that were used, for derivations.
    pub rows: Vec<&'static str>,
}

impl Inverse {
    /// Whether s rises from minus to plus infinity.
    pub fn onto(&self) -> bool {
        self.rising && matches!(self.ends, [End::Minus, End::Plus])
    }
}

/// Layers of functions that are peeled off.
const DEEPEST: u32 = 32;

/// One equation on the way: the unknown, where it lies, how deep we are.
#[derive(Clone, Copy)]
pub(super) struct Unknown {
    pub var: VarId,
    pub domain: Bounds,
    pub depth: u32,
}

impl Problem<'_> {
    /// Solves s(W') = y on the natural domain.
    pub fn invert(&mut self, s: &Poly, y: &Poly) -> Tried<Inverse> {
        let unknown = Unknown { var: self.unknown, domain: self.natural, depth: 0 };
        self.peel(s, y, unknown)
    }

    pub(super) fn peel(&mut self, s: &Poly, y: &Poly, w: Unknown) -> Tried<Inverse> {
        if w.depth > DEEPEST {
            return refuse("the equation is nested too deeply");
        }
        let w = Unknown { depth: w.depth + 1, ..w };
        let (with, rest) = self.with_and_without(s, w.var);
        if with.is_zero() {
            return refuse("the weights after the step drop out of the equation");
        }
        let (outer, inner) = self.without_factor(&with, w.var);
        let side = self.over(&y.sub(&rest), &outer)?;
        let inverse = self.peel_core(&inner, &side, w)?;
        self.scaled(inverse, &outer, &rest)
    }

    /// From the solution of t(w) = y to that of outer * t(w) + rest = y.
    pub(super) fn scaled(&mut self, inverse: Inverse, outer: &Poly, rest: &Poly) -> Tried<Inverse> {
        let sign = self.ring.poly_bounds(outer)?;
        let above = self.positive(outer)?;
        if !above && !sign.negative() {
            let text = self.text(outer)?;
            return refuse(format!("the factor `{text}` is not known to be greater than 0"));
        }
        let rising = inverse.rising == above;
        let mut ends = Vec::new();
        for end in &inverse.ends {
            ends.push(match (end, above) {
                (End::Minus, true) | (End::Plus, false) => End::Minus,
                (End::Plus, true) | (End::Minus, false) => End::Plus,
                (End::At(v), _) => End::At(self.ring.mul(v, outer)?.add(rest)),
            });
        }
        let [low, high] = ends.try_into().unwrap_or([End::Minus, End::Plus]);
        Ok(Inverse { ends: [low, high], rising, ..inverse })
    }

    /// t(w) = y where every part of t uses w.
    fn peel_core(&mut self, t: &Poly, y: &Poly, w: Unknown) -> Tried<Inverse> {
        if let Some((m, _)) = t.single()
            && let [(atom, e)] = m.0.as_slice()
        {
            return match e.as_number() {
                Some(1.0) => self.peel_atom(*atom, y, w),
                Some(e) => self.peel_power(*atom, e, y, w),
                None => refuse("the unknown has a power that is not a number"),
            };
        }
        self.by_rows(t, y, w)
    }

    fn peel_atom(&mut self, atom: TermId, y: &Poly, w: Unknown) -> Tried<Inverse> {
        let op = self.ring.terms.op(atom).clone();
        if is_var(self.ring.terms, atom, w.var) {
            let ends = [end_of(w.domain.low), end_of(w.domain.high)];
            return Ok(Inverse { map: y.clone(), ends, rising: true, rows: Vec::new() });
        }
        if let Op::Fn1(f, a) = op {
            return self.peel_function(f, a, y, w);
        }
        if let Op::Fn2(Fn2::Pow, a, e) = op
            && !self.ring.uses(e, w.var)
            && self.ring.bounds(a).positive()
        {
            return self.peel_broken_power(a, e, y, w);
        }
        let text = print_within(self.ring.terms, atom, &Default::default(), 60);
        refuse(format!("`{text}` has no inverse in the function table"))
    }

    /// a(w)^e = y for a term e and a(w) > 0.
    fn peel_broken_power(&mut self, a: TermId, e: TermId, y: &Poly, w: Unknown) -> Tried<Inverse> {
        let (inner, exponent) = (self.ring.poly(a)?, self.ring.poly(e)?);
        self.require_positive(&exponent, "the exponent of the unknown")?;
        let (y, one) = (self.ring.write(y)?, self.ring.terms.num(1.0));
        let turned = self.ring.terms.div(one, e)?;
        let side = self.ring.terms.fn2(Fn2::Pow, y, turned)?;
        let inverse = self.peel(&inner, &Poly::atom(side), w)?;
        let exponent = exponent.as_ref().clone();
        self.raised(inverse, |p, v| Ok(p.ring.power(v, &exponent)?), true)
    }

    /// f(a(w)) = y.
    fn peel_function(&mut self, f: Fn1, a: TermId, y: &Poly, w: Unknown) -> Tried<Inverse> {
        let r = row(f);
        let (Some(inverse), false) = (r.inverse, r.monotone == Monotone::Neither) else {
            return refuse(format!("`{}` has no inverse in the function table", r.name));
        };
        let y = self.ring.write(y)?;
        let side = self.ring.terms.expr(&inverse(), &[y])?;
        let (inner, side) = (self.ring.poly(a)?, self.ring.poly(side)?);
        let mut found = self.peel(&inner, &side, w)?;
        let falls = r.monotone == Monotone::Decreasing;
        for end in &mut found.ends {
            let limit = match end {
                End::Minus => r.domain.low,
                End::Plus => r.domain.high,
                End::At(v) => v.as_number().unwrap_or(f64::NAN),
            };
            *end = match end {
                _ if limit == r.domain.low => end_of(if falls { r.range.high } else { r.range.low }),
                _ if limit == r.domain.high => end_of(if falls { r.range.low } else { r.range.high }),
                End::At(v) => End::At(self.ring.fn1(f, v)?),
                End::Minus | End::Plus => {
                    return refuse(format!("the argument of `{}` leaves its domain", r.name));
                }
            };
        }
        found.rising ^= falls;
        found.rows.push(r.name);
        Ok(found)
    }

    /// a(w)^e = y for a number e.
    fn peel_power(&mut self, atom: TermId, e: f64, y: &Poly, w: Unknown) -> Tried<Inverse> {
        let (inner, side) = (Poly::atom(atom), self.ring.write(y)?);
        let root = self.ring.terms.num(1.0 / e);
        if self.ring.bounds(atom).not_negative() {
            let side = self.ring.terms.fn2(Fn2::Pow, side, root)?;
            let inverse = self.peel(&inner, &Poly::atom(side), w)?;
            return self.raised(inverse, |p, v| Ok(p.ring.power(v, &Poly::number(e))?), e > 0.0);
        }
        if e <= 0.0 || e % 2.0 != 1.0 {
            return refuse(format!("the power {e} of the unknown has two roots or none"));
        }
        let (sign, size) = (self.ring.terms.fn1(Fn1::Sign, side)?, self.ring.terms.fn1(Fn1::Abs, side)?);
        let power = self.ring.terms.fn2(Fn2::Pow, size, root)?;
        let side = self.ring.terms.mul(sign, power)?;
        let side = self.ring.poly(side)?;
        let inverse = self.peel(&inner, &side, w)?;
        self.raised(inverse, |p, v| Ok(p.ring.whole_power(v, e)?), true)
    }

    /// The ends after a power of what has these ends.
    fn raised(
        &mut self,
        mut inverse: Inverse,
        power: impl Fn(&mut Self, &Poly) -> Tried<Poly>,
        grows: bool,
    ) -> Tried<Inverse> {
        for end in &mut inverse.ends {
            *end = match end {
                End::Plus if grows => End::Plus,
                End::Plus => End::At(Poly::zero()),
                End::Minus => End::Minus,
                End::At(v) if v.is_zero() && !grows => End::Plus,
                End::At(v) if v.is_zero() => End::At(Poly::zero()),
                End::At(v) => End::At(power(self, v)?),
            };
        }
        inverse.rising ^= !grows;
        Ok(inverse)
    }

    /// The monomials that use a variable, and the others.
    pub fn with_and_without(&mut self, p: &Poly, var: VarId) -> (Poly, Poly) {
        p.split(|m| self.ring.monomial_uses(m, var))
    }

    /// A sum as factor * rest, where the factor does not use a variable and the rest, if possible, nothing
    /// else. All parts must use the variable.
    pub fn without_factor(&mut self, p: &Poly, var: VarId) -> (Poly, Poly) {
        let mut by_dependent: BTreeMap<Monomial, Poly> = BTreeMap::new();
        for (m, c) in &p.monomials {
            let (free, dependent) = self.parted(m, var);
            by_dependent.entry(dependent).or_default().put(free, *c);
        }
        let Some(first) = by_dependent.values().next().cloned() else {
            return (Poly::number(1.0), p.clone());
        };
        // Numbers stay with the rest where there are several parts: a link is F itself, not a multiple.
        let factor = match first.first() {
            Some((_, c)) if by_dependent.len() > 1 => first.scale(1.0 / c.value),
            Some(_) | None => first,
        };
        let mut rest = Poly::zero();
        for (dependent, c) in &by_dependent {
            let ratio =
                c.first().map_or(0.0, |(m, c)| factor.monomials.get(m).map_or(0.0, |f| c.value / f.value));
            if !c.same(&factor.scale(ratio)) {
                return (Poly::number(1.0), p.clone());
            }
            rest.put(dependent.clone(), Coefficient::new(ratio));
        }
        (factor, rest)
    }

    /// Exponents that occur in a sum: candidates for the parameter of a row.
    pub(super) fn exponents_in(&mut self, p: &Poly) -> Out<Vec<TermId>> {
        let mut found = Vec::new();
        for m in p.monomials.keys() {
            for (t, e) in &m.0 {
                if *e != Exponent::one()
                    && let Some(number) = e.as_number()
                {
                    found.push(self.ring.terms.num(number));
                }
                if let Op::Fn2(Fn2::Pow, _, e) = *self.ring.terms.op(*t) {
                    found.push(e);
                }
            }
        }
        found.dedup();
        Ok(found)
    }
}

/// An end of an interval as a limit.
pub(super) fn end_of(x: f64) -> End {
    if x == f64::INFINITY {
        End::Plus
    } else if x == f64::NEG_INFINITY {
        End::Minus
    } else {
        End::At(Poly::number(x))
    }
}
