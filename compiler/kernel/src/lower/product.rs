//! Sums of products as matrix products.

use super::Lowering;
use super::choose::Form;
use super::view::View;
use crate::ir::{Factor, Matrix, Product};
use miras_base::Diagnostic;
use miras_base::scalar::Cmp;
use miras_tensor::ir::{AxisId, Graph, Op, Size, ValueId};

/// Multiply-adds from which a product is worth a call.
const SMALL: usize = 4096;

/// Rows, columns and length of a sum from which the call is worth it.
const THIN: usize = 4;

/// The axes of a product: rows, columns, and those that are summed over.
struct Axes {
    rows: Vec<AxisId>,
    cols: Vec<AxisId>,
    over: Vec<AxisId>,
}

/// Whether a value is computed as a matrix product: its operands then have arrays.
pub(super) fn is_product(graph: &Graph, id: ValueId) -> bool {
    let count =
        |axes: &[AxisId]| axes.iter().map(|a| fixed(graph, *a)).try_fold(1usize, |n, s| n.checked_mul(s?));
    let Some(axes) = axes(graph, id) else { return false };
    let sizes = [count(&axes.rows), count(&axes.cols), count(&axes.over)];
    let [Some(m), Some(n), Some(k)] = sizes else { return false };
    m.min(n).min(k) >= THIN && m.saturating_mul(n).saturating_mul(k) >= SMALL
}

fn fixed(graph: &Graph, axis: AxisId) -> Option<usize> {
    match graph.axis(axis).size {
        Size::Fixed(n) => Some(n),
        Size::Tokens | Size::Past => None,
    }
}

/// The axes of a sum whose operands share no others.
fn axes(graph: &Graph, id: ValueId) -> Option<Axes> {
    let Op::Einsum(a, b, over) = &graph.value(id).op else { return None };
    let parted = |v: ValueId| -> Option<(Vec<AxisId>, Vec<AxisId>)> {
        let (met, rest): (Vec<_>, Vec<_>) =
            graph.value(v).axes.iter().copied().partition(|x| over.contains(x));
        (met.len() == over.len() && !rest.is_empty()).then_some((met, rest))
    };
    let ((over, rows), (_, cols)) = (parted(*a)?, parted(*b)?);
    (!rows.iter().any(|x| cols.contains(x))).then_some(Axes { rows, cols, over })
}

impl Lowering<'_> {
    /// The product that fills `target` with a value, where it is one and its operands lie so.
    pub(super) fn product(&mut self, id: ValueId, target: &View) -> Result<Option<Product>, Diagnostic> {
        let graph = self.graph;
        let (Op::Einsum(a_of, b_of, _), true) = (&graph.value(id).op, is_product(graph, id)) else {
            return Ok(None);
        };
        let Some(axes) = axes(graph, id) else { return Ok(None) };
        let stored = |v: &ValueId| matches!(self.forms.of(*v), Form::Stored | Form::Applied | Form::Seen);
        if !stored(a_of) || !stored(b_of) {
            return Ok(None);
        }
        let (rows, cols) = (self.sizes(&axes.rows)?, self.sizes(&axes.cols)?);
        let lengths = self.sizes(&axes.over)?;
        let k = lengths.iter().product();
        let (left, right) = (self.view(*a_of)?, self.view(*b_of)?);
        let matrix = |view: &View, row: Option<usize>, col: Option<usize>| {
            Some(Matrix { start: view.first(), row_stride: row?, col_stride: col? })
        };
        let over = |view: &View| view.joined(&axes.over, &lengths);
        let a = matrix(&left, left.joined(&axes.rows, &rows), over(&left));
        let b = matrix(&right, over(&right), right.joined(&axes.cols, &cols));
        let c = matrix(target, target.joined(&axes.rows, &rows), target.joined(&axes.cols, &cols));
        let (Some(a), Some(b), Some(c)) = (a, b, c) else { return Ok(None) };
        let triangular = match (axes.rows.as_slice(), axes.over.as_slice()) {
            ([row], [over]) => self.lower_triangular(*a_of, *row, *over),
            _ => false,
        };
        let (m, n) = (rows.iter().product(), cols.iter().product());
        // Turned where that puts the columns of the result side by side: b^T @ a^T, the sums are the same.
        let turned = !triangular && c.col_stride != 1 && c.row_stride == 1;
        let (a, b, c) = if turned { (b.turned(), a.turned(), c.turned()) } else { (a, b, c) };
        let (m, n) = if turned { (n, m) } else { (m, n) };
        let value = graph.value(id);
        let equation = value.equation.clone().or_else(|| value.name.clone()).unwrap_or_default();
        let (alpha, beta) = (Factor::Const(1.0), Factor::Const(0.0));
        Ok(Some(Product { equation, m, n, k, a, b, c, alpha, beta, triangular }))
    }

    /// Whether a value is chosen to be 0 where `over` lies behind `row`.
    fn lower_triangular(&self, id: ValueId, row: AxisId, over: AxisId) -> bool {
        let graph = self.graph;
        let number = |v: ValueId| matches!(graph.value(v).op, Op::Number(x) if x == 0.0);
        let index = |v: ValueId, axis: AxisId| graph.value(v).op == Op::Index(axis);
        match &graph.value(id).op {
            Op::Select(condition, _, no) if number(*no) => match &graph.value(*condition).op {
                Op::Compare(Cmp::Le | Cmp::Lt, a, b) => index(*a, over) && index(*b, row),
                _ => false,
            },
            _ => false,
        }
    }
}
