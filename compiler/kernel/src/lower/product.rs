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

impl Axes {
    /// Whether the left operand is chosen to be 0 where what is summed over lies behind the row.
    fn triangular(&self, graph: &Graph, left: ValueId) -> bool {
        match (self.rows.as_slice(), self.over.as_slice()) {
            ([row], [over]) => lower_triangular(graph, left, *row, *over),
            _ => false,
        }
    }
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
        let triangular = axes.triangular(graph, *a_of);
        let matrix = |view: &View, row: Option<usize>, col: Option<usize>| {
            Some(Matrix { start: view.first(), row_stride: row?, col_stride: col? })
        };
        let over = |view: &View| view.joined(&axes.over, &lengths);
        let a = matrix(&left, left.joined(&axes.rows, &rows), over(&left));
        let b = matrix(&right, over(&right), right.joined(&axes.cols, &cols));
        let c = matrix(target, target.joined(&axes.rows, &rows), target.joined(&axes.cols, &cols));
        let (Some(a), Some(b), Some(c)) = (a, b, c) else { return Ok(None) };
        let value = graph.value(id);
        let equation = value.equation.clone().or_else(|| value.name.clone()).unwrap_or_default();
        let (m, n) = (rows.iter().product(), cols.iter().product());
        let (alpha, beta) = (Factor::Const(1.0), Factor::Const(0.0));
        let product = Product { equation, m, n, k, a, b, c, alpha, beta, triangular };
        let turned = turned(&product);
        Ok(Some(if !triangular && copied(&turned) < copied(&product) { turned } else { product }))
    }
}

/// The same sums as `c^T = b^T @ a^T`.
fn turned(product: &Product) -> Product {
    let Product { m, n, a, b, c, .. } = product.clone();
    Product { m: n, n: m, a: b.turned(), b: a.turned(), c: c.turned(), ..product.clone() }
}

/// Elements that lie the wrong way: neighbouring columns of b and c are wanted side by side.
fn copied(p: &Product) -> usize {
    let of_b = if p.n > 1 && p.b.col_stride != 1 { p.n.saturating_mul(p.k) } else { 0 };
    let of_c = if p.n > 1 && p.c.col_stride != 1 { p.m.saturating_mul(p.n).saturating_mul(2) } else { 0 };
    of_b.saturating_add(of_c)
}

/// Whether every user of a mask is a product that is triangular by it, its own tokens among those that it lets pass: what
/// the mask hides takes no part in those, whatever stands there.
pub(super) fn only_masks(graph: &Graph, id: ValueId, users: &[ValueId]) -> bool {
    let own = |condition: &ValueId| matches!(graph.value(*condition).op, Op::Compare(Cmp::Le, ..));
    let Op::Select(condition, ..) = &graph.value(id).op else { return false };
    own(condition)
        && !users.is_empty()
        && users.iter().all(|user| match &graph.value(*user).op {
            Op::Einsum(a, b, _) => {
                let left = *a == id && *b != id && is_product(graph, *user);
                left && axes(graph, *user).is_some_and(|axes| axes.triangular(graph, id))
            }
            _ => false,
        })
}

/// Whether a value is chosen to be 0 where `over` lies behind `row`.
fn lower_triangular(graph: &Graph, id: ValueId, row: AxisId, over: AxisId) -> bool {
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
