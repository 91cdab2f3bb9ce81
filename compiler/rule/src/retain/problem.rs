//! One weight's retention as an equation: what must vanish at the weights after the step.

use super::domain;
use super::refuse::{Fail, Tried, refuse};
use super::summands::{Summands, add_up, entry_wise, split};
use crate::algebra::Bounds;
use crate::algebra::poly::{Monomial, Poly};
use crate::algebra::ring::{Out, Ring};
use crate::calculus::gradient;
use crate::rule::{InitialDomain, Inside, Retained};
use miras_base::scalar::Fn1;
use miras_spec as spec;
use miras_term::{Op, Role, Shape, TermId, Terms, VarId, print_within};
use std::collections::{BTreeSet, HashMap};

/// Minimise -<drive, W'> + sum over entries of `entries`(W', W) + `norms`, over the domain.
pub(super) struct Problem<'a> {
    pub ring: Ring<'a>,
    /// W'.
    pub unknown: VarId,
    /// W: the weight before the step.
    pub old: VarId,
    /// u.
    pub update: VarId,
    /// What pulls the weights: u, or A' of a lazy retention.
    pub drive: VarId,
    pub shape: Shape,
    pub parts: Summands,
    /// Derivative of the entries by W'.
    pub slope: Poly,
    /// That of the entries without W.
    pub own_slope: Poly,
    /// Where every function of the objective is defined.
    pub natural: Bounds,
    pub domain: spec::Domain,
    pub newton: Option<u32>,
    /// Parameters that may change from token to token.
    pub varying: BTreeSet<VarId>,
    /// All parameters, with what their kinds allow.
    pub params: Vec<(VarId, Bounds)>,
    /// What the objective divides by and is therefore taken as not 0, for derivations.
    pub assumed: Vec<String>,
    pub index: u32,
}

impl<'a> Problem<'a> {
    /// Reads the objective of one weight.
    pub fn new(
        layer: &'a mut spec::Layer,
        index: usize,
        objective: &[TermId],
        drive: VarId,
        domain: spec::Domain,
    ) -> Tried<Problem<'a>> {
        let (retention, old) = (layer.retention[index].clone(), layer.memory.weights[index].var);
        let unknown = retention.new_weight;
        let terms = &mut layer.terms;
        let whole = add_up(terms, objective)?;
        let parts = split(terms, whole, unknown)?;
        let mut natural = domain::natural(terms, &parts.entries, unknown, old)?;
        if matches!(domain, spec::Domain::Simplex { .. }) {
            natural = natural.meet(Bounds::POSITIVE);
        }
        let (facts, assumed) = domain::facts(terms, &parts.entries, [unknown, old], natural, &layer.params)?;
        let assumed = assumed.into_iter().map(|t| print_within(terms, t, &Default::default(), 40)).collect();
        let mut slopes = Vec::new();
        for entry in &parts.entries {
            slopes.push((slope_of(terms, *entry, unknown)?, !terms.uses(*entry, old)));
        }
        let varies = |p: &&spec::Param| match p.source {
            spec::Source::Learned(_) | spec::Source::Input => true,
            spec::Source::Trained(_) | spec::Source::Slow(_) => false,
        };
        let params = layer.params.iter().map(|p| (p.var, Bounds::of_kind(p.kind))).collect();
        let varying = layer.params.iter().filter(varies).map(|p| p.var).collect();
        let shape = terms.var(unknown).shape.clone();
        let mut ring = Ring::new(terms, facts);
        let (mut slope, mut own_slope) = (Poly::zero(), Poly::zero());
        for (term, own) in slopes {
            let p = ring.poly(term)?;
            slope = slope.add(&p);
            if own {
                own_slope = own_slope.add(&p);
            }
        }
        slope = ring.reduce(slope)?;
        own_slope = ring.reduce(own_slope)?;
        Ok(Problem {
            ring,
            unknown,
            old,
            update: retention.update,
            drive,
            shape,
            parts,
            slope,
            own_slope,
            natural,
            domain,
            newton: retention.newton,
            varying,
            params,
            assumed,
            index: index as u32,
        })
    }

    /// A variable as a sum.
    pub fn var(&mut self, var: VarId) -> Poly {
        Poly::atom(self.ring.terms.use_var(var))
    }

    /// The objective must be a sum over entries.
    pub fn no_norms(&self) -> Tried<()> {
        match self.parts.norms.first() {
            None => Ok(()),
            Some(_) => refuse("the objective has a norm besides sums over entries"),
        }
    }

    /// A sum is positive everywhere, but perhaps where several parameters are at the ends of their kinds at once.
    pub fn require_positive(&mut self, p: &Poly, what: &str) -> Tried<()> {
        if self.positive(p)? {
            return Ok(());
        }
        let text = self.text(p)?;
        refuse(format!("{what} is `{text}`, which is not known to be greater than 0"))
    }

    /// Whether a sum is greater than 0 as long as at most one parameter is at an end of its kind: 1 - alpha + beta is,
    /// 1 - alpha is not. Where it is 0 nevertheless the objective has no minimum, and a quotient by it is 0.
    pub fn positive(&mut self, p: &Poly) -> Tried<bool> {
        let bounds = self.ring.poly_bounds(p)?;
        if bounds.positive() || !bounds.not_negative() {
            return Ok(bounds.positive());
        }
        for (var, kind) in self.params.clone() {
            for end in [kind.low, kind.high].into_iter().filter(|end| end.is_finite()) {
                let shape = self.ring.terms.var(var).shape.clone();
                let end = self.ring.terms.fill(end, shape);
                if self.ring.poly_uses(p, var) && self.replaced(p, var, end)?.is_zero() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A sum written out, shortened.
    pub fn text(&mut self, p: &Poly) -> Out<String> {
        let id = self.ring.write_factored(p)?;
        Ok(print_within(self.ring.terms, id, &Default::default(), 80))
    }

    /// A quotient.
    pub fn over(&mut self, a: &Poly, b: &Poly) -> Out<Poly> {
        let below = self.ring.reciprocal(b)?;
        self.ring.mul(a, &below)
    }

    /// A sum with one variable replaced by a term.
    pub fn replaced(&mut self, p: &Poly, var: VarId, by: TermId) -> Out<Poly> {
        let id = self.ring.write(p)?;
        let id = self.ring.terms.substitute_one(id, &HashMap::from([(var, by)]))?;
        Ok((*self.ring.poly(id)?).clone())
    }

    /// The atoms of a monomial that do not use a variable, and those that do.
    pub fn parted(&mut self, m: &Monomial, var: VarId) -> (Monomial, Monomial) {
        let mut sides = (Vec::new(), Vec::new());
        for (t, e) in &m.0 {
            let uses = self.ring.monomial_uses(&Monomial::power(*t, e.clone()), var);
            if uses { sides.1.push((*t, e.clone())) } else { sides.0.push((*t, e.clone())) }
        }
        (Monomial(sides.0), Monomial(sides.1))
    }

    /// A sum as a term of the weight's shape.
    pub fn written(&mut self, p: &Poly) -> Out<TermId> {
        let id = self.ring.write_factored(p)?;
        Ok(self.ring.terms.spread(id, &self.shape.clone())?)
    }

    /// keep * carried + write * u + shift as a term in this order; factors 1 and parts 0 are left out.
    pub fn recurrence(&mut self, carried: VarId, keep: &Poly, write: &Poly, shift: &Poly) -> Out<TermId> {
        let (keep, write) = (self.ring.write_factored(keep)?, self.ring.write_factored(write)?);
        let terms = &mut *self.ring.terms;
        let (state, update) = (terms.use_var(carried), terms.use_var(self.update));
        let (kept, written) = (terms.mul(keep, state)?, terms.mul(write, update)?);
        let sum = terms.add(kept, written)?;
        let sum = if shift.is_zero() {
            sum
        } else {
            let shift = self.ring.write_factored(shift)?;
            self.plus(sum, shift)?
        };
        Ok(self.ring.terms.spread(sum, &self.shape.clone())?)
    }

    /// `a + b`, as a difference where b is negative by its form.
    pub fn plus(&mut self, a: TermId, b: TermId) -> Out<TermId> {
        let t = &mut *self.ring.terms;
        if let Op::Fn1(Fn1::Neg, x) = *t.op(b) {
            return Ok(t.sub(a, x)?);
        }
        match t.as_num(b) {
            Some(x) if x < 0.0 => {
                let x = t.num(-x);
                Ok(t.sub(a, x)?)
            }
            Some(_) | None => Ok(t.add(a, b)?),
        }
    }

    /// A new dual variable that the state carries in the weight's place.
    pub fn new_dual(&mut self) -> VarId {
        // The update is named `u` with the weight's index; the dual takes the same index.
        let label = self.ring.terms.var(self.update).name.trim_start_matches('u').to_string();
        let name = format!("theta{label}");
        self.ring.terms.add_var(name, Role::Dual(self.index), self.shape.clone(), None)
    }

    /// A term with u = 0 and, where given, the carried variable replaced; simplified.
    pub fn at_rest(&mut self, id: TermId, carried: Option<(VarId, TermId)>) -> Out<TermId> {
        let zero = self.ring.terms.fill(0.0, self.shape.clone());
        let mut replace = HashMap::from([(self.update, zero)]);
        replace.extend(carried);
        let id = self.ring.terms.substitute_one(id, &replace)?;
        let p = self.ring.poly(id)?;
        self.written(&p)
    }

    /// A step that gives the weights themselves from the last ones: they are carried, and inside a chunk it goes token
    /// by token.
    pub fn stepping(&mut self, weights: TermId) -> Out<Retained> {
        Ok(Retained {
            carried: self.old,
            update: self.update,
            start: None,
            initial: InitialDomain::Any,
            advance: weights,
            linear: None,
            value: None,
            finish: None,
            retained: Some(self.at_rest(weights, None)?),
            inside: Inside::TokenByToken,
        })
    }

    /// What must hold of initial weights on the natural domain.
    pub fn initial(&self) -> InitialDomain {
        if self.natural == Bounds::REALS {
            InitialDomain::Any
        } else {
            InitialDomain::Open(self.natural.low, self.natural.high)
        }
    }

    /// Whether a sum uses a parameter that may change from token to token.
    pub fn varies(&mut self, p: &Poly) -> bool {
        let varying: Vec<VarId> = self.varying.iter().copied().collect();
        varying.into_iter().any(|v| self.ring.poly_uses(p, v))
    }
}

/// d sum(entry) / d unknown, entry by entry.
fn slope_of(terms: &mut Terms, entry: TermId, unknown: VarId) -> Tried<TermId> {
    debug_assert!(entry_wise(terms, entry, unknown).is_ok());
    let sum = terms.sum(entry)?;
    let slopes = gradient(terms, sum, &[unknown])?;
    match slopes.first() {
        Some(slope) => Ok(*slope),
        None => Err(Fail::from(miras_base::Diagnostic::bug("a gradient without a component"))),
    }
}
