//! Simplification: the rows of [`super::rules`] applied from the leaves up.

use super::fold;
use super::rules::{Condition, RULES, Rule};
use crate::algebra::Facts;
use miras_base::scalar::{Expr, Fn1, Fn2};
use miras_term::{Mismatch, Op, TermId, Terms};
use std::collections::HashMap;

/// Simplified terms and the names of the rules that were used, in order of first use.
#[derive(Clone, Debug, Default)]
pub struct Simplified {
    /// In the order of the given terms.
    pub terms: Vec<TermId>,
    /// Names of rows of [`RULES`].
    pub used: Vec<&'static str>,
}

/// How often a whole term is passed over; each pass may make new places for rules.
const PASSES: usize = 4;

/// How many rules may act at one place in one pass.
const STEPS: usize = 8;

/// Products with more factors are not searched for pairs.
const FACTORS: usize = 12;

/// These terms in a shorter form with the same value wherever the facts hold.
///
/// # Errors
/// A mismatch of shapes, which a well-formed term cannot show.
pub fn simplify(terms: &mut Terms, roots: &[TermId], facts: &Facts) -> Result<Simplified, Mismatch> {
    let mut current = roots.to_vec();
    let mut used = Vec::new();
    for _ in 0..PASSES {
        let next = pass(terms, &current, facts, &mut used)?;
        if next == current {
            break;
        }
        current = next;
    }
    Ok(Simplified { terms: current, used })
}

/// [`simplify`] for one term, without the names.
///
/// # Errors
/// As for [`simplify`].
pub fn simplify_one(terms: &mut Terms, root: TermId, facts: &Facts) -> Result<TermId, Mismatch> {
    Ok(simplify(terms, &[root], facts)?.terms.first().copied().unwrap_or(root))
}

fn pass(
    terms: &mut Terms,
    roots: &[TermId],
    facts: &Facts,
    used: &mut Vec<&'static str>,
) -> Result<Vec<TermId>, Mismatch> {
    let mut done: HashMap<TermId, TermId> = HashMap::new();
    for id in terms.reachable(roots) {
        let mut new = rebuilt(terms, id, &done)?;
        for _ in 0..STEPS {
            let Some((rule, better)) = step(terms, new, facts)? else { break };
            if !used.contains(&rule.name) {
                used.push(rule.name);
            }
            new = better;
        }
        done.insert(id, new);
    }
    Ok(roots.iter().map(|r| done.get(r).copied().unwrap_or(*r)).collect())
}

/// The first rule that acts on a term, and what it makes of it.
fn step(terms: &mut Terms, id: TermId, facts: &Facts) -> Result<Option<(&'static Rule, TermId)>, Mismatch> {
    let factors = factors(terms, id);
    for rule in RULES {
        let left = (rule.left)();
        let found = match &left {
            Expr::Fn2(Fn2::Mul, a, b) if factors.len() >= 2 => pair(terms, rule, (a, b), &factors, facts),
            _ => {
                let bound = matched(terms, &left, id, Bindings::default());
                bound.into_iter().find(|b| holds(terms, rule, b, facts)).map(|b| (b, Vec::new()))
            }
        };
        if let Some((bindings, rest)) = found {
            let args = bindings.0.map(|b| b.unwrap_or(id));
            let mut new = super::reverse::folded(terms, &(rule.right)(), &args)?;
            for factor in rest {
                new = fold::times(terms, factor, new)?;
            }
            let shape = terms.shape(id).clone();
            return Ok(Some((rule, fold::fit(terms, new, &shape)?)));
        }
    }
    Ok(None)
}

/// Two factors of a product that match the two sides of a pattern, and the factors left over.
fn pair(
    terms: &Terms,
    rule: &Rule,
    sides: (&Expr, &Expr),
    factors: &[TermId],
    facts: &Facts,
) -> Option<(Bindings, Vec<TermId>)> {
    for (i, a) in factors.iter().enumerate() {
        for first in matched(terms, sides.0, *a, Bindings::default()) {
            for (j, b) in factors.iter().enumerate().filter(|(j, _)| *j != i) {
                let both = matched(terms, sides.1, *b, first);
                if let Some(found) = both.into_iter().find(|m| holds(terms, rule, m, facts)) {
                    let rest = factors.iter().enumerate().filter(|(n, _)| *n != i && *n != j);
                    return Some((found, rest.map(|(_, f)| *f).collect()));
                }
            }
        }
    }
    None
}

/// The factors of a product, the term itself where it is none (or too long a one).
fn factors(terms: &Terms, id: TermId) -> Vec<TermId> {
    let (mut open, mut found) = (vec![id], Vec::new());
    while let Some(t) = open.pop() {
        match terms.op(t) {
            Op::Fn2(Fn2::Mul, a, b) => open.extend([*b, *a]),
            _ => found.push(t),
        }
        if open.len() + found.len() > FACTORS {
            return vec![id];
        }
    }
    found
}

/// What the arguments of a rule stand for.
#[derive(Clone, Copy, Default)]
struct Bindings([Option<TermId>; 3]);

/// All ways in which a term is an instance of a pattern; products and extrema match in either order.
fn matched(terms: &Terms, pattern: &Expr, id: TermId, so_far: Bindings) -> Vec<Bindings> {
    let id = unrepeated(terms, id);
    match (pattern, terms.op(id)) {
        (Expr::Arg(i), _) => bind(so_far, *i, id),
        (Expr::Const(c), _) if terms.as_num(id) == Some(*c) => vec![so_far],
        (Expr::Fn1(f, a), Op::Fn1(g, x)) if f == g => matched(terms, a, *x, so_far),
        (Expr::Fn2(f, a, b), Op::Fn2(g, x, y)) if f == g => {
            let mut ways = both(terms, [(a, *x), (b, *y)], so_far);
            if matches!(f, Fn2::Add | Fn2::Mul | Fn2::Min | Fn2::Max) {
                ways.extend(both(terms, [(a, *y), (b, *x)], so_far));
            }
            ways
        }
        (Expr::Select(cmp, a, b, t, e), Op::Select(c, x, y)) => match terms.op(*c) {
            Op::Compare(d, l, r) if d == cmp => {
                let sides = both(terms, [(a, *l), (b, *r)], so_far);
                sides.into_iter().flat_map(|s| both(terms, [(t, *x), (e, *y)], s)).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn both(terms: &Terms, parts: [(&Expr, TermId); 2], so_far: Bindings) -> Vec<Bindings> {
    let [(a, x), (b, y)] = parts;
    matched(terms, a, x, so_far).into_iter().flat_map(|s| matched(terms, b, y, s)).collect()
}

fn bind(mut bindings: Bindings, i: u8, id: TermId) -> Vec<Bindings> {
    let Some(slot) = bindings.0.get_mut(i as usize) else { return Vec::new() };
    match slot {
        Some(old) if *old != id => Vec::new(),
        _ => {
            *slot = Some(id);
            vec![bindings]
        }
    }
}

fn holds(terms: &Terms, rule: &Rule, bindings: &Bindings, facts: &Facts) -> bool {
    let get = |i: &u8| bindings.0.get(*i as usize).copied().flatten();
    rule.condition.iter().all(|c| match c {
        Condition::NotNegative(i) => get(i).is_some_and(|t| facts.of_term(terms, t).not_negative()),
        Condition::Positive(i) => get(i).is_some_and(|t| facts.of_term(terms, t).positive()),
        Condition::NormOf(x, n) => match (get(x), get(n).map(|n| terms.op(n))) {
            (Some(x), Some(Op::Norm(inner, p))) => *inner == x && terms.as_num(*p) == Some(2.0),
            _ => false,
        },
    })
}

/// A scalar that is only repeated counts as the scalar.
fn unrepeated(terms: &Terms, id: TermId) -> TermId {
    match terms.op(id) {
        Op::Spread(inner, _) if terms.shape(*inner).rank() == 0 => *inner,
        _ => id,
    }
}

/// The term with its operands replaced, through the folding constructors.
fn rebuilt(terms: &mut Terms, id: TermId, done: &HashMap<TermId, TermId>) -> Result<TermId, Mismatch> {
    let unchanged = |o: &TermId| done.get(o).is_none_or(|new| new == o);
    if terms.operands(id).iter().all(unchanged) { Ok(id) } else { folded_anew(terms, id, done) }
}

/// The terms rebuilt through the folding constructors, which draw signs and numbers out.
///
/// # Errors
/// As for [`simplify`].
pub fn refold(terms: &mut Terms, roots: &[TermId]) -> Result<Vec<TermId>, Mismatch> {
    let mut done: HashMap<TermId, TermId> = HashMap::new();
    for id in terms.reachable(roots) {
        let new = folded_anew(terms, id, &done)?;
        done.insert(id, new);
    }
    Ok(roots.iter().map(|r| done.get(r).copied().unwrap_or(*r)).collect())
}

fn folded_anew(terms: &mut Terms, id: TermId, done: &HashMap<TermId, TermId>) -> Result<TermId, Mismatch> {
    let get = |t: &TermId| done.get(t).copied().unwrap_or(*t);
    let shape = terms.shape(id).clone();
    let new = match terms.op(id).clone() {
        Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Var(_) | Op::Eye(_) => id,
        // A root's equation keeps its form: its slope and bracket belong to it.
        Op::Root(_) => id,
        Op::Fn1(Fn1::Neg, a) => fold::negated(terms, get(&a))?,
        Op::Fn1(f, a) => terms.fn1(f, get(&a))?,
        Op::Fn2(Fn2::Add, a, b) => fold::plus(terms, get(&a), get(&b))?,
        Op::Fn2(Fn2::Sub, a, b) => fold::minus(terms, get(&a), get(&b))?,
        Op::Fn2(Fn2::Mul, a, b) => fold::times(terms, get(&a), get(&b))?,
        Op::Fn2(Fn2::Div, a, b) => fold::over(terms, get(&a), get(&b))?,
        Op::Fn2(f, a, b) => terms.fn2(f, get(&a), get(&b))?,
        Op::Compare(c, a, b) => terms.compare(c, get(&a), get(&b))?,
        Op::Select(c, a, b) => terms.select(get(&c), get(&a), get(&b))?,
        Op::MatMul(a, b) => fold::matmul(terms, get(&a), get(&b))?,
        Op::Outer(a, b) => fold::outer(terms, get(&a), get(&b))?,
        Op::Transpose(a) => fold::transpose(terms, get(&a))?,
        Op::Row(a) => fold::row(terms, get(&a))?,
        Op::Col(a) => fold::col(terms, get(&a))?,
        Op::Flat(a) => terms.flat(get(&a))?,
        Op::Spread(a, shape) => terms.spread(get(&a), &shape)?,
        Op::Reduce(op, axis, a) => terms.reduce(op, axis, get(&a))?,
        Op::Norm(x, p) => terms.norm(get(&x), get(&p))?,
        Op::Softmax(axis, a) => terms.softmax(axis, get(&a))?,
        Op::LogSoftmax(axis, a) => terms.log_softmax(axis, get(&a))?,
        Op::LayerNorm(a) => terms.layer_norm(get(&a))?,
        Op::InverseDeviation(a) => terms.inverse_deviation(get(&a))?,
        Op::Stop(a) => terms.stop(get(&a))?,
    };
    fold::fit(terms, new, &shape)
}
