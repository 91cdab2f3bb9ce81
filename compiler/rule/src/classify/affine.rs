//! A step that is affine in one matrix weight W with corrections of rank one (the delta family):
//!
//! `u = diagonal * W + sum scale * ((entry * W) @ input) (x) right + write`
//!
//! where nothing but W itself depends on W. That is what the WY form of a chunk needs; how a program
//! spells it does not matter.

use crate::algebra::occurrences;
use crate::calculus::fold::{matmul, negated, outer, over, plus, times, transpose};
use crate::gradient::outer::{as_outer, summands};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Mismatch, Op, TermId, Terms, VarId};

/// The affine form of a step u in a weight W of shape [rows, cols].
#[derive(Clone, Debug, Default)]
pub struct DeltaForm {
    /// What multiplies W entry by entry (a scalar, row, column or matrix); None: 0.
    pub diagonal: Option<TermId>,
    /// The corrections of rank one.
    pub corrections: Vec<Correction>,
    /// What does not depend on W; None: 0.
    pub write: Option<TermId>,
}

/// `spread * (scale * ((entry * W) @ input) (x) right)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// A scalar or a vector [rows]; None: 1.
    pub scale: Option<TermId>,
    /// What multiplies W entry by entry before it meets the input; None: 1.
    pub entry: Option<TermId>,
    /// What W is applied to, [cols].
    pub input: TermId,
    /// The right side of the outer product, [cols].
    pub right: TermId,
    /// What multiplies the outer product entry by entry; None: 1.
    pub spread: Option<TermId>,
}

/// A vector [rows] that is affine in W: the sum of `scale * ((entry * W) @ input)` and a constant.
#[derive(Clone, Debug, Default)]
pub(super) struct AffineVector {
    pub parts: Vec<Part>,
    pub constant: Option<TermId>,
}

/// A correction without its right side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub scale: Option<TermId>,
    pub entry: Option<TermId>,
    pub input: TermId,
}

/// `entry * W + constant`.
#[derive(Clone, Copy, Debug)]
struct AffineEntries {
    entry: Option<TermId>,
    constant: Option<TermId>,
}

/// A step in which W stands more often is not taken apart.
const MANY: u32 = 64;

type Found<T> = Result<Option<T>, Mismatch>;

/// The affine form of `u` in `weight`, where it has one.
///
/// # Errors
/// A mismatch of shapes, which a well-formed term cannot show.
pub fn delta_form(terms: &mut Terms, u: TermId, weight: VarId) -> Found<DeltaForm> {
    if occurrences(terms, u, weight) > MANY {
        return Ok(None);
    }
    form_of(terms, u, weight)
}

fn form_of(terms: &mut Terms, u: TermId, weight: VarId) -> Found<DeltaForm> {
    if !terms.uses(u, weight) {
        return Ok(Some(DeltaForm { write: Some(u), ..DeltaForm::default() }));
    }
    match terms.op(u).clone() {
        Op::Var(_) => {
            let one = terms.num(1.0);
            Ok(Some(DeltaForm { diagonal: Some(one), ..DeltaForm::default() }))
        }
        Op::Fn1(Fn1::Neg, a) => {
            let minus = terms.num(-1.0);
            let Some(form) = form_of(terms, a, weight)? else { return Ok(None) };
            scaled(terms, form, minus, times)
        }
        Op::Fn2(Fn2::Add, a, b) => both(terms, a, b, weight),
        Op::Fn2(Fn2::Sub, a, b) => {
            let b = negated(terms, b)?;
            both(terms, a, b, weight)
        }
        Op::Fn2(Fn2::Mul, a, b) => {
            let (factor, rest) = if terms.uses(a, weight) { (b, a) } else { (a, b) };
            scaled_by(terms, rest, factor, weight, times)
        }
        Op::Fn2(Fn2::Div, a, b) => scaled_by(terms, a, b, weight, over),
        Op::Outer(left, right) if !terms.uses(right, weight) => {
            let Some(left) = affine_vector(terms, left, weight)? else { return Ok(None) };
            let corrections = left.parts.iter().map(|p| correction(*p, right)).collect();
            let write = left.constant.map(|c| outer(terms, c, right)).transpose()?;
            Ok(Some(DeltaForm { diagonal: None, corrections, write }))
        }
        Op::MatMul(a, b) if !terms.uses(b, weight) => by_matrix(terms, a, b, weight),
        _ => Ok(None),
    }
}

/// `(entry * W + constant) @ b` for a matrix b made of identities and outer products.
fn by_matrix(terms: &mut Terms, a: TermId, b: TermId, weight: VarId) -> Found<DeltaForm> {
    let Some(left) = affine_entries(terms, a, weight)? else { return Ok(None) };
    let mut form = DeltaForm::default();
    for summand in summands(terms, b)? {
        if let Some((x, right)) = as_outer(terms, summand)? {
            form.corrections.push(Correction {
                scale: None,
                entry: left.entry,
                input: x,
                right,
                spread: None,
            });
        } else if let Some(factor) = multiple_of_identity(terms, summand)? {
            let entry = left.entry.map_or(Ok(factor), |e| times(terms, e, factor))?;
            form.diagonal = sum(terms, form.diagonal, Some(entry))?;
        } else {
            return Ok(None);
        }
    }
    form.write = left.constant.map(|c| matmul(terms, c, b)).transpose()?;
    Ok(Some(form))
}

/// The scalar c of a term `c * eye`.
fn multiple_of_identity(terms: &mut Terms, id: TermId) -> Found<TermId> {
    Ok(match terms.op(id).clone() {
        Op::Eye(_) => Some(terms.num(1.0)),
        Op::Fn1(Fn1::Neg, a) => match multiple_of_identity(terms, a)? {
            Some(c) => Some(negated(terms, c)?),
            None => None,
        },
        Op::Fn2(Fn2::Mul, a, b) => {
            let (scalar, rest) = if terms.shape(a).rank() == 0 { (a, b) } else { (b, a) };
            match (terms.shape(scalar).rank(), multiple_of_identity(terms, rest)?) {
                (0, Some(c)) => Some(times(terms, scalar, c)?),
                _ => None,
            }
        }
        _ => None,
    })
}

fn both(terms: &mut Terms, a: TermId, b: TermId, weight: VarId) -> Found<DeltaForm> {
    let (Some(mut a), Some(b)) = (form_of(terms, a, weight)?, form_of(terms, b, weight)?) else {
        return Ok(None);
    };
    a.diagonal = sum(terms, a.diagonal, b.diagonal)?;
    a.corrections.extend(b.corrections);
    a.write = sum(terms, a.write, b.write)?;
    Ok(Some(a))
}

fn sum(terms: &mut Terms, a: Option<TermId>, b: Option<TermId>) -> Found<TermId> {
    match (a, b) {
        (Some(a), Some(b)) => plus(terms, a, b).map(Some),
        (a, None) => Ok(a),
        (None, b) => Ok(b),
    }
}

type Scale = fn(&mut Terms, TermId, TermId) -> Result<TermId, Mismatch>;

fn scaled_by(terms: &mut Terms, id: TermId, factor: TermId, weight: VarId, scale: Scale) -> Found<DeltaForm> {
    if terms.uses(factor, weight) {
        return Ok(None);
    }
    match form_of(terms, id, weight)? {
        Some(form) => scaled(terms, form, factor, scale),
        None => Ok(None),
    }
}

/// A form times (or divided by) a factor that does not depend on W.
fn scaled(terms: &mut Terms, mut form: DeltaForm, factor: TermId, scale: Scale) -> Found<DeltaForm> {
    form.diagonal = form.diagonal.map(|d| scale(terms, d, factor)).transpose()?;
    form.write = form.write.map(|w| scale(terms, w, factor)).transpose()?;
    for c in &mut form.corrections {
        match per_axis(terms, factor)? {
            PerAxis::Rows(f) => {
                let old = c.scale.unwrap_or(terms.num(1.0));
                c.scale = Some(scale(terms, old, f)?);
            }
            PerAxis::Columns(f) => c.right = scale(terms, c.right, f)?,
            PerAxis::Entries => {
                let old = c.spread.unwrap_or(terms.num(1.0));
                c.spread = Some(scale(terms, old, factor)?);
            }
        }
    }
    Ok(Some(form))
}

enum PerAxis {
    /// A scalar or one value for each row.
    Rows(TermId),
    /// One value for each column.
    Columns(TermId),
    Entries,
}

fn per_axis(terms: &mut Terms, factor: TermId) -> Result<PerAxis, Mismatch> {
    let factor = match terms.op(factor) {
        Op::Spread(inner, _) => *inner,
        _ => factor,
    };
    let shape = terms.shape(factor).clone();
    Ok(match shape.0.as_slice() {
        [] => PerAxis::Rows(factor),
        [_, one] if one.is_one() => PerAxis::Rows(terms.flat(factor)?),
        [one, _] if one.is_one() => PerAxis::Columns(terms.flat(factor)?),
        _ => PerAxis::Entries,
    })
}

fn correction(part: Part, right: TermId) -> Correction {
    Correction { scale: part.scale, entry: part.entry, input: part.input, right, spread: None }
}

/// The affine form of a vector in `weight`, where it has one.
pub(super) fn affine_vector(terms: &mut Terms, id: TermId, weight: VarId) -> Found<AffineVector> {
    if !terms.uses(id, weight) {
        return Ok(Some(AffineVector { parts: Vec::new(), constant: Some(id) }));
    }
    match terms.op(id).clone() {
        Op::Fn1(Fn1::Neg, a) => {
            let minus = terms.num(-1.0);
            scaled_vector(terms, a, minus, weight, times)
        }
        Op::Fn2(Fn2::Add, a, b) => both_vectors(terms, a, b, weight),
        Op::Fn2(Fn2::Sub, a, b) => {
            let b = negated(terms, b)?;
            both_vectors(terms, a, b, weight)
        }
        Op::Fn2(Fn2::Mul, a, b) => {
            let (factor, rest) = if terms.uses(a, weight) { (b, a) } else { (a, b) };
            scaled_vector(terms, rest, factor, weight, times)
        }
        Op::Fn2(Fn2::Div, a, b) => scaled_vector(terms, a, b, weight, over),
        Op::MatMul(a, x) if !terms.uses(x, weight) => {
            let Some(left) = affine_entries(terms, a, weight)? else { return Ok(None) };
            let constant = left.constant.map(|c| matmul(terms, c, x)).transpose()?;
            Ok(Some(AffineVector {
                parts: vec![Part { scale: None, entry: left.entry, input: x }],
                constant,
            }))
        }
        _ => Ok(None),
    }
}

fn both_vectors(terms: &mut Terms, a: TermId, b: TermId, weight: VarId) -> Found<AffineVector> {
    let (Some(mut a), Some(b)) = (affine_vector(terms, a, weight)?, affine_vector(terms, b, weight)?) else {
        return Ok(None);
    };
    a.parts.extend(b.parts);
    a.constant = sum(terms, a.constant, b.constant)?;
    Ok(Some(a))
}

fn scaled_vector(
    terms: &mut Terms,
    id: TermId,
    factor: TermId,
    weight: VarId,
    scale: Scale,
) -> Found<AffineVector> {
    if terms.uses(factor, weight) {
        return Ok(None);
    }
    let Some(mut vector) = affine_vector(terms, id, weight)? else { return Ok(None) };
    for part in &mut vector.parts {
        let old = part.scale.unwrap_or(terms.num(1.0));
        part.scale = Some(scale(terms, old, factor)?);
    }
    vector.constant = vector.constant.map(|c| scale(terms, c, factor)).transpose()?;
    Ok(Some(vector))
}

/// `entry * W + constant`, entry by entry, where the term has that form.
fn affine_entries(terms: &mut Terms, id: TermId, weight: VarId) -> Found<AffineEntries> {
    match terms.op(id).clone() {
        Op::Var(v) if v == weight => Ok(Some(AffineEntries { entry: None, constant: None })),
        Op::Fn1(Fn1::Neg, a) => {
            let minus = terms.num(-1.0);
            scaled_entries(terms, a, minus, weight, times)
        }
        Op::Fn2(Fn2::Mul, a, b) => {
            let (factor, rest) = if terms.uses(a, weight) { (b, a) } else { (a, b) };
            scaled_entries(terms, rest, factor, weight, times)
        }
        Op::Fn2(Fn2::Div, a, b) => scaled_entries(terms, a, b, weight, over),
        Op::Fn2(Fn2::Add, a, b) => plus_constant(terms, a, b, weight),
        Op::Fn2(Fn2::Sub, a, b) => {
            let b = negated(terms, b)?;
            plus_constant(terms, a, b, weight)
        }
        Op::Transpose(a) => {
            let inner = transpose(terms, a)?;
            if terms.op(inner) == terms.op(id) { Ok(None) } else { affine_entries(terms, inner, weight) }
        }
        _ => Ok(None),
    }
}

fn scaled_entries(
    terms: &mut Terms,
    id: TermId,
    factor: TermId,
    weight: VarId,
    scale: Scale,
) -> Found<AffineEntries> {
    if terms.uses(factor, weight) {
        return Ok(None);
    }
    let Some(old) = affine_entries(terms, id, weight)? else { return Ok(None) };
    let entry = old.entry.unwrap_or(terms.num(1.0));
    let entry = Some(scale(terms, entry, factor)?);
    let constant = old.constant.map(|c| scale(terms, c, factor)).transpose()?;
    Ok(Some(AffineEntries { entry, constant }))
}

fn plus_constant(terms: &mut Terms, a: TermId, b: TermId, weight: VarId) -> Found<AffineEntries> {
    let (rest, added) = if terms.uses(a, weight) { (a, b) } else { (b, a) };
    if terms.uses(added, weight) {
        return Ok(None);
    }
    let Some(old) = affine_entries(terms, rest, weight)? else { return Ok(None) };
    let constant = sum(terms, old.constant, Some(added))?;
    Ok(Some(AffineEntries { constant, ..old }))
}
