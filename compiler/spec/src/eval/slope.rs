//! The derivative of a function of one entry, which `bregman(f, W, P)` is written with.
//!
//! This is part of what the word `bregman` means, not the calculus of a rule: the function is a user's
//! `fn` of one number applied entry by entry, and its slope is read off the scalar table.

use super::{Callable, Eval, Operand, Tensor, Value, fail_help};
use crate::elaborate::Builder;
use base::Span;
use base::diagnostic::code;
use base::scalar::{derivative2, row};
use miras_base as base;
use miras_term::{Mismatch, Op, Role, TermId, Terms, VarId};
use std::collections::HashMap;

/// Why a function has no slope here.
enum NoSlope {
    /// It does more than one entry at a time.
    NotEntryWise,
    /// A shape does not fit; cannot happen for entry-wise functions.
    Mismatch(Mismatch),
}

impl From<Mismatch> for NoSlope {
    fn from(m: Mismatch) -> Self {
        NoSlope::Mismatch(m)
    }
}

impl Builder<'_> {
    /// `bregman(f, W, P)`: sum(f(W) - f(P) - f'(P) * (W - P)).
    pub(super) fn bregman(&mut self, args: &[Operand], span: Span) -> Eval<Value> {
        let Value::Function(f) = &args[0].value else {
            let message =
                format!("`bregman` needs a function first, found {}", self.describe(&args[0].value));
            return fail_help(
                code::TYPE,
                args[0].span,
                message,
                "not a function",
                "define one: `fn f(w) = ...;`",
            );
        };
        let (w, p) = (self.tensor(&args[1])?, self.tensor(&args[2])?);
        let (at_w, _) = self.function_and_slope(f, w, args[0].span)?;
        let (at_p, slope) = self.function_and_slope(f, p, args[0].span)?;
        let built = self.divergence(w.term, p.term, at_w, at_p, slope);
        let ops = [(w, args[1].span), (p, args[2].span)];
        self.built(built, &ops, span).map(|t| Value::Tensor(Tensor::plain(t)))
    }

    fn divergence(
        &mut self,
        w: TermId,
        p: TermId,
        at_w: TermId,
        at_p: TermId,
        slope: TermId,
    ) -> Result<TermId, Mismatch> {
        let t = &mut self.terms;
        let (rise, step) = (t.sub(at_w, at_p)?, t.sub(w, p)?);
        let linear = t.mul(slope, step)?;
        let gap = t.sub(rise, linear)?;
        t.sum(gap)
    }

    /// f(x) and f'(x) at a tensor.
    fn function_and_slope(&mut self, f: &Callable, x: Tensor, span: Span) -> Eval<(TermId, TermId)> {
        let shape = self.terms.shape(x.term).clone();
        let var = self.terms.add_var("w", Role::Bound, shape.clone(), None);
        let entry = Tensor::plain(self.terms.use_var(var));
        let value = self.apply(f, vec![Operand { value: Value::Tensor(entry), span }], span)?;
        let value = self.tensor(&Operand { value, span })?;
        let value = self.fit(value, &shape, span, "a function of one entry")?;
        let slope = slope_of(&mut self.terms, value, var);
        let slope = match slope {
            Ok(slope) => slope,
            Err(NoSlope::Mismatch(m)) => return self.built(Err(m), &[], span).map(|t| (t, t)),
            Err(NoSlope::NotEntryWise) => {
                let message = "this function has no slope by entry: it does more than one entry at a time";
                return fail_help(
                    code::NO_DERIVATIVE,
                    span,
                    message,
                    "used here",
                    "use functions of one number only (`exp`, `log`, `^`, ...)",
                );
            }
        };
        let replace = HashMap::from([(var, x.term)]);
        let both = self.terms.substitute(&[value, slope], &replace);
        match both {
            Ok(both) => {
                let slope = self.fit(Tensor::plain(both[1]), &shape, span, "a slope")?;
                Ok((both[0], slope))
            }
            Err(m) => self.built(Err(m), &[], span).map(|t| (t, t)),
        }
    }
}

/// The derivative of an entry-wise term by a variable, entry by entry.
fn slope_of(terms: &mut Terms, of: TermId, by: VarId) -> Result<TermId, NoSlope> {
    let mut slopes: HashMap<TermId, TermId> = HashMap::new();
    let zero = terms.num(0.0);
    for id in terms.reachable(&[of]) {
        if !terms.uses(id, by) {
            slopes.insert(id, zero);
            continue;
        }
        let slope = match terms.op(id).clone() {
            Op::Var(_) => terms.num(1.0),
            Op::Fn1(f, a) => {
                let outer = terms.expr(&(row(f).derivative)(), &[a])?;
                terms.mul(outer, slopes[&a])?
            }
            Op::Fn2(f, a, b) => {
                let mut sum = zero;
                for (by, operand) in [(0, a), (1, b)] {
                    if slopes[&operand] != zero {
                        let outer = terms.expr(&derivative2(f, by), &[a, b])?;
                        let part = terms.mul(outer, slopes[&operand])?;
                        sum = terms.add(sum, part)?;
                    }
                }
                sum
            }
            Op::Select(c, a, b) => terms.select(c, slopes[&a], slopes[&b])?,
            Op::Compare(..) => zero,
            Op::Spread(a, _) if slopes.contains_key(&a) => slopes[&a],
            Op::Stop(_) => zero,
            Op::Const(_)
            | Op::Size(_)
            | Op::Place(_)
            | Op::Spread(..)
            | Op::MatMul(..)
            | Op::Outer(..)
            | Op::Transpose(_)
            | Op::Row(_)
            | Op::Col(_)
            | Op::Flat(_)
            | Op::Reduce(..)
            | Op::Norm(..)
            | Op::Softmax(..)
            | Op::LogSoftmax(..)
            | Op::LayerNorm(_)
            | Op::InverseDeviation(_)
            | Op::Eye(_)
            | Op::Root(_) => return Err(NoSlope::NotEntryWise),
        };
        slopes.insert(id, slope);
    }
    Ok(slopes[&of])
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_base::scalar::{Cmp, Fn1, Fn2};
    use miras_term::{Env, Shape, Tensor};

    #[test]
    fn slopes_agree_with_differences() {
        let mut t = Terms::new();
        let x = t.add_var("x", Role::Bound, Shape::vector(base::Dim::dk()), None);
        let w = t.use_var(x);
        let (one, half) = (t.num(1.0), t.num(0.5));
        let (log, rest) = (t.fn1(Fn1::Log, w).unwrap(), t.sub(one, w).unwrap());
        let (entropy, other) = (t.mul(w, log).unwrap(), t.fn1(Fn1::Log, rest).unwrap());
        let fermi = t.mul(rest, other).unwrap();
        let fermi = t.add(entropy, fermi).unwrap();
        let power = t.fn2(Fn2::Pow, w, w).unwrap();
        let ratio = t.fn2(Fn2::Div, one, w).unwrap();
        let (small, erf) = (t.compare(Cmp::Lt, w, half).unwrap(), t.fn1(Fn1::Erf, w).unwrap());
        let choice = t.select(small, erf, power).unwrap();
        let points = Tensor::vector(vec![0.1, 0.3, 0.7, 0.9]);
        for f in [fermi, power, ratio, choice] {
            let Ok(slope) = slope_of(&mut t, f, x) else { panic!("no slope") };
            let at = |shift: f64, term| {
                let mut env = Env::default();
                env.dims.insert("dk".into(), 4);
                let data = points.data.iter().map(|p| p + shift).collect();
                env.vars.insert(x, Tensor::vector(data));
                t.eval_one(term, &env).unwrap().data
            };
            let (up, down, slope) = (at(1e-6, f), at(-1e-6, f), at(0.0, slope));
            for i in 0..4 {
                let difference = (up[i] - down[i]) / 2e-6;
                assert!(
                    (difference - slope[i]).abs() < 1e-7 * (1.0 + slope[i].abs()),
                    "{difference} {}",
                    slope[i]
                );
            }
        }
    }

    #[test]
    fn a_function_of_many_entries_has_no_slope_by_entry() {
        let mut t = Terms::new();
        let x = t.add_var("x", Role::Bound, Shape::vector(base::Dim::dk()), None);
        let w = t.use_var(x);
        let sum = t.sum(w).unwrap();
        assert!(matches!(slope_of(&mut t, sum, x), Err(NoSlope::NotEntryWise)));
    }
}
