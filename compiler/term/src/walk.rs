//! Walking terms: operands, variables used, substitution.

use crate::arena::{Op, Root, TermId, Terms, VarId};
use crate::shape::Mismatch;
use std::collections::{BTreeSet, HashMap};

impl Terms {
    /// The direct operands of a term, in order. A root's are its four terms.
    pub fn operands(&self, id: TermId) -> Vec<TermId> {
        match self.op(id) {
            Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Var(_) | Op::Eye(_) => Vec::new(),
            Op::Fn1(_, a)
            | Op::Transpose(a)
            | Op::Row(a)
            | Op::Col(a)
            | Op::Flat(a)
            | Op::Spread(a, _)
            | Op::Reduce(_, _, a)
            | Op::Softmax(_, a)
            | Op::LogSoftmax(_, a)
            | Op::LayerNorm(a)
            | Op::InverseDeviation(a)
            | Op::Stop(a) => vec![*a],
            Op::Fn2(_, a, b) | Op::Compare(_, a, b) | Op::MatMul(a, b) | Op::Outer(a, b) | Op::Norm(a, b) => {
                vec![*a, *b]
            }
            Op::Select(c, a, b) => vec![*c, *a, *b],
            Op::Root(root) => {
                let r = self.root(*root);
                vec![r.residual, r.slope, r.low, r.high]
            }
        }
    }

    /// All terms that these terms are made of, themselves included, operands before users.
    pub fn reachable(&self, from: &[TermId]) -> Vec<TermId> {
        let mut seen = BTreeSet::new();
        let mut open = from.to_vec();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(self.operands(id));
            }
        }
        seen.into_iter().collect()
    }

    /// The variables that these terms use.
    pub fn vars_of(&self, from: &[TermId]) -> BTreeSet<VarId> {
        self.reachable(from)
            .into_iter()
            .filter_map(|id| match self.op(id) {
                Op::Var(v) => Some(*v),
                _ => None,
            })
            .collect()
    }

    /// Whether a term uses a variable.
    pub fn uses(&self, id: TermId, var: VarId) -> bool {
        self.vars_of(&[id]).contains(&var)
    }

    /// The same terms with variables replaced. Shapes are checked anew and constants folded.
    pub fn substitute(
        &mut self,
        terms: &[TermId],
        replace: &HashMap<VarId, TermId>,
    ) -> Result<Vec<TermId>, Mismatch> {
        let mut done: HashMap<TermId, TermId> = HashMap::new();
        for id in self.reachable(terms) {
            let new = self.rebuild(id, &done, replace)?;
            done.insert(id, new);
        }
        Ok(terms.iter().map(|t| done[t]).collect())
    }

    /// [`Terms::substitute`] for one term.
    pub fn substitute_one(
        &mut self,
        term: TermId,
        replace: &HashMap<VarId, TermId>,
    ) -> Result<TermId, Mismatch> {
        Ok(self.substitute(&[term], replace)?[0])
    }

    /// The same terms with whole parts replaced. A part that is replaced is not entered.
    ///
    /// # Errors
    /// A mismatch where a part and what stands in its place differ in shape.
    pub fn replace_parts(
        &mut self,
        terms: &[TermId],
        parts: &HashMap<TermId, TermId>,
    ) -> Result<Vec<TermId>, Mismatch> {
        let mut done: HashMap<TermId, TermId> = HashMap::new();
        for id in self.reachable(terms) {
            let new = match parts.get(&id) {
                Some(part) => *part,
                None => self.rebuild(id, &done, &HashMap::new())?,
            };
            done.insert(id, new);
        }
        Ok(terms.iter().map(|t| done[t]).collect())
    }

    fn rebuild(
        &mut self,
        id: TermId,
        done: &HashMap<TermId, TermId>,
        replace: &HashMap<VarId, TermId>,
    ) -> Result<TermId, Mismatch> {
        let get = |t: &TermId| done[t];
        let op = self.op(id).clone();
        match &op {
            Op::Var(v) => Ok(replace.get(v).copied().unwrap_or(id)),
            Op::Root(root) => {
                let r = self.root(*root).clone();
                let root = Root {
                    unknown: r.unknown,
                    residual: get(&r.residual),
                    slope: get(&r.slope),
                    low: get(&r.low),
                    high: get(&r.high),
                    steps: r.steps,
                };
                self.solve_root(root)
            }
            _ if self.operands(id).iter().all(|o| get(o) == *o) => Ok(id),
            Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Eye(_) => Ok(id),
            Op::Fn1(f, a) => self.fn1(*f, get(a)),
            Op::Fn2(f, a, b) => self.fn2(*f, get(a), get(b)),
            Op::Compare(c, a, b) => self.compare(*c, get(a), get(b)),
            Op::Select(c, a, b) => self.select(get(c), get(a), get(b)),
            Op::MatMul(a, b) => self.matmul(get(a), get(b)),
            Op::Outer(a, b) => self.outer(get(a), get(b)),
            Op::Transpose(a) => self.transpose(get(a)),
            Op::Row(a) => self.row(get(a)),
            Op::Col(a) => self.col(get(a)),
            Op::Flat(a) => self.flat(get(a)),
            Op::Spread(a, shape) => self.spread(get(a), shape),
            Op::Reduce(op, axis, a) => self.reduce(*op, *axis, get(a)),
            Op::Norm(x, p) => self.norm(get(x), get(p)),
            Op::Softmax(axis, a) => self.softmax(*axis, get(a)),
            Op::LogSoftmax(axis, a) => self.log_softmax(*axis, get(a)),
            Op::LayerNorm(a) => self.layer_norm(get(a)),
            Op::InverseDeviation(a) => self.inverse_deviation(get(a)),
            Op::Stop(a) => self.stop(get(a)),
        }
    }
}
