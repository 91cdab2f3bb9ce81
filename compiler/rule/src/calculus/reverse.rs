//! Reverse mode on the term DAG: one arm per operation.
//!
//! The adjoint of a term is d scalar / d term and has the term's shape. Singular points have the values
//! of the scalar table; a norm in a denominator has the floor 1e-12 (docs/mathematics.md).

use super::fold::{fit, matmul, minus, negated, outer, over, plus, select, times, total, transpose};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::{Cmp, Expr, Fn1, Fn2, derivative2, row};
use miras_term::{Axis, Mismatch, Op, Reduce, Root, Shape, TermId, Terms, VarId};
use std::collections::{HashMap, HashSet};

/// Floor of a norm in the denominator of a slope (docs/mathematics.md).
pub const SLOPE_FLOOR: f64 = 1e-12;

/// d scalar / d var for each variable of `wrt`, each of the variable's shape.
///
/// # Errors
/// E0301 where an operation has no derivative by an operand that depends on `wrt`.
pub fn gradient(terms: &mut Terms, scalar: TermId, wrt: &[VarId]) -> Result<Vec<TermId>, Diagnostic> {
    let one = terms.num(1.0);
    vector_jacobian(terms, &[(scalar, one)], wrt)
}

/// sum over the outputs of cotangent^T d output / d var for each variable of `wrt`, each of the
/// variable's shape. `outputs` are pairs (output, cotangent) of equal shape.
///
/// # Errors
/// As for [`gradient`].
pub fn vector_jacobian(
    terms: &mut Terms,
    outputs: &[(TermId, TermId)],
    wrt: &[VarId],
) -> Result<Vec<TermId>, Diagnostic> {
    let parts = contributions(terms, outputs, wrt)?;
    let mut sums = Vec::with_capacity(wrt.len());
    for (var, parts) in wrt.iter().zip(parts) {
        let shape = terms.var(*var).shape.clone();
        let mut sum = terms.fill(0.0, shape);
        for part in parts {
            sum = plus(terms, sum, part).map_err(broken)?;
        }
        sums.push(sum);
    }
    Ok(sums)
}

/// [`vector_jacobian`] with the summands of each variable kept apart, one for each use of the variable.
///
/// # Errors
/// As for [`gradient`].
pub fn contributions(
    terms: &mut Terms,
    outputs: &[(TermId, TermId)],
    wrt: &[VarId],
) -> Result<Vec<Vec<TermId>>, Diagnostic> {
    let mut sweep = Sweep::new(terms, outputs, wrt).map_err(broken)?;
    for id in sweep.order.clone().into_iter().rev() {
        sweep.pass(terms, id)?;
    }
    let mut summands = |v: &VarId| {
        let mut parts = sweep.summands.remove(v).unwrap_or_default();
        parts.reverse();
        parts
    };
    Ok(wrt.iter().map(&mut summands).collect())
}

/// A mismatch of shapes inside the calculus: its inputs were checked, so it contradicts itself.
pub(crate) fn broken(mismatch: Mismatch) -> Diagnostic {
    Diagnostic::bug(format!("a derived formula has operands that do not fit: {mismatch:?}"))
}

struct Sweep {
    /// Terms that depend on `wrt`, operands first.
    order: Vec<TermId>,
    active: HashSet<TermId>,
    adjoints: HashMap<TermId, TermId>,
    wrt: Vec<VarId>,
    summands: HashMap<VarId, Vec<TermId>>,
}

/// What an operation passes to one operand: the operand and its share of the adjoint, not yet summed
/// over repeated axes.
type Share = (TermId, TermId);

impl Sweep {
    fn new(terms: &mut Terms, outputs: &[(TermId, TermId)], wrt: &[VarId]) -> Result<Sweep, Mismatch> {
        let roots: Vec<TermId> = outputs.iter().map(|(o, _)| *o).collect();
        let mut active = HashSet::new();
        let mut order = Vec::new();
        for id in terms.reachable(&roots) {
            let depends = match terms.op(id) {
                Op::Var(v) => wrt.contains(v),
                Op::Stop(_) | Op::Compare(..) => false,
                _ => terms.operands(id).iter().any(|o| active.contains(o)),
            };
            if depends {
                active.insert(id);
                order.push(id);
            }
        }
        let mut sweep =
            Sweep { order, active, adjoints: HashMap::new(), wrt: wrt.to_vec(), summands: HashMap::new() };
        for (output, cotangent) in outputs {
            sweep.receive(terms, *output, *cotangent)?;
        }
        Ok(sweep)
    }

    /// Adds to an operand's adjoint, summed over the axes along which the operand was repeated.
    fn receive(&mut self, terms: &mut Terms, operand: TermId, share: TermId) -> Result<(), Mismatch> {
        if !self.active.contains(&operand) || terms.as_num(share) == Some(0.0) {
            return Ok(());
        }
        let shape = terms.shape(operand).clone();
        let share = unrepeated(terms, share, &shape)?;
        let share = fit(terms, share, &shape)?;
        if let Op::Var(v) = terms.op(operand) {
            self.summands.entry(*v).or_default().push(share);
            return Ok(());
        }
        let sum = match self.adjoints.get(&operand) {
            // Later uses come first here; the sum reads in the order of the program.
            Some(old) => plus(terms, share, *old)?,
            None => share,
        };
        self.adjoints.insert(operand, sum);
        Ok(())
    }

    fn pass(&mut self, terms: &mut Terms, id: TermId) -> Result<(), Diagnostic> {
        let Some(adjoint) = self.adjoints.get(&id).copied() else {
            return Ok(());
        };
        if let Op::Root(root) = terms.op(id) {
            let root = terms.root(*root).clone();
            return self.pass_root(terms, id, &root, adjoint);
        }
        if let Op::Norm(_, p) = *terms.op(id)
            && self.active.contains(&p)
        {
            return Err(no_derivative("norm", "its order"));
        }
        for (operand, share) in shares(terms, id, adjoint, &self.active).map_err(broken)? {
            self.receive(terms, operand, share).map_err(broken)?;
        }
        Ok(())
    }

    /// The implicit function theorem: with R(u, x) = 0, du/dx = -(dR/dx) / (dR/du).
    fn pass_root(
        &mut self,
        terms: &mut Terms,
        id: TermId,
        root: &Root,
        adjoint: TermId,
    ) -> Result<(), Diagnostic> {
        let quotient = over(terms, adjoint, root.slope).map_err(broken)?;
        let cotangent = negated(terms, quotient).map_err(broken)?;
        let wrt = self.wrt.clone();
        let parts = contributions(terms, &[(root.residual, cotangent)], &wrt)?;
        let at_root = HashMap::from([(root.unknown, id)]);
        for (var, parts) in wrt.iter().zip(parts) {
            let parts = terms.substitute(&parts, &at_root).map_err(broken)?;
            self.summands.entry(*var).or_default().extend(parts);
        }
        Ok(())
    }
}

fn no_derivative(function: &str, by: &str) -> Diagnostic {
    Diagnostic::new(code::NO_DERIVATIVE, format!("`{function}` has no derivative by {by} in the table"))
        .with_help(format!("keep {by} independent of what is differentiated by, or wrap it in `stop(...)`"))
}

/// The adjoints that an operation passes to its operands.
fn shares(t: &mut Terms, id: TermId, g: TermId, active: &HashSet<TermId>) -> Result<Vec<Share>, Mismatch> {
    let op = t.op(id).clone();
    Ok(match op {
        Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Var(_) | Op::Eye(_) => vec![],
        Op::Stop(_) | Op::Compare(..) | Op::Root(_) => vec![],
        Op::Fn1(f, a) => vec![(a, chain(t, g, &(row(f).derivative)(), &[a])?)],
        Op::Fn2(f, a, b) => binary(t, f, a, b, g, active)?,
        Op::Select(c, a, b) => {
            let zero = t.num(0.0);
            vec![(a, select(t, c, g, zero)?), (b, select(t, c, zero, g)?)]
        }
        Op::MatMul(a, b) => product(t, a, b, g, active)?,
        Op::Outer(a, b) => {
            let turned = transpose(t, g)?;
            vec![(a, matmul(t, g, b)?), (b, matmul(t, turned, a)?)]
        }
        Op::Transpose(a) => vec![(a, transpose(t, g)?)],
        Op::Row(a) | Op::Col(a) => vec![(a, t.flat(g)?)],
        Op::Flat(a) => {
            let as_row = t.shape(a).0.first().is_some_and(miras_base::Dim::is_one);
            vec![(a, if as_row { t.row(g)? } else { t.col(g)? })]
        }
        Op::Spread(a, _) => vec![(a, g)],
        Op::Reduce(Reduce::Sum, _, a) => vec![(a, repeated(t, g, a)?)],
        Op::Reduce(Reduce::Max | Reduce::Min, axis, a) => vec![(a, extreme(t, id, axis, a, g)?)],
        Op::Norm(x, p) => vec![(x, norm(t, id, x, p, g)?)],
        Op::Softmax(axis, x) => vec![(x, softmax(t, id, axis, g)?)],
        Op::LogSoftmax(axis, x) => {
            let (sum, softmax) = (total(t, axis, g)?, t.softmax(axis, x)?);
            let product = times(t, sum, softmax)?;
            vec![(x, minus(t, g, product)?)]
        }
        Op::LayerNorm(x) => vec![(x, layer_norm(t, id, x, g)?)],
        Op::InverseDeviation(x) => vec![(x, inverse_deviation(t, id, x, g)?)],
    })
}

/// g * slope(args).
fn chain(t: &mut Terms, g: TermId, slope: &Expr, args: &[TermId]) -> Result<TermId, Mismatch> {
    let slope = folded(t, slope, args)?;
    times(t, g, slope)
}

/// A table expression with terms for its arguments, through the folding constructors.
pub(crate) fn folded(t: &mut Terms, expr: &Expr, args: &[TermId]) -> Result<TermId, Mismatch> {
    match expr {
        Expr::Fn2(Fn2::Mul, a, b) => {
            let (a, b) = (folded(t, a, args)?, folded(t, b, args)?);
            times(t, a, b)
        }
        Expr::Fn2(Fn2::Add, a, b) => {
            let (a, b) = (folded(t, a, args)?, folded(t, b, args)?);
            plus(t, a, b)
        }
        Expr::Fn2(Fn2::Div, a, b) => {
            let (a, b) = (folded(t, a, args)?, folded(t, b, args)?);
            over(t, a, b)
        }
        Expr::Arg(_) | Expr::Const(_) | Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select(..) => {
            t.expr(expr, args)
        }
    }
}

fn binary(
    t: &mut Terms,
    f: Fn2,
    a: TermId,
    b: TermId,
    g: TermId,
    active: &HashSet<TermId>,
) -> Result<Vec<Share>, Mismatch> {
    let mut shares = Vec::new();
    for (by, operand) in [(0, a), (1, b)] {
        if !active.contains(&operand) {
            continue;
        }
        let share = match (f, by) {
            (Fn2::Add, _) | (Fn2::Sub, 0) => g,
            (Fn2::Sub, _) => negated(t, g)?,
            _ => chain(t, g, &derivative2(f, by), &[a, b])?,
        };
        shares.push((operand, share));
    }
    Ok(shares)
}

fn product(
    t: &mut Terms,
    a: TermId,
    b: TermId,
    g: TermId,
    active: &HashSet<TermId>,
) -> Result<Vec<Share>, Mismatch> {
    let mut shares = Vec::new();
    if active.contains(&a) {
        let share = if t.shape(b).rank() == 1 {
            outer(t, g, b)?
        } else {
            let turned = transpose(t, b)?;
            matmul(t, g, turned)?
        };
        shares.push((a, share));
    }
    if active.contains(&b) {
        let turned = transpose(t, a)?;
        shares.push((b, matmul(t, turned, g)?));
    }
    Ok(shares)
}

/// g shared equally by the entries that attain the extreme.
fn extreme(t: &mut Terms, id: TermId, axis: Axis, a: TermId, g: TermId) -> Result<TermId, Mismatch> {
    let value = repeated(t, id, a)?;
    let attains = t.compare(Cmp::Eq, a, value)?;
    let (one, zero) = (t.num(1.0), t.num(0.0));
    let mask = t.select(attains, one, zero)?;
    let count = total(t, axis, mask)?;
    let share = over(t, g, count)?;
    let share = repeated(t, share, a)?;
    times(t, share, mask)
}

/// g sign(x) (|x| / max(norm, floor))^(p - 1), which is x / max(norm, floor) for p = 2.
fn norm(t: &mut Terms, id: TermId, x: TermId, p: TermId, g: TermId) -> Result<TermId, Mismatch> {
    let floor = t.num(SLOPE_FLOOR);
    let length = t.fn2(Fn2::Max, id, floor)?;
    let slope = match t.as_num(p) {
        Some(2.0) => over(t, x, length)?,
        Some(1.0) => t.fn1(Fn1::Sign, x)?,
        _ => {
            let (magnitude, one) = (t.fn1(Fn1::Abs, x)?, t.num(1.0));
            let (ratio, exponent) = (over(t, magnitude, length)?, t.sub(p, one)?);
            let (power, sign) = (t.fn2(Fn2::Pow, ratio, exponent)?, t.fn1(Fn1::Sign, x)?);
            times(t, sign, power)?
        }
    };
    times(t, g, slope)
}

/// s * (g - sum(s * g)).
fn softmax(t: &mut Terms, s: TermId, axis: Axis, g: TermId) -> Result<TermId, Mismatch> {
    let weighted = times(t, s, g)?;
    let mean = total(t, axis, weighted)?;
    let rest = minus(t, g, mean)?;
    times(t, s, rest)
}

/// r * (g - mean(g) - n * mean(n * g)) with n the normalised x, r the inverse deviation.
fn layer_norm(t: &mut Terms, n: TermId, x: TermId, g: TermId) -> Result<TermId, Mismatch> {
    let (r, count) = (t.inverse_deviation(x)?, t.count(Axis::Row, x)?);
    let sum = total(t, Axis::Row, g)?;
    let mean = over(t, sum, count)?;
    let overlap = times(t, n, g)?;
    let overlap = total(t, Axis::Row, overlap)?;
    let overlap = over(t, overlap, count)?;
    let along = times(t, n, overlap)?;
    let centred = minus(t, g, mean)?;
    let rest = minus(t, centred, along)?;
    times(t, r, rest)
}

/// -g r^2 n / N: r = (var + eps)^(-1/2) and d var / d x = 2 (x - mean) / N.
fn inverse_deviation(t: &mut Terms, r: TermId, x: TermId, g: TermId) -> Result<TermId, Mismatch> {
    let (n, count) = (t.layer_norm(x)?, t.count(Axis::Row, x)?);
    let squared = times(t, r, r)?;
    let factor = times(t, g, squared)?;
    let factor = over(t, factor, count)?;
    let product = times(t, factor, n)?;
    negated(t, product)
}

/// A reduced term repeated to the shape of what was reduced.
fn repeated(t: &mut Terms, reduced: TermId, like: TermId) -> Result<TermId, Mismatch> {
    let shape = t.shape(like).clone();
    fit(t, reduced, &shape)
}

/// The sum of a share over the axes along which an operand of `shape` was repeated.
fn unrepeated(t: &mut Terms, share: TermId, shape: &Shape) -> Result<TermId, Mismatch> {
    let own = t.shape(share).clone();
    if own == *shape || own.rank() == 0 {
        return Ok(share);
    }
    if shape.rank() == 0 {
        return total(t, Axis::All, share);
    }
    let repeated =
        |i: usize| shape.0.get(i).zip(own.0.get(i)).is_some_and(|(to, from)| to.is_one() && !from.is_one());
    match (own.rank(), repeated(0), repeated(1)) {
        (1, true, _) => total(t, Axis::All, share),
        (2, true, true) => total(t, Axis::All, share),
        (2, true, false) => total(t, Axis::Column, share),
        (2, false, true) => total(t, Axis::Row, share),
        _ => Ok(share),
    }
}
