//! Constructors of terms. They check shapes, fold constants and drop neutral elements.

use crate::arena::{Axis, Number, Op, Place, Reduce, Root, TermId, Terms, VarId};
use crate::shape::{Constraint, Meeting, Mismatch, Shape, Type, meet};
use miras_base::Dim;
use miras_base::scalar::{Cmp, Expr, Fn1, Fn2};

type Built = Result<TermId, Mismatch>;

/// Leaves.
impl Terms {
    /// A number.
    pub fn num(&mut self, value: f64) -> TermId {
        self.intern(Op::Const(Number(value)), Type::real(Shape::scalar()))
    }

    /// A polynomial of sizes, as a scalar; as a difference of two where it may be negative.
    pub fn size(&mut self, dim: Dim) -> TermId {
        let scalar = Type::real(Shape::scalar());
        if let Some(n) = dim.as_constant() {
            return self.num(n as f64);
        }
        if dim.is_positive() == Some(true) {
            return self.intern(Op::Size(dim), scalar);
        }
        match dim.parts() {
            Some((more, less)) if less != Dim::constant(0) => {
                let (none, more, less) = (more == Dim::constant(0), self.size(more), self.size(less));
                let op = if none { Op::Fn1(Fn1::Neg, less) } else { Op::Fn2(Fn2::Sub, more, less) };
                self.intern(op, scalar)
            }
            Some(_) | None => self.intern(Op::Size(dim), scalar),
        }
    }

    /// A number of the layer's place.
    pub fn place(&mut self, place: Place) -> TermId {
        self.intern(Op::Place(place), Type::real(Shape::scalar()))
    }

    /// A variable as a term.
    pub fn use_var(&mut self, var: VarId) -> TermId {
        let shape = self.var(var).shape.clone();
        self.intern(Op::Var(var), Type::real(shape))
    }

    /// The identity matrix [n, n].
    pub fn eye(&mut self, n: Dim) -> TermId {
        self.intern(Op::Eye(n.clone()), Type::real(Shape::matrix(n.clone(), n)))
    }

    /// A number repeated to a shape.
    pub fn fill(&mut self, value: f64, shape: Shape) -> TermId {
        let scalar = self.num(value);
        if shape.rank() == 0 {
            scalar
        } else {
            self.intern(Op::Spread(scalar, shape.clone()), Type::real(shape))
        }
    }

    /// The number that a term is everywhere, if it is one.
    pub fn as_num(&self, id: TermId) -> Option<f64> {
        match self.op(id) {
            Op::Const(n) => Some(n.0),
            Op::Spread(inner, _) => self.as_num(*inner),
            _ => None,
        }
    }
}

/// Element-wise functions.
impl Terms {
    /// A function of the table, entry by entry.
    pub fn fn1(&mut self, f: Fn1, a: TermId) -> Built {
        self.expect_real(a)?;
        let shape = self.shape(a).clone();
        if let Some(x) = self.as_num(a) {
            let value = f.eval(x);
            if value.is_finite() {
                return Ok(self.fill(value, shape));
            }
        }
        if let (Fn1::Neg, Op::Fn1(Fn1::Neg, inner)) = (f, self.op(a)) {
            return Ok(*inner);
        }
        Ok(self.intern(Op::Fn1(f, a), Type::real(shape)))
    }

    /// A function of two arguments, entry by entry.
    pub fn fn2(&mut self, f: Fn2, a: TermId, b: TermId) -> Built {
        self.expect_real(a)?;
        self.expect_real(b)?;
        let shape = self.join(a, b)?;
        let (x, y) = (self.as_num(a), self.as_num(b));
        if let (Some(x), Some(y)) = (x, y) {
            let value = f.eval(x, y);
            if value.is_finite() {
                return Ok(self.fill(value, shape));
            }
        }
        match (f, x, y) {
            (Fn2::Add, Some(0.0), _) | (Fn2::Mul, Some(1.0), _) => return Ok(self.spread_to(b, &shape)),
            (Fn2::Add | Fn2::Sub, _, Some(0.0)) => return Ok(self.spread_to(a, &shape)),
            (Fn2::Mul | Fn2::Div | Fn2::Pow, _, Some(1.0)) => return Ok(self.spread_to(a, &shape)),
            (Fn2::Mul, Some(0.0), _) | (Fn2::Mul, _, Some(0.0)) => return Ok(self.fill(0.0, shape)),
            (Fn2::Pow, _, Some(0.0)) => return Ok(self.fill(1.0, shape)),
            (Fn2::Sub, Some(0.0), _) => {
                let n = self.fn1(Fn1::Neg, b)?;
                return Ok(self.spread_to(n, &shape));
            }
            (Fn2::Mul, Some(-1.0), _) => {
                let n = self.fn1(Fn1::Neg, b)?;
                return Ok(self.spread_to(n, &shape));
            }
            (Fn2::Mul, _, Some(-1.0)) => {
                let n = self.fn1(Fn1::Neg, a)?;
                return Ok(self.spread_to(n, &shape));
            }
            (Fn2::Add | Fn2::Sub | Fn2::Mul | Fn2::Div | Fn2::Pow | Fn2::Min | Fn2::Max, _, _) => {}
        }
        Ok(self.intern(Op::Fn2(f, a, b), Type::real(shape)))
    }

    /// `a + b`.
    pub fn add(&mut self, a: TermId, b: TermId) -> Built {
        self.fn2(Fn2::Add, a, b)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: TermId, b: TermId) -> Built {
        self.fn2(Fn2::Sub, a, b)
    }

    /// `a * b`.
    pub fn mul(&mut self, a: TermId, b: TermId) -> Built {
        self.fn2(Fn2::Mul, a, b)
    }

    /// `a / b`.
    pub fn div(&mut self, a: TermId, b: TermId) -> Built {
        self.fn2(Fn2::Div, a, b)
    }

    /// `-a`.
    pub fn neg(&mut self, a: TermId) -> Built {
        self.fn1(Fn1::Neg, a)
    }

    /// A comparison.
    pub fn compare(&mut self, cmp: Cmp, a: TermId, b: TermId) -> Built {
        self.expect_real(a)?;
        self.expect_real(b)?;
        let shape = self.join(a, b)?;
        Ok(self.intern(Op::Compare(cmp, a, b), Type { shape, truth: true }))
    }

    /// `if c then a else b`.
    pub fn select(&mut self, c: TermId, a: TermId, b: TermId) -> Built {
        if !self.ty(c).truth {
            return Err(Mismatch::Truth(false));
        }
        self.expect_real(a)?;
        self.expect_real(b)?;
        let branches = self.join(a, b)?;
        let shape = self.join_shapes(self.shape(c).clone(), branches)?;
        if a == b {
            return Ok(self.spread_to(a, &shape));
        }
        if let Op::Compare(cmp, x, y) = self.op(c)
            && let (Some(x), Some(y)) = (self.as_num(*x), self.as_num(*y))
        {
            let chosen = if cmp.eval(x, y) { a } else { b };
            return Ok(self.spread_to(chosen, &shape));
        }
        Ok(self.intern(Op::Select(c, a, b), Type::real(shape)))
    }

    /// A table expression with these terms for its arguments.
    pub fn expr(&mut self, expr: &Expr, args: &[TermId]) -> Built {
        match expr {
            Expr::Arg(i) => Ok(args[*i as usize]),
            Expr::Const(c) => Ok(self.num(*c)),
            Expr::Fn1(f, a) => {
                let a = self.expr(a, args)?;
                self.fn1(*f, a)
            }
            Expr::Fn2(f, a, b) => {
                let (a, b) = (self.expr(a, args)?, self.expr(b, args)?);
                self.fn2(*f, a, b)
            }
            Expr::Select(cmp, a, b, t, e) => {
                let (a, b) = (self.expr(a, args)?, self.expr(b, args)?);
                let condition = self.compare(*cmp, a, b)?;
                let (t, e) = (self.expr(t, args)?, self.expr(e, args)?);
                self.select(condition, t, e)
            }
        }
    }
}

/// Tensor functions.
impl Terms {
    /// Matrix times vector or matrix.
    pub fn matmul(&mut self, a: TermId, b: TermId) -> Built {
        self.expect_real(a)?;
        self.expect_real(b)?;
        let (sa, sb) = (self.shape(a).clone(), self.shape(b).clone());
        let [m, n] = sa.0.as_slice() else { return Err(Mismatch::Rank(sa, "a matrix left of `@`")) };
        let Some(inner) = sb.0.first() else {
            return Err(Mismatch::Rank(sb, "a vector or matrix right of `@`"));
        };
        self.require_equal(n, inner, &sa, &sb)?;
        let mut shape = vec![m.clone()];
        shape.extend(sb.0.get(1).cloned());
        Ok(self.intern(Op::MatMul(a, b), Type::real(Shape(shape))))
    }

    /// Outer product of two vectors.
    pub fn outer(&mut self, a: TermId, b: TermId) -> Built {
        let (m, n) = (self.expect_vector(a)?, self.expect_vector(b)?);
        Ok(self.intern(Op::Outer(a, b), Type::real(Shape::matrix(m, n))))
    }

    /// Transpose of a matrix.
    pub fn transpose(&mut self, a: TermId) -> Built {
        self.expect_real(a)?;
        if let Op::Transpose(inner) = self.op(a) {
            return Ok(*inner);
        }
        let shape = self.shape(a).clone();
        let [m, n] = shape.0.as_slice() else { return Err(Mismatch::Rank(shape, "a matrix")) };
        Ok(self.intern(Op::Transpose(a), Type::real(Shape::matrix(n.clone(), m.clone()))))
    }

    /// A vector as one row: one value for each column.
    pub fn row(&mut self, a: TermId) -> Built {
        let n = self.expect_vector(a)?;
        Ok(self.intern(Op::Row(a), Type::real(Shape::matrix(Dim::one(), n))))
    }

    /// A vector as one column: one value for each row.
    pub fn col(&mut self, a: TermId) -> Built {
        let n = self.expect_vector(a)?;
        Ok(self.intern(Op::Col(a), Type::real(Shape::matrix(n, Dim::one()))))
    }

    /// A row or column back to a vector.
    pub fn flat(&mut self, a: TermId) -> Built {
        self.expect_real(a)?;
        if let Op::Row(inner) | Op::Col(inner) = self.op(a) {
            return Ok(*inner);
        }
        let shape = self.shape(a).clone();
        let n = match shape.0.as_slice() {
            [one, n] if one.is_one() => n.clone(),
            [n, one] if one.is_one() => n.clone(),
            _ => return Err(Mismatch::Rank(shape, "one row or one column")),
        };
        Ok(self.intern(Op::Flat(a), Type::real(Shape::vector(n))))
    }

    /// A term repeated to a shape that it fits by scalars and size-1 axes.
    pub fn spread(&mut self, a: TermId, shape: &Shape) -> Built {
        let joined = self.join_shapes(self.shape(a).clone(), shape.clone())?;
        Ok(self.spread_to(a, &joined))
    }

    /// A reduction.
    pub fn reduce(&mut self, op: Reduce, axis: Axis, a: TermId) -> Built {
        self.expect_real(a)?;
        let shape = reduced(self.shape(a), axis)?;
        if *self.shape(a) == shape {
            return Ok(a);
        }
        Ok(self.intern(Op::Reduce(op, axis, a), Type::real(shape)))
    }

    /// Sum of all entries.
    pub fn sum(&mut self, a: TermId) -> Built {
        self.reduce(Reduce::Sum, Axis::All, a)
    }

    /// Number of entries along the axes, as a scalar.
    pub fn count(&mut self, axis: Axis, a: TermId) -> Built {
        let shape = self.shape(a).clone();
        let dims: Vec<Dim> = match (axis, shape.rank()) {
            (Axis::All, _) => shape.0,
            (Axis::Row, _) => shape.0.last().cloned().into_iter().collect(),
            (Axis::Column, _) => shape.0.first().cloned().into_iter().collect(),
        };
        let mut product = self.num(1.0);
        for d in dims {
            let size = self.size(d);
            product = self.mul(product, size)?;
        }
        Ok(product)
    }

    /// Mean of all entries.
    pub fn mean(&mut self, a: TermId) -> Built {
        let (sum, count) = (self.sum(a)?, self.count(Axis::All, a)?);
        self.div(sum, count)
    }

    /// sum(a * b) over all entries.
    pub fn dot(&mut self, a: TermId, b: TermId) -> Built {
        let product = self.mul(a, b)?;
        self.sum(product)
    }

    /// (sum |x|^p)^(1/p) over all entries.
    pub fn norm(&mut self, x: TermId, p: TermId) -> Built {
        self.expect_real(x)?;
        self.expect_scalar(p)?;
        Ok(self.intern(Op::Norm(x, p), Type::real(Shape::scalar())))
    }

    /// Softmax along the axes.
    pub fn softmax(&mut self, axis: Axis, x: TermId) -> Built {
        self.expect_real(x)?;
        reduced(self.shape(x), axis)?;
        let shape = self.shape(x).clone();
        Ok(self.intern(Op::Softmax(axis, x), Type::real(shape)))
    }

    /// Logarithm of softmax along the axes.
    pub fn log_softmax(&mut self, axis: Axis, x: TermId) -> Built {
        self.expect_real(x)?;
        reduced(self.shape(x), axis)?;
        let shape = self.shape(x).clone();
        Ok(self.intern(Op::LogSoftmax(axis, x), Type::real(shape)))
    }

    /// Layer normalisation along the last axis, eps 1e-5.
    pub fn layer_norm(&mut self, x: TermId) -> Built {
        self.expect_real(x)?;
        reduced(self.shape(x), Axis::Row)?;
        let shape = self.shape(x).clone();
        Ok(self.intern(Op::LayerNorm(x), Type::real(shape)))
    }

    /// The factor 1 / sqrt(var + 1e-5) of [`Terms::layer_norm`].
    pub fn inverse_deviation(&mut self, x: TermId) -> Built {
        self.expect_real(x)?;
        let shape = reduced(self.shape(x), Axis::Row)?;
        Ok(self.intern(Op::InverseDeviation(x), Type::real(shape)))
    }

    /// The same value, cut from outer gradients.
    pub fn stop(&mut self, x: TermId) -> Built {
        self.expect_real(x)?;
        let shape = self.shape(x).clone();
        Ok(self.intern(Op::Stop(x), Type::real(shape)))
    }

    /// The solution of an equation.
    pub fn solve_root(&mut self, root: Root) -> Built {
        let shape = self.var(root.unknown).shape.clone();
        for part in [root.residual, root.slope, root.low, root.high] {
            self.join_shapes(self.shape(part).clone(), shape.clone())?;
        }
        let id = self.add_root(root);
        Ok(self.intern(Op::Root(id), Type::real(shape)))
    }
}

/// Shape checks.
impl Terms {
    fn expect_real(&self, a: TermId) -> Result<(), Mismatch> {
        if self.ty(a).truth { Err(Mismatch::Truth(true)) } else { Ok(()) }
    }

    fn expect_scalar(&self, a: TermId) -> Result<(), Mismatch> {
        self.expect_real(a)?;
        if self.shape(a).rank() == 0 {
            Ok(())
        } else {
            Err(Mismatch::Rank(self.shape(a).clone(), "a scalar"))
        }
    }

    fn expect_vector(&self, a: TermId) -> Result<Dim, Mismatch> {
        self.expect_real(a)?;
        match self.shape(a).0.as_slice() {
            [n] => Ok(n.clone()),
            _ => Err(Mismatch::Rank(self.shape(a).clone(), "a vector")),
        }
    }

    fn require_equal(&mut self, a: &Dim, b: &Dim, sa: &Shape, sb: &Shape) -> Result<(), Mismatch> {
        if a == b {
            return Ok(());
        }
        if a.never_equals(b) {
            return Err(Mismatch::Shapes(sa.clone(), sb.clone()));
        }
        self.add_constraint(Constraint { left: a.clone(), right: b.clone() });
        Ok(())
    }

    fn join(&mut self, a: TermId, b: TermId) -> Result<Shape, Mismatch> {
        self.join_shapes(self.shape(a).clone(), self.shape(b).clone())
    }

    /// The shape in which two operands meet; records the constraints that needs.
    fn join_shapes(&mut self, a: Shape, b: Shape) -> Result<Shape, Mismatch> {
        match (a.rank(), b.rank()) {
            (0, _) => return Ok(b),
            (_, 0) => return Ok(a),
            (m, n) if m != n => return Err(Mismatch::Ranks(a, b)),
            _ => {}
        }
        let mut axes = Vec::new();
        for (x, y) in a.0.iter().zip(&b.0) {
            match meet(x, y) {
                Meeting::Same | Meeting::RepeatRight => axes.push(x.clone()),
                Meeting::RepeatLeft => axes.push(y.clone()),
                Meeting::Constrained(c) => {
                    self.add_constraint(c);
                    axes.push(x.clone());
                }
                Meeting::Never => return Err(Mismatch::Shapes(a, b)),
            }
        }
        Ok(Shape(axes))
    }

    fn spread_to(&mut self, a: TermId, shape: &Shape) -> TermId {
        if self.shape(a) == shape {
            return a;
        }
        let inner = match self.op(a) {
            Op::Spread(inner, _) => *inner,
            _ => a,
        };
        self.intern(Op::Spread(inner, shape.clone()), Type::real(shape.clone()))
    }
}

/// The shape that a reduction along `axis` leaves.
fn reduced(shape: &Shape, axis: Axis) -> Result<Shape, Mismatch> {
    match (axis, shape.0.as_slice()) {
        (Axis::All, _) => Ok(Shape::scalar()),
        (Axis::Row, [_]) => Ok(Shape::scalar()),
        (Axis::Row, [m, _]) => Ok(Shape::matrix(m.clone(), Dim::one())),
        (Axis::Column, [_, n]) => Ok(Shape::matrix(Dim::one(), n.clone())),
        (Axis::Row, _) => Err(Mismatch::Rank(shape.clone(), "a vector or a matrix")),
        (Axis::Column, _) => Err(Mismatch::Rank(shape.clone(), "a matrix")),
    }
}
