//! Where the weights can lie, as the functions of the objective allow.

use crate::algebra::poly::{Exponent, Monomial};
use crate::algebra::ring::{Out, Ring};
use crate::algebra::{Bounds, Facts};
use miras_base::scalar::{Fn1, Fn2, row};
use miras_spec as spec;
use miras_term::{Op, TermId, Terms, VarId};

/// The values of the unknown for which every function of the objective is defined.
///
/// Arguments a x + b with numbers a, b bound x, and so does b - a x^2 that must be positive; a positive argument
/// that is a product makes each such factor of it positive. Other arguments (1 + x^2) say nothing.
pub(super) fn natural(terms: &mut Terms, parts: &[TermId], unknown: VarId, old: VarId) -> Out<Bounds> {
    let mut bounds = Bounds::REALS;
    for id in terms.reachable(parts) {
        let (argument, domain) = if let Op::Fn1(f, a) = *terms.op(id) {
            (a, Bounds::from(row(f).domain))
        } else if let Op::Fn2(Fn2::Pow, a, e) = *terms.op(id)
            && terms.as_num(e).is_some_and(|e| e != e.trunc())
        {
            (a, Bounds::POSITIVE)
        } else {
            continue;
        };
        if domain != Bounds::REALS && (terms.uses(argument, unknown) || terms.uses(argument, old)) {
            bounds = bounds.meet(of_argument(terms, argument, domain, [unknown, old])?);
        }
    }
    Ok(bounds)
}

fn of_argument(terms: &mut Terms, argument: TermId, domain: Bounds, vars: [VarId; 2]) -> Out<Bounds> {
    let mut ring = Ring::new(terms, Facts::new());
    let p = ring.poly(argument)?;
    for var in vars {
        if let Some((a, b)) = ring.linear_in(&p, var)?
            && let (Some(a), Some(b)) = (a.as_number(), b.as_number())
            && a != 0.0
        {
            let shifted = Bounds { low: domain.low - b, high: domain.high - b, ..domain };
            let ends = [shifted.low / a, shifted.high / a];
            return Ok(Bounds::open(ends[0].min(ends[1]), ends[0].max(ends[1])));
        }
        let atom = ring.terms.use_var(var);
        let square = p.monomials.get(&Monomial::power(atom, Exponent::number(2.0)));
        let number = p.monomials.get(&Monomial::one());
        if let (2, Some(a), Some(b)) = (p.len(), square, number)
            && domain.low == 0.0
            && a.value < 0.0
            && b.value > 0.0
        {
            let end = (-b.value / a.value).sqrt();
            return Ok(Bounds::open(-end, end));
        }
    }
    let Some((m, _)) = p.single().filter(|_| domain.low == 0.0) else { return Ok(Bounds::REALS) };
    let odd = |e: &Exponent| e.as_whole().is_none_or(|n| n % 2.0 != 0.0);
    let atoms: Vec<TermId> = m.0.iter().filter(|(_, e)| odd(e)).map(|(t, _)| *t).collect();
    let mut bounds = Bounds::REALS;
    for atom in atoms {
        let affine = matches!(ring.terms.op(atom), Op::Var(_) | Op::Fn2(Fn2::Add | Fn2::Sub, ..));
        if affine && atom != argument && vars.iter().any(|v| ring.uses(atom, *v)) {
            bounds = bounds.meet(of_argument(ring.terms, atom, Bounds::POSITIVE, vars)?);
        }
    }
    Ok(bounds)
}

/// What is known besides the kinds of parameters: where the weights lie, and that what the objective
/// divides by (given beside) is not 0.
pub(super) fn facts(
    terms: &mut Terms,
    parts: &[TermId],
    weights: [VarId; 2],
    natural: Bounds,
    params: &[spec::Param],
) -> Out<(Facts, Vec<TermId>)> {
    let mut facts = Facts::of_params(params);
    for var in weights {
        facts.bound(var, natural);
    }
    let mut divisors = Vec::new();
    for id in terms.reachable(parts) {
        if let Op::Fn2(Fn2::Div, _, b) | Op::Fn1(Fn1::Log, b) = *terms.op(id)
            && !weights.iter().any(|v| terms.uses(b, *v))
        {
            divisors.push(b);
        }
    }
    let mut atoms = Vec::new();
    let mut ring = Ring::new(terms, facts.clone());
    for b in divisors {
        let p = ring.poly(b)?;
        match p.single() {
            Some((m, _)) => atoms.extend(m.0.iter().map(|(t, _)| *t)),
            None => atoms.push(ring.write(&p)?),
        }
    }
    let mut assumed = Vec::new();
    for atom in atoms {
        if !facts.assumed_nonzero(atom) && !facts.of_term(terms, atom).nonzero() {
            assumed.push(atom);
        }
        facts.assume_nonzero(atom);
        if let Op::Var(v) = terms.op(atom)
            && facts.of_var(*v).not_negative()
        {
            facts.bound(*v, Bounds::POSITIVE);
        }
    }
    Ok((facts, assumed))
}
