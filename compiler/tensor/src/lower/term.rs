//! Terms to values: names of axes, broadcasting, and the compound functions spelled out.
//!
//! A vector term [d] has the axis (d, 0). A matrix term [m, n] has (m, 1) and (n, 0). An axis of size 1,
//! and an axis along which a value does not vary, is left out.

use super::Failure;
use super::chunk::LowRank;
use crate::ir::{AxisId, BlockId, Graph, Op, Size, ValueId};
use miras_base::scalar::{Fn1, Fn2};
use miras_base::{Dim, DimEnv};
use miras_term::{self as term, PrintOptions, Shape, TermId, Terms, VarId};
use std::collections::HashMap;
use std::rc::Rc;

/// Formulas in comments are cut at about this many characters.
const LONGEST_FORMULA: usize = 120;

/// The named axes of one graph: one for each size and place of use.
#[derive(Debug, Default)]
pub(super) struct AxisTable {
    dims: DimEnv,
    by_dim: HashMap<(Dim, u8), AxisId>,
}

impl AxisTable {
    pub(super) fn new(dims: &DimEnv) -> AxisTable {
        AxisTable { dims: dims.clone(), by_dim: HashMap::new() }
    }

    /// The axis of a symbolic size; `level` tells apart the axes of a square matrix.
    pub(super) fn get(&mut self, graph: &mut Graph, dim: &Dim, level: u8) -> Result<AxisId, Failure> {
        if let Some(axis) = self.by_dim.get(&(dim.clone(), level)) {
            return Ok(*axis);
        }
        let size = self.size(dim)?;
        let name = format!("{dim}{}", "'".repeat(level as usize));
        let axis = graph.add_axis(name, Size::Fixed(size));
        self.by_dim.insert((dim.clone(), level), axis);
        Ok(axis)
    }

    /// The number that a symbolic size is in this run.
    pub(super) fn size(&self, dim: &Dim) -> Result<usize, Failure> {
        let size = dim.eval(&self.dims).and_then(|n| usize::try_from(n).ok());
        size.ok_or_else(|| Failure::bug(format!("the size {} is not known", dim.formula())))
    }

    /// The axes of a shape, one for each of its sizes; None for size 1 written as such.
    pub(super) fn of_shape(
        &mut self,
        graph: &mut Graph,
        shape: &Shape,
    ) -> Result<Vec<Option<AxisId>>, Failure> {
        let rank = shape.rank();
        let mut axes = Vec::new();
        for (i, dim) in shape.0.iter().enumerate() {
            let level = (rank - 1 - i) as u8;
            axes.push(if dim.is_one() { None } else { Some(self.get(graph, dim, level)?) });
        }
        Ok(axes)
    }
}

/// Lowers terms into one block of a graph.
pub(super) struct TermLowering<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) axes: &'a mut AxisTable,
    pub(super) terms: &'a Terms,
    pub(super) block: BlockId,
    /// Values of variables.
    pub(super) vars: HashMap<VarId, ValueId>,
    /// Weights that are sums of outer products, and only applied to vectors.
    pub(super) low_rank: HashMap<VarId, Rc<LowRank>>,
    /// Names for terms that have one.
    pub(super) names: HashMap<TermId, String>,
    done: HashMap<TermId, ValueId>,
}

impl<'a> TermLowering<'a> {
    pub(super) fn new(
        graph: &'a mut Graph,
        axes: &'a mut AxisTable,
        terms: &'a Terms,
        block: BlockId,
        vars: HashMap<VarId, ValueId>,
    ) -> Self {
        TermLowering {
            graph,
            axes,
            terms,
            block,
            vars,
            low_rank: HashMap::new(),
            names: HashMap::new(),
            done: HashMap::new(),
        }
    }

    /// Binds a variable, and forgets what was lowered with its earlier value.
    pub(super) fn bind(&mut self, var: VarId, value: ValueId) {
        if self.vars.insert(var, value).is_some_and(|old| old != value) {
            self.done.clear();
        }
    }

    /// The value of a term.
    pub(super) fn lower(&mut self, root: TermId) -> Result<ValueId, Failure> {
        for id in self.pending(root) {
            if let term::Op::Root(r) = self.terms.op(id) {
                let r = self.terms.root(*r).clone();
                for end in [r.low, r.high] {
                    self.lower(end)?;
                }
            }
            let value = self.lower_op(id)?;
            self.describe(id, value);
            self.done.insert(id, value);
        }
        self.get(root)
    }

    /// The value of a term with all axes of a shape that it meets element-wise.
    pub(super) fn lower_whole(&mut self, term: TermId, shape: &Shape) -> Result<ValueId, Failure> {
        let value = self.lower(term)?;
        let own = self.terms.shape(term).clone();
        let value = self.fit_value(value, &own, shape)?;
        let axes: Vec<AxisId> = self.axes.of_shape(self.graph, shape)?.into_iter().flatten().collect();
        Ok(self.spread(value, &axes))
    }

    /// Leaves the term's name and formula with its value.
    fn describe(&mut self, id: TermId, value: ValueId) {
        let mut options = PrintOptions { names: self.names.clone() };
        let own = options.names.remove(&id);
        if let Some(name) = &own {
            self.graph.set_name(value, name);
        }
        if matches!(self.graph.value(value).op, Op::Given | Op::Number(_)) {
            return;
        }
        let terms = self.terms;
        self.graph.set_equation(value, || {
            let formula = term::print_within(terms, id, &options, LONGEST_FORMULA);
            match own {
                Some(name) => format!("{name} = {formula}"),
                None => formula,
            }
        });
    }

    /// A lowering into the same block that knows what this one has done, for terms under other bindings.
    pub(super) fn inner(&mut self) -> TermLowering<'_> {
        TermLowering {
            block: self.block,
            vars: self.vars.clone(),
            low_rank: self.low_rank.clone(),
            names: HashMap::new(),
            done: self.done.clone(),
            terms: self.terms,
            graph: self.graph,
            axes: self.axes,
        }
    }

    /// The terms still to be lowered for `root`, operands first. The inside of a root's equation is
    /// lowered where the root is.
    fn pending(&self, root: TermId) -> Vec<TermId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if self.done.contains_key(&id) || !seen.insert(id) {
                continue;
            }
            match self.terms.op(id) {
                term::Op::Root(_) => {}
                term::Op::MatMul(a, x) if self.is_operator(*a) => {
                    open.push(*x);
                    self.operator_parts(*a, &mut open);
                }
                _ => open.extend(self.terms.operands(id)),
            }
        }
        seen.into_iter().collect()
    }

    pub(super) fn get(&self, id: TermId) -> Result<ValueId, Failure> {
        self.done.get(&id).copied().ok_or_else(|| Failure::bug("a term was used before it was lowered"))
    }

    pub(super) fn add(&mut self, op: Op) -> ValueId {
        self.graph.add(self.block, op)
    }

    pub(super) fn number(&mut self, x: f64) -> ValueId {
        self.add(Op::Number(x))
    }

    pub(super) fn fn1(&mut self, f: Fn1, a: ValueId) -> ValueId {
        self.add(Op::Fn1(f, a))
    }

    pub(super) fn fn2(&mut self, f: Fn2, a: ValueId, b: ValueId) -> ValueId {
        self.add(Op::Fn2(f, a, b))
    }

    fn lower_op(&mut self, id: TermId) -> Result<ValueId, Failure> {
        let terms = self.terms;
        let shape = terms.shape(id);
        Ok(match terms.op(id) {
            term::Op::Const(n) => self.number(n.0),
            term::Op::Size(dim) => {
                let size = self.axes.size(dim)?;
                self.number(size as f64)
            }
            term::Op::Place(place) => self.add(Op::Place(*place)),
            term::Op::Var(v) => {
                let missing = || Failure::bug(format!("`{}` has no value here", terms.var(*v).name));
                self.vars.get(v).copied().ok_or_else(missing)?
            }
            term::Op::Fn1(f, a) => {
                let a = self.get(*a)?;
                self.fn1(*f, a)
            }
            // A power of two terms costs as much as an exponential and a logarithm.
            term::Op::Fn2(Fn2::Pow, a, b) if terms.as_num(*b) == Some(2.0) => {
                let a = self.fitted(*a, shape)?;
                self.fn2(Fn2::Mul, a, a)
            }
            term::Op::Fn2(f, a, b) => {
                let (a, b) = (self.fitted(*a, shape)?, self.fitted(*b, shape)?);
                self.fn2(*f, a, b)
            }
            term::Op::Compare(c, a, b) => {
                let (a, b) = (self.fitted(*a, shape)?, self.fitted(*b, shape)?);
                self.add(Op::Compare(*c, a, b))
            }
            term::Op::Select(c, a, b) => {
                let (c, a, b) = (self.fitted(*c, shape)?, self.fitted(*a, shape)?, self.fitted(*b, shape)?);
                self.add(Op::Select(c, a, b))
            }
            term::Op::MatMul(a, b) => self.matmul(*a, *b)?,
            term::Op::Outer(a, b) => {
                let left = self.relevel(*a, 0, 1)?;
                let right = self.get(*b)?;
                self.fn2(Fn2::Mul, left, right)
            }
            term::Op::Transpose(a) => self.transpose(*a)?,
            term::Op::Row(a) => self.get(*a)?,
            term::Op::Col(a) => self.relevel(*a, 0, 1)?,
            term::Op::Flat(a) => match terms.shape(*a).0.as_slice() {
                [rows, one] if one.is_one() && !rows.is_one() => {
                    let value = self.get(*a)?;
                    let (from, to) = (self.axis(rows, 1)?, self.axis(rows, 0)?);
                    self.rename(value, from, to)
                }
                _ => self.get(*a)?,
            },
            term::Op::Spread(a, _) => self.fitted(*a, shape)?,
            term::Op::Reduce(op, axis, a) => self.reduce(*op, *axis, *a)?,
            term::Op::Norm(x, p) => self.norm(*x, *p)?,
            term::Op::Softmax(axis, a) => {
                let (shifted, total) = self.shifted_exponentials(*axis, *a)?;
                let exponentials = self.fn1(Fn1::Exp, shifted);
                self.fn2(Fn2::Div, exponentials, total)
            }
            term::Op::LogSoftmax(axis, a) => {
                let (shifted, total) = self.shifted_exponentials(*axis, *a)?;
                let log = self.fn1(Fn1::Log, total);
                self.fn2(Fn2::Sub, shifted, log)
            }
            term::Op::LayerNorm(a) => {
                let (centred, inverse) = self.moments(*a)?;
                self.fn2(Fn2::Mul, centred, inverse)
            }
            term::Op::InverseDeviation(a) => self.moments(*a)?.1,
            term::Op::Eye(n) => {
                let (rows, cols) = (self.axis(n, 1)?, self.axis(n, 0)?);
                self.add(Op::Diagonal(rows, cols))
            }
            term::Op::Stop(a) => {
                let a = self.get(*a)?;
                self.add(Op::Stop(a))
            }
            term::Op::Root(root) => self.root(&terms.root(*root).clone())?,
        })
    }

    pub(super) fn axis(&mut self, dim: &Dim, level: u8) -> Result<AxisId, Failure> {
        self.axes.get(self.graph, dim, level)
    }

    pub(super) fn has(&self, value: ValueId, axis: AxisId) -> bool {
        self.graph.value(value).axes.contains(&axis)
    }

    pub(super) fn rename(&mut self, value: ValueId, from: AxisId, to: AxisId) -> ValueId {
        if from == to || !self.has(value, from) {
            return value;
        }
        self.add(Op::Rename { value, from, to })
    }

    /// A vector term's value with its axis at another level.
    fn relevel(&mut self, id: TermId, from: u8, to: u8) -> Result<ValueId, Failure> {
        let value = self.get(id)?;
        let [n] = self.terms.shape(id).0.as_slice() else { return Ok(value) };
        let (from, to) = (self.axis(n, from)?, self.axis(n, to)?);
        Ok(self.rename(value, from, to))
    }

    /// A term's value with its axes called as those of `shape`, which it meets element-wise: sizes that a
    /// constraint makes equal get the one name.
    fn fitted(&mut self, id: TermId, shape: &Shape) -> Result<ValueId, Failure> {
        let value = self.get(id)?;
        self.fit_value(value, &self.terms.shape(id).clone(), shape)
    }

    /// [`Self::fitted`] for a value of a known shape.
    pub(super) fn fit_value(
        &mut self,
        mut value: ValueId,
        own: &Shape,
        shape: &Shape,
    ) -> Result<ValueId, Failure> {
        if own.rank() != shape.rank() || own == shape {
            return Ok(value);
        }
        let (from, to) = (self.axes.of_shape(self.graph, own)?, self.axes.of_shape(self.graph, shape)?);
        for (from, to) in from.into_iter().zip(to) {
            if let (Some(from), Some(to)) = (from, to) {
                value = self.rename(value, from, to);
            }
        }
        Ok(value)
    }

    /// The value repeated along those of the axes that it lacks.
    pub(super) fn spread(&mut self, value: ValueId, axes: &[AxisId]) -> ValueId {
        if axes.iter().all(|a| self.has(value, *a)) {
            return value;
        }
        // Axes that no term knows, those of tokens taken together, stay in front.
        let own = self.graph.value(value).axes.clone();
        let others = own.into_iter().filter(|a| !axes.contains(a));
        let all = others.chain(axes.iter().copied()).collect();
        self.add(Op::Spread(value, all))
    }

    fn matmul(&mut self, a: TermId, b: TermId) -> Result<ValueId, Failure> {
        if self.is_operator(a) {
            return self.operate(a, b);
        }
        let (sa, sb) = (self.terms.shape(a).clone(), self.terms.shape(b).clone());
        let (mut left, mut right) = (self.get(a)?, self.get(b)?);
        let (rows, inner) = (&sa.0[0], &sa.0[1]);
        let meeting = self.axis(inner, 2)?;
        let from = self.axis(inner, 0)?;
        left = self.rename(left, from, meeting);
        let from = self.axis(&sb.0[0], if sb.rank() == 2 { 1 } else { 0 })?;
        right = self.rename(right, from, meeting);
        let (left, right, scale) = self.over_missing(left, right, meeting, inner)?;
        let mut result = match scale {
            // A vector for each of several tokens: rows of the result are theirs.
            None if sb.rank() == 1 && self.graph.value(right).axes.len() > 1 => {
                self.add(Op::Einsum(right, left, vec![meeting]))
            }
            None => self.add(Op::Einsum(left, right, vec![meeting])),
            Some(n) => {
                let product = self.fn2(Fn2::Mul, left, right);
                let n = self.number(n);
                self.fn2(Fn2::Mul, product, n)
            }
        };
        if sb.rank() == 1 && !rows.is_one() {
            let (from, to) = (self.axis(rows, 1)?, self.axis(rows, 0)?);
            result = self.rename(result, from, to);
        }
        Ok(result)
    }

    /// Where neither factor varies along the summed axis, the sum is a multiplication by its size.
    fn over_missing(
        &mut self,
        left: ValueId,
        right: ValueId,
        axis: AxisId,
        dim: &Dim,
    ) -> Result<(ValueId, ValueId, Option<f64>), Failure> {
        let varies = self.has(left, axis) || self.has(right, axis);
        let scale = if varies { None } else { Some(self.axes.size(dim)? as f64) };
        Ok((left, right, scale))
    }

    fn transpose(&mut self, a: TermId) -> Result<ValueId, Failure> {
        let shape = self.terms.shape(a).clone();
        let mut value = self.get(a)?;
        let (m, n) = (&shape.0[0], &shape.0[1]);
        let (row, col) = (self.axis(m, 1)?, self.axis(n, 0)?);
        let aside = self.axis(n, 3)?;
        value = self.rename(value, col, aside);
        let new_col = self.axis(m, 0)?;
        value = self.rename(value, row, new_col);
        let new_row = self.axis(n, 1)?;
        Ok(self.rename(value, aside, new_row))
    }
}
