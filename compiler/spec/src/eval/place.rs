//! How vectors lie beside matrices, and diagnostics of shapes.

use super::{Eval, Tensor, fail_help};
use crate::elaborate::Builder;
use crate::layer::{Per, Required};
use base::diagnostic::code;
use base::{Diagnostic, Dim, Span};
use miras_base as base;
use miras_term::{Mismatch, Op, Shape, TermId};

type Placed = (Tensor, Span);

/// The two ways a vector can lie along a matrix.
#[derive(Clone, Copy)]
enum Side {
    Rows,
    Columns,
}

impl Builder<'_> {
    /// Places every vector along the matrix among the operands, if there is one, and gives the gate axis
    /// that the result inherits.
    pub(super) fn align(&mut self, ops: &[Placed], span: Span) -> Eval<(Vec<Placed>, Option<Per>)> {
        let shapes: Vec<Shape> = ops.iter().map(|(t, _)| self.terms.shape(t.term).clone()).collect();
        let ones = |s: &Shape| s.0.iter().filter(|d| d.is_one()).count();
        let matrix = (0..ops.len()).filter(|i| shapes[*i].rank() == 2).min_by_key(|i| ones(&shapes[*i]));
        let lane = common_lane(ops, &shapes);
        match matrix {
            Some(m) => {
                let mut placed = Vec::new();
                for (i, (tensor, at)) in ops.iter().enumerate() {
                    let term = match shapes[i].rank() {
                        1 => self.beside(*tensor, *at, &shapes[m], ops[m].1)?,
                        _ => tensor.term,
                    };
                    placed.push((Tensor { term, lane: tensor.lane }, *at));
                }
                self.check_entry_gates(&placed, span)?;
                Ok((placed, lane.filter(|l| *l == Per::Entry)))
            }
            None => {
                self.check_vector_gates(ops, &shapes, span)?;
                Ok((ops.to_vec(), lane))
            }
        }
    }

    /// A vector as a row or a column beside a matrix (docs/guide.md).
    fn beside(&mut self, v: Tensor, at: Span, matrix: &Shape, matrix_at: Span) -> Eval<TermId> {
        let (shape, rows, cols) = (self.terms.shape(v.term).clone(), &matrix.0[0], &matrix.0[1]);
        let side = match v.lane {
            Some(Per::Channel) if *rows == Dim::dv() => Some(Side::Rows),
            Some(Per::Channel) if *cols == Dim::dk() => Some(Side::Columns),
            Some(Per::Value) if *rows == Dim::dv() => Some(Side::Rows),
            Some(Per::Key) if *cols == Dim::dk() => Some(Side::Columns),
            Some(per @ (Per::Channel | Per::Value | Per::Key)) => {
                return self.no_axis(per, at, matrix, matrix_at);
            }
            Some(Per::Token | Per::Entry) | None => by_name(&shape.0[0], rows, cols),
        };
        match side {
            Some(side) => self.lay(v.term, side, at),
            None => {
                let message = format!("a vector {shape} does not say where it lies beside a matrix {matrix}");
                let both = shape.0[0] == *rows && shape.0[0] == *cols;
                let why = if both { "both axes have its size" } else { "neither axis has its size" };
                let diagnostic = Diagnostic::new(code::AXIS, message)
                    .at(at, format!("this is {shape}"))
                    .at(matrix_at, format!("this is {matrix}: {why}"))
                    .with_help("write `row(x)` for one value per column, `col(x)` for one value per row");
                Err(Box::new(diagnostic))
            }
        }
    }

    fn lay(&mut self, v: TermId, side: Side, at: Span) -> Eval<TermId> {
        if let Op::Compare(cmp, a, b) = *self.terms.op(v) {
            let (a, b) = (self.lay_real(a, side, at)?, self.lay_real(b, side, at)?);
            let built = self.terms.compare(cmp, a, b);
            return self.built(built, &[], at);
        }
        self.lay_real(v, side, at)
    }

    fn lay_real(&mut self, v: TermId, side: Side, at: Span) -> Eval<TermId> {
        if self.terms.shape(v).rank() != 1 {
            return Ok(v);
        }
        let built = match side {
            Side::Rows => self.terms.col(v),
            Side::Columns => self.terms.row(v),
        };
        self.built(built, &[(Tensor::plain(v), at)], at)
    }

    fn no_axis<T>(&self, per: Per, at: Span, matrix: &Shape, matrix_at: Span) -> Eval<T> {
        let (word, needs) = match per {
            Per::Channel => ("channel", "rows of size dv or columns of size dk"),
            Per::Value => ("value", "rows of size dv"),
            Per::Key => ("key", "columns of size dk"),
            Per::Entry => ("entry", "the shape [dv, dk]"),
            Per::Token => ("token", "nothing"),
        };
        let message = format!("a gate per {word} has no axis on a tensor {matrix}");
        let diagnostic = Diagnostic::new(code::GATE_AXIS, message)
            .at(at, format!("a gate per {word} needs {needs}"))
            .at(matrix_at, format!("this is {matrix}"))
            .with_help("let the gate vary by token only (`learned`), or choose a memory whose weights have that axis");
        Err(Box::new(diagnostic))
    }

    /// A gate per entry is [dv, dk] and fits no other weight.
    fn check_entry_gates(&self, ops: &[Placed], _span: Span) -> Eval<()> {
        let entry = ops.iter().find(|(t, _)| t.lane == Some(Per::Entry));
        let Some((gate, at)) = entry else { return Ok(()) };
        let gate_shape = self.terms.shape(gate.term);
        for (other, other_at) in ops {
            let shape = self.terms.shape(other.term);
            let fits =
                shape.rank() != 2 || shape.0.iter().zip(&gate_shape.0).all(|(a, b)| a == b || a.is_one());
            if !fits {
                return self.no_axis(Per::Entry, *at, shape, *other_at);
            }
        }
        Ok(())
    }

    /// A gate beside a vector: channel and value are [dv] there, key [dk].
    fn check_vector_gates(&self, ops: &[Placed], shapes: &[Shape], _span: Span) -> Eval<()> {
        for (i, (gate, at)) in ops.iter().enumerate() {
            let Some(per) = gate.lane else { continue };
            if shapes[i].rank() != 1 {
                continue;
            }
            for (j, (_, other_at)) in ops.iter().enumerate() {
                let [n] = shapes[j].0.as_slice() else { continue };
                let fits = n.is_one()
                    || *n == shapes[i].0[0]
                    || per == Per::Channel && (*n == Dim::dv() || *n == Dim::dk());
                if !fits {
                    return self.no_axis(per, *at, &shapes[j], *other_at);
                }
            }
        }
        Ok(())
    }

    /// The term that was built, or the diagnostic of what does not fit; notes new constraints of sizes.
    pub(crate) fn built(
        &mut self,
        built: Result<TermId, Mismatch>,
        ops: &[Placed],
        span: Span,
    ) -> Eval<TermId> {
        match built {
            Ok(term) => {
                self.note_constraints(ops, span);
                Ok(term)
            }
            Err(mismatch) => Err(self.mismatch(mismatch, ops, span)),
        }
    }

    /// Attaches places to the constraints that the arena has met since the last call.
    pub(crate) fn note_constraints(&mut self, ops: &[Placed], span: Span) {
        let known = self.constraints.len();
        let new: Vec<_> = self.terms.constraints().iter().skip(known).cloned().collect();
        let role = |t: &Tensor| format!("this is {}", self.terms.shape(t.term));
        let sides: Vec<(Option<Span>, String)> = ops.iter().map(|(t, at)| (Some(*at), role(t))).collect();
        let whole = (Some(span), "this needs the sizes to be equal".to_string());
        let sided: Vec<_> = sides.iter().filter(|(_, text)| text != "this is scalar").cloned().collect();
        let places = match sided.as_slice() {
            [a, .., b] => [a.clone(), b.clone()],
            [a] => [a.clone(), whole],
            [] => [whole, (None, String::new())],
        };
        for constraint in new {
            self.constraints.push(Required { constraint, places: places.clone() });
        }
    }

    fn mismatch(&self, mismatch: Mismatch, ops: &[Placed], span: Span) -> Box<Diagnostic> {
        let (number, message, help) = match &mismatch {
            Mismatch::Shapes(a, b) => (
                code::SHAPE,
                format!("shapes {a} and {b} do not fit"),
                Some("make the sizes equal, or reduce one side (`sum`, `@`)".to_string()),
            ),
            Mismatch::Ranks(a, b) => (
                code::AXIS,
                format!("shapes {a} and {b} have different ranks"),
                Some("write `row(x)` for one value per column, `col(x)` for one value per row".to_string()),
            ),
            Mismatch::Rank(found, wanted) => {
                (code::SHAPE, format!("expected {wanted}, found {found}"), Some(format!("give it {wanted}")))
            }
            Mismatch::Truth(true) => (
                code::TYPE,
                "expected a number, found a truth value".to_string(),
                Some("use the comparison as a condition: `if a <= b then x else y`".to_string()),
            ),
            Mismatch::Truth(false) => (
                code::TYPE,
                "expected a truth value, found a number".to_string(),
                Some("compare it with something, e.g. `x > 0`".to_string()),
            ),
        };
        let mut diagnostic = Diagnostic::new(number, message);
        for (tensor, at) in ops {
            let ty = self.terms.ty(tensor.term);
            let what = if ty.truth { format!("truth values {}", ty.shape) } else { ty.shape.to_string() };
            diagnostic = diagnostic.at(*at, format!("this is {what}"));
        }
        if ops.is_empty() {
            diagnostic = diagnostic.at(span, "here");
        }
        Box::new(match help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        })
    }

    /// A term repeated to a shape that it must fit.
    pub(crate) fn fit(&mut self, t: Tensor, shape: &Shape, at: Span, what: &str) -> Eval<TermId> {
        let found = self.terms.shape(t.term).clone();
        let placed = match (found.rank(), shape.rank()) {
            (1, 2) => self.beside(t, at, shape, at)?,
            _ => t.term,
        };
        if self.terms.ty(placed).truth {
            return fail_help(
                code::TYPE,
                at,
                format!("{what} must be a number, found a truth value"),
                "here",
                "use `if`",
            );
        }
        let misfit = || {
            Box::new(
                Diagnostic::new(code::SHAPE, format!("{what} must have the shape {shape}, found {found}"))
                    .at(at, format!("this is {found}"))
                    .with_help(format!("make it {shape}, e.g. with `@`, `sum`, `row` or `col`")),
            )
        };
        if found.rank() > shape.rank() {
            return Err(misfit());
        }
        let spread = self.terms.spread(placed, shape).map_err(|_| misfit())?;
        self.note_constraints(&[(t, at)], at);
        let result = self.terms.shape(spread);
        let too_large = result.0.iter().zip(&shape.0).any(|(r, s)| s.is_one() && !r.is_one());
        if too_large { Err(misfit()) } else { Ok(spread) }
    }
}

/// Where a vector of a size lies by the name of its axis alone.
fn by_name(n: &Dim, rows: &Dim, cols: &Dim) -> Option<Side> {
    match (n == rows, n == cols) {
        (true, false) => Some(Side::Rows),
        (false, true) => Some(Side::Columns),
        (true, true) | (false, false) => None,
    }
}

/// The gate axis that a result inherits: the one that all its vectors (or entry gates) have.
fn common_lane(ops: &[Placed], shapes: &[Shape]) -> Option<Per> {
    let mut lanes = ops.iter().zip(shapes).filter(|(_, s)| s.rank() > 0).map(|((t, _), _)| t.lane);
    let first = lanes.next()??;
    lanes.all(|l| l == Some(first)).then_some(first)
}
