//! Exact blocks: steps that are affine in one weight.

use super::linear::{Factors, factors};
use super::{Blocks, Form, applied_only, has_root};
use crate::cost::cost;
use miras_base::Diagnostic;
use miras_base::scalar::{Fn1, Fn2};
use miras_rule::classify::DeltaForm;
use miras_rule::gradient::outer::{as_outer, summands};
use miras_rule::{ClassKind, UpdateRule};
use miras_term::{Mismatch, Op, TermId, Terms};

/// Tokens at a time where one number keeps a whole weight: the products are large, the weights move seldom.
const WIDE: u32 = 64;

/// Tokens at a time where each row or column is kept by a number of its own, and each pair of tokens takes a
/// product of keeps for each of them: more tokens take more of those, fewer write the weights out more often.
const NARROW: u32 = 16;

/// Tokens at a time where a triangular system is solved. A step that overshoots carries roundings on from token to
/// token. Those of the weights are many and differ from column to column, so that a product with a key averages them;
/// those of a sum over tokens are not. So few tokens are summed before the weights are written out
/// (docs/decisions/2026-11-30-chunks-in-blocks.md).
const SOLVED: u32 = 4;

/// One token as `W' = keep * W + sum over families of (corrections + left) (x) right`.
#[derive(Clone, Debug)]
pub struct Affine {
    /// What is kept of each entry.
    pub keep: Factors,
    /// Outer products with one right side.
    pub families: Vec<Family>,
}

/// Outer products that share a right side.
#[derive(Clone, Debug)]
pub struct Family {
    /// [cols].
    pub right: TermId,
    /// What does not depend on the weight, [rows].
    pub left: Option<TermId>,
    /// What does.
    pub corrections: Vec<Correction>,
}

/// `scale * ((entry * W) @ input + beside)`, [rows].
#[derive(Clone, Debug)]
pub struct Correction {
    /// A scalar or a vector [rows]; None: 1.
    pub scale: Option<TermId>,
    /// What multiplies W entry by entry first.
    pub entry: Factors,
    /// [cols].
    pub input: TermId,
    /// What does not depend on the weight and has the same scale, [rows]: an error is rounded once, as a difference.
    pub beside: Option<TermId>,
}

pub(super) fn blocks(rule: &mut UpdateRule, chunk: u32) -> Result<Blocks, Diagnostic> {
    let tokens = |why: &str| Ok(Blocks::token_by_token(why));
    match rule.class.kind {
        ClassKind::Linear | ClassKind::Delta => {}
        ClassKind::NonParametric => return tokens("each token meets its past in one pass"),
        ClassKind::TokenByToken | ClassKind::DualLinear | ClassKind::General => {
            return Ok(Blocks::token_by_token(format!(
                "the algorithm's state after a token is not affine in the one before it, so that each step must have \
                 been taken before the next; a token takes {} multiply-adds either way",
                cost(rule).multiply_adds.formula()
            )));
        }
    }
    if rule.layer.memory.weights.iter().any(|w| w.shape.rank() != 2) {
        return tokens(
            "the weight is no matrix, and its recurrence takes 3 multiplications for each entry (keep, write, read); a \
             sum over what the tokens of a block wrote would take one for each pair of tokens",
        );
    }
    let Some(form) = rule.delta_form()? else { return tokens("the step has no affine form") };
    let weights: Vec<_> = rule.layer.memory.weights.iter().map(|w| w.var).collect();
    let Some(read) = rule.layer.memory.read else { return tokens("the memory has no read") };
    if !applied_only(rule.terms(), read, &weights) {
        return tokens("the read uses the weights otherwise than applied to a vector");
    }
    match affine(rule, &form) {
        Err(what) => Err(Diagnostic::bug(format!("the affine form of a step does not fit: {what:?}"))),
        Ok(Err(why)) => tokens(why),
        Ok(Ok(affine)) => {
            Ok(Blocks { tokens: chunk.min(at_a_time(rule, &affine)), form: Form::Affine(affine) })
        }
    }
}

/// Tokens that are computed at a time.
fn at_a_time(rule: &UpdateRule, affine: &Affine) -> u32 {
    let by_one =
        affine.keep.cols.is_none() && affine.keep.rows.is_none_or(|k| rule.terms().shape(k).rank() == 0);
    let solved = affine.families.iter().any(|f| !f.corrections.is_empty());
    match (solved, by_one) {
        (true, _) => SOLVED,
        (false, true) => WIDE,
        (false, false) => NARROW,
    }
}

/// The affine form by families; or why it gives no products.
fn affine(rule: &mut UpdateRule, form: &DeltaForm) -> Result<Result<Affine, &'static str>, Mismatch> {
    let repeats = rule.layer.repeats();
    let Some(linear) = rule.retention.first().and_then(|r| r.linear.clone()) else {
        return Ok(Err("retention is not linear"));
    };
    let terms = &mut rule.layer.terms;
    let keep = match form.diagonal {
        None => linear.keep,
        Some(_) if repeats > 1 => {
            return Ok(Err(
                "every step of a token keeps weights by a factor of its own, for which there is no form by \
                           blocks",
            ));
        }
        Some(d) => terms.add(linear.keep, d)?,
    };
    let Some(keep) = factors(terms, keep) else {
        return Ok(Err(
            "each entry is kept by a number of its own: a token takes 3 multiplications for each entry of the \
                       weight (keep, write, read; and one for what corrects it), in a block of n tokens it would take \
                       n + 4 at least (a product of keeps for each token before it, and sums over them)",
        ));
    };
    let mut families: Vec<Family> = Vec::new();
    for c in &form.corrections {
        let Some(entry) = c.entry.map_or(Some(Factors::default()), |e| factors(terms, e)) else {
            return Ok(Err("the step is taken at weights that are kept entry by entry"));
        };
        if c.spread.is_some() {
            return Ok(Err(
                "each entry is corrected by a rate of its own: a token takes 4 multiplications for each \
                           entry of the weight (prediction, error times key, rate, read), in a block of n tokens it \
                           would take n + 4 (what each token before it wrote is a matrix, which its key and its \
                           query meet)",
            ));
        }
        let correction = Correction { scale: c.scale, entry, input: c.input, beside: None };
        family(&mut families, c.right).corrections.push(correction);
    }
    let mut writes = form.write.map_or(Ok(Vec::new()), |w| summands(terms, w))?;
    if let Some(shift) = linear.shift {
        writes.extend(summands(terms, shift)?);
    }
    for write in writes.into_iter().collect::<Vec<_>>() {
        if terms.as_num(write) == Some(0.0) {
            continue;
        }
        let Some((left, right)) = as_outer(terms, write)? else {
            return Ok(Err("what a token writes is no sum of outer products"));
        };
        let family = family(&mut families, right);
        family.left = Some(match family.left {
            Some(old) => terms.add(old, left)?,
            None => left,
        });
    }
    families.iter_mut().for_each(|f| share_scale(terms, f));
    if has_root(terms, &all_terms(&keep, &families)) {
        return Ok(Err("an equation is solved for every token"));
    }
    Ok(Ok(Affine { keep, families }))
}

/// Puts what a token writes beside the correction, where both have one scale.
fn share_scale(terms: &mut Terms, family: &mut Family) {
    let [correction] = family.corrections.as_mut_slice() else { return };
    let (Some(scale), Some(left)) = (correction.scale, family.left) else { return };
    if let Some(beside) = quotient(terms, left, scale) {
        correction.beside = Some(beside);
        family.left = None;
    }
}

/// The other factor of a product that has this one, up to signs.
fn quotient(terms: &mut Terms, product: TermId, factor: TermId) -> Option<TermId> {
    match (terms.op(product).clone(), terms.op(factor).clone()) {
        (Op::Fn1(Fn1::Neg, a), _) => {
            let other = quotient(terms, a, factor)?;
            terms.neg(other).ok()
        }
        (_, Op::Fn1(Fn1::Neg, b)) => {
            let other = quotient(terms, product, b)?;
            terms.neg(other).ok()
        }
        (Op::Fn2(Fn2::Mul, a, b), _) if a == factor => Some(b),
        (Op::Fn2(Fn2::Mul, a, b), _) if b == factor => Some(a),
        _ => None,
    }
}

fn family(families: &mut Vec<Family>, right: TermId) -> &mut Family {
    let at = families.iter().position(|f| f.right == right).unwrap_or_else(|| {
        families.push(Family { right, left: None, corrections: Vec::new() });
        families.len() - 1
    });
    &mut families[at]
}

fn all_terms(keep: &Factors, families: &[Family]) -> Vec<TermId> {
    let mut all: Vec<TermId> = keep.rows.into_iter().chain(keep.cols).collect();
    for f in families {
        all.push(f.right);
        all.extend(f.left);
        for c in &f.corrections {
            all.push(c.input);
            all.extend(c.scale.into_iter().chain(c.entry.rows).chain(c.entry.cols).chain(c.beside));
        }
    }
    all
}
