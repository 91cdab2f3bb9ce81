//! The ring: terms read as sums of products, under side conditions and within a budget of work.

use super::bounds::Bounds;
use super::facts::Facts;
use super::poly::{Exponent, Monomial, Poly};
use miras_term::{Mismatch, Op, TermId, Terms, VarId};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Why a term could not be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Halt {
    /// The result would be too long; the term is taken as one atom instead.
    Work,
    /// Operands do not fit: the term was not well shaped.
    Shape(Mismatch),
}

impl From<Mismatch> for Halt {
    fn from(m: Mismatch) -> Self {
        Halt::Shape(m)
    }
}

pub(crate) type Out<T> = Result<T, Halt>;

/// Products of monomials that one ring may form before it takes what is left as atoms.
const WORK: u32 = 50_000;

/// Monomials that one sum may have.
pub(super) const LONGEST: usize = 128;

/// Readings within readings: rewriting could otherwise run in circles.
const DEEPEST: u32 = 40;

/// An arena with side conditions, and everything read from it so far.
pub(crate) struct Ring<'a> {
    pub terms: &'a mut Terms,
    pub facts: Facts,
    polys: HashMap<TermId, Rc<Poly>>,
    bounds: HashMap<TermId, Bounds>,
    used: HashMap<(TermId, VarId), bool>,
    /// Atoms that occur with a negative power that is 0 at 0, which a division is not.
    pub(super) reciprocals: BTreeSet<TermId>,
    /// Sums that occur as factors: candidates when a result is factored.
    pub(super) factors: Vec<Rc<Poly>>,
    work: u32,
    depth: u32,
}

impl<'a> Ring<'a> {
    pub fn new(terms: &'a mut Terms, facts: Facts) -> Self {
        Ring {
            terms,
            facts,
            polys: HashMap::new(),
            bounds: HashMap::new(),
            used: HashMap::new(),
            reciprocals: BTreeSet::new(),
            factors: Vec::new(),
            work: WORK,
            depth: 0,
        }
    }

    /// A term as a sum of products of atoms. Never too long: what would be is an atom.
    pub fn poly(&mut self, id: TermId) -> Out<Rc<Poly>> {
        if let Some(p) = self.polys.get(&id) {
            return Ok(p.clone());
        }
        if self.depth >= DEEPEST {
            return Ok(Rc::new(Poly::atom(id)));
        }
        self.depth += 1;
        let read = self.read_all(id);
        self.depth -= 1;
        read
    }

    fn read_all(&mut self, id: TermId) -> Out<Rc<Poly>> {
        for t in self.terms.reachable(&[id]) {
            if self.polys.contains_key(&t) {
                continue;
            }
            let p = match self.read(t) {
                Err(Halt::Work) => Poly::atom(t),
                read => read?,
            };
            self.polys.insert(t, Rc::new(p));
        }
        Ok(self.polys.get(&id).cloned().unwrap_or_else(|| Rc::new(Poly::atom(id))))
    }

    /// Notes that a term is what a sum was written as.
    pub(super) fn remember(&mut self, id: TermId, p: &Poly) {
        self.polys.entry(id).or_insert_with(|| Rc::new(p.clone()));
    }

    /// Notes a sum that occurs as a factor.
    pub(super) fn note_factor(&mut self, p: &Rc<Poly>) {
        if p.len() > 1 && p.len() <= 8 && self.factors.len() < 32 && !self.factors.iter().any(|f| f.same(p)) {
            self.factors.push(p.clone());
        }
    }

    pub(super) fn spend(&mut self, steps: u32) -> Out<()> {
        match self.work.checked_sub(steps) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => {
                self.work = 0;
                Err(Halt::Work)
            }
        }
    }

    /// Bounds of a term's entries.
    pub fn bounds(&mut self, id: TermId) -> Bounds {
        let Ring { terms, facts, bounds, .. } = self;
        facts.fill(terms, id, bounds);
        bounds.get(&id).copied().unwrap_or(Bounds::REALS)
    }

    /// Whether an atom is never 0.
    pub fn nonzero(&mut self, atom: TermId) -> bool {
        self.facts.assumed_nonzero(atom) || self.bounds(atom).nonzero()
    }

    /// Bounds of a sum, from its parts and from the term it is written as.
    pub fn poly_bounds(&mut self, p: &Poly) -> Out<Bounds> {
        let id = self.write_factored(p)?;
        Ok(self.bounds(id))
    }

    /// Whether a term uses a variable.
    pub fn uses(&mut self, id: TermId, var: VarId) -> bool {
        if let Some(known) = self.used.get(&(id, var)) {
            return *known;
        }
        let used = self.terms.uses(id, var);
        self.used.insert((id, var), used);
        used
    }

    /// Whether any atom or exponent of a monomial uses a variable.
    pub fn monomial_uses(&mut self, m: &Monomial, var: VarId) -> bool {
        let atoms: Vec<TermId> =
            m.0.iter()
                .flat_map(|(t, e)| std::iter::once(*t).chain(e.symbols.iter().map(|(s, _)| *s)))
                .collect();
        atoms.into_iter().any(|a| self.uses(a, var))
    }

    /// Whether any monomial uses a variable.
    pub fn poly_uses(&mut self, p: &Poly, var: VarId) -> bool {
        p.monomials.keys().any(|m| self.monomial_uses(m, var))
    }

    /// An exponent as a sum.
    pub(super) fn exponent_poly(&mut self, e: &Exponent) -> Out<Poly> {
        let mut sum = Poly::number(e.constant.0);
        for (symbol, factor) in &e.symbols {
            let p = self.poly(*symbol)?;
            sum = sum.add(&p.scale(factor.0));
        }
        Ok(sum)
    }

    /// The operand of a function applied by an atom, if the atom is that function.
    pub(super) fn argument_of(&self, f: miras_base::scalar::Fn1, atom: TermId) -> Option<TermId> {
        let Op::Fn1(g, a) = *self.terms.op(atom) else { return None };
        (g == f).then_some(a)
    }
}
