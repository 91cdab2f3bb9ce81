//! Several occurrences of the unknown: rows of the table's identities and inverses that fit.

use super::invert::{End, Inverse, Unknown, end_of};
use super::problem::Problem;
use super::refuse::{Fail, Tried, refuse};
use crate::algebra::poly::{Monomial, Poly};
use crate::algebra::ring::Out;
use miras_base::scalar::{Expr, IDENTITIES, INVERSES, Identity};
use miras_term::{Op, TermId};

/// Arguments that are tried in a row.
const CANDIDATES: usize = 12;

impl Problem<'_> {
    /// t(w) = y where w occurs more than once in t.
    pub(super) fn by_rows(&mut self, t: &Poly, y: &Poly, w: Unknown) -> Tried<Inverse> {
        let candidates = self.candidates(t, w)?;
        for x in &candidates {
            if let Some(found) = self.by_inverses(t, y, *x, w)? {
                return Ok(found);
            }
        }
        for x in &candidates {
            for row in IDENTITIES.iter().filter(|i| i.condition.len() == 1) {
                if let Some(found) = self.by_identity(row, t, y, *x, w)? {
                    return Ok(found);
                }
            }
        }
        let text = self.text(t)?;
        refuse(format!("`{text}` holds the unknown more than once, and no row of the table inverts it"))
    }

    /// The unknown, and the arguments of functions of it, with and without numbers that are added to them.
    fn candidates(&mut self, t: &Poly, w: Unknown) -> Out<Vec<TermId>> {
        let mut found = vec![self.ring.terms.use_var(w.var)];
        let atoms: Vec<TermId> = t.monomials.keys().flat_map(|m| m.0.iter().map(|(t, _)| *t)).collect();
        for atom in atoms {
            if !matches!(self.ring.terms.op(atom), Op::Fn1(..) | Op::Fn2(..)) {
                continue;
            }
            for a in self.ring.terms.operands(atom) {
                let p = self.ring.poly(a)?;
                let number = p.monomials.get(&Monomial::one()).map_or(0.0, |c| c.value);
                let bare = self.ring.write(&p.sub(&Poly::number(number)))?;
                for a in [a, bare] {
                    if self.ring.uses(a, w.var) && !found.contains(&a) && found.len() < CANDIDATES {
                        found.push(a);
                    }
                }
            }
        }
        Ok(found)
    }

    fn by_inverses(&mut self, t: &Poly, y: &Poly, x: TermId, w: Unknown) -> Tried<Option<Inverse>> {
        let exponents = self.exponents_in(t)?;
        for row in INVERSES {
            let parameters = match row.parameter {
                None => vec![None],
                Some(_) => exponents.iter().copied().map(Some).collect(),
            };
            for parameter in parameters {
                if let (Some(p), Some(domain)) = (parameter, row.parameter)
                    && !self.ring.bounds(p).inside(domain)
                {
                    continue;
                }
                let args: Vec<TermId> = std::iter::once(x).chain(parameter).collect();
                if !self.ring.bounds(x).inside(row.domain) {
                    continue;
                }
                let Some((rest, k)) = self.difference(t, &(row.forward)(), &args, w)? else { continue };
                let side = y.sub(&rest).scale(1.0 / k);
                let side = self.ring.write(&side)?;
                let args: Vec<TermId> = std::iter::once(side).chain(parameter).collect();
                let side = self.ring.terms.expr(&(row.inverse)(), &args)?;
                let (inner, side) = (self.ring.poly(x)?, self.ring.poly(side)?);
                let mut found = self.peel(&inner, &side, w)?;
                for end in &mut found.ends {
                    *end = self.row_end(end, row, parameter)?;
                }
                found.rows.push(row.name);
                return Ok(Some(self.scaled(found, &Poly::number(k), &rest)?));
            }
        }
        Ok(None)
    }

    /// The limit of a row's forward side where its argument has a limit; all these rows rise.
    fn row_end(
        &mut self,
        end: &End,
        row: &miras_base::scalar::Inverse,
        parameter: Option<TermId>,
    ) -> Tried<End> {
        Ok(match end {
            End::Minus => end_of(row.range.low),
            End::Plus => end_of(row.range.high),
            End::At(v) if v.as_number() == Some(row.domain.low) => end_of(row.range.low),
            End::At(v) if v.as_number() == Some(row.domain.high) => end_of(row.range.high),
            End::At(v) => {
                let v = self.ring.write(v)?;
                let args: Vec<TermId> = std::iter::once(v).chain(parameter).collect();
                let forward = self.ring.terms.expr(&(row.forward)(), &args)?;
                End::At((*self.ring.poly(forward)?).clone())
            }
        })
    }

    fn by_identity(
        &mut self,
        row: &'static Identity,
        t: &Poly,
        y: &Poly,
        x: TermId,
        w: Unknown,
    ) -> Tried<Option<Inverse>> {
        let holds = row.condition.iter().all(|i| self.ring.bounds(x).inside(*i));
        if !holds {
            return Ok(None);
        }
        let Some((rest, k)) = self.difference(t, &(row.left)(), &[x], w)? else { return Ok(None) };
        let right = self.ring.terms.expr(&(row.right)(), &[x])?;
        let right = self.ring.poly(right)?;
        let once = right.single().is_some_and(|(m, _)| m.0.len() == 1);
        let rewritten = right.scale(k).add(&rest);
        if !once || rewritten.same(t) {
            return Ok(None);
        }
        match self.peel(&rewritten, y, w) {
            Ok(mut found) => {
                found.rows.push(row.name);
                Ok(Some(found))
            }
            Err(Fail::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// A sum in which what a row of identities shortens is shortened: (e^x - e^-x) / (e^x + e^-x) is tanh(x).
    pub fn recognised(&mut self, p: &Poly) -> Out<Poly> {
        let w = Unknown { var: self.unknown, domain: self.natural, depth: 0 };
        let mut p = p.clone();
        for x in self.candidates(&p, w)? {
            for row in IDENTITIES.iter().filter(|i| i.condition.len() == 1) {
                let holds = row.condition.iter().all(|i| self.ring.bounds(x).inside(*i));
                if let (true, Some((rest, k))) = (holds, self.difference(&p, &(row.left)(), &[x], w)?) {
                    let right = self.ring.terms.expr(&(row.right)(), &[x])?;
                    let shorter = self.ring.poly(right)?.scale(k).add(&rest);
                    if shorter.len() < p.len() {
                        p = shorter;
                    }
                }
            }
        }
        Ok(p)
    }

    /// (rest, k) with t = k * expr(args) + rest where the rest does not use the unknown.
    fn difference(&mut self, t: &Poly, expr: &Expr, args: &[TermId], w: Unknown) -> Out<Option<(Poly, f64)>> {
        let side = self.ring.terms.expr(expr, args)?;
        let side = self.ring.poly(side)?;
        let lead = side.monomials.iter().find(|(m, _)| self.ring.monomial_uses(m, w.var));
        let Some((m, c)) = lead else { return Ok(None) };
        let Some(d) = t.monomials.get(m) else { return Ok(None) };
        let k = d.value / c.value;
        let rest = t.sub(&side.scale(k));
        if self.ring.poly_uses(&rest, w.var) {
            return Ok(None);
        }
        Ok(Some((rest, k)))
    }
}
