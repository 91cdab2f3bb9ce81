//! Terms as coefficient * unknown + rest.

use super::facts::Facts;
use super::poly::{Exponent, Monomial, Poly};
use super::ring::{Out, Ring};
use miras_term::{TermId, Terms, VarId};

/// `expr` as `coefficient * var + rest`, entry by entry, neither of which uses the variable; None where
/// it is not of that form. Both come in simplest form, in the shape that their parts have.
pub fn collect_linear(
    terms: &mut Terms,
    expr: TermId,
    var: VarId,
    facts: &Facts,
) -> Option<(TermId, TermId)> {
    let mut ring = Ring::new(terms, facts.clone());
    let p = ring.poly(expr).ok()?;
    let (coefficient, rest) = ring.linear_in(&p, var).ok()??;
    Some((ring.write_factored(&coefficient).ok()?, ring.write_factored(&rest).ok()?))
}

impl Ring<'_> {
    /// A sum as coefficient * var + rest.
    pub fn linear_in(&mut self, p: &Poly, var: VarId) -> Out<Option<(Poly, Poly)>> {
        let atom = self.terms.use_var(var);
        let Some((coefficient, rest)) = self.linear_in_atom(p, atom) else {
            return Ok(None);
        };
        if self.poly_uses(&coefficient, var) || self.poly_uses(&rest, var) {
            return Ok(None);
        }
        Ok(Some((coefficient, rest)))
    }

    /// A sum as coefficient * atom + rest, where the atom has no other power.
    pub fn linear_in_atom(&mut self, p: &Poly, atom: TermId) -> Option<(Poly, Poly)> {
        let (with, rest) = p.split(|m| !m.exponent(atom).is_zero());
        if !with.monomials.keys().all(|m| m.exponent(atom) == Exponent::one()) {
            return None;
        }
        let coefficient = with.raw_shift(&Monomial::power(atom, Exponent::number(-1.0)));
        Some((coefficient, rest))
    }
}
