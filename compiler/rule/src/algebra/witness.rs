//! Witnesses: every rule's two sides evaluated, and random terms against their simplest forms.

use super::rules::{By, RULES};
use super::{Bounds, Dice, Facts, collect_linear, equal, occurrences, simplify};
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_base::{Dim, DimEnv};
use miras_term::{Env, Op, Role, Shape, Tensor, TermId, Terms, VarId};
use std::sync::Arc;

#[test]
fn both_sides_of_every_rule_agree_and_become_one_term() {
    for rule in RULES {
        let mut terms = Terms::new();
        let (mut facts, mut vars, mut args) = (Facts::new(), vec![], vec![]);
        for (i, bounds) in rule.condition.iter().enumerate() {
            let v = terms.add_var(format!("x{i}"), Role::Bound, Shape::scalar(), None);
            facts.bound(v, *bounds);
            vars.push(v);
            args.push(terms.use_var(v));
        }
        let left = terms.expr(&(rule.left)(), &args).unwrap();
        let right = terms.expr(&(rule.right)(), &args).unwrap();
        let mut dice = Dice(7);
        for _ in 0..200 {
            let point: Vec<f64> = rule.condition.iter().map(|b| dice.within(*b)).collect();
            let mut env = Env::default();
            env.vars.extend(vars.iter().copied().zip(point.iter().map(|x| Tensor::scalar(*x))));
            let values = terms.eval(&[left, right], &env).unwrap();
            let (l, r) = (values[0].data[0], values[1].data[0]);
            assert!((l - r).abs() <= 1e-11 * (1.0 + r.abs()), "{} at {point:?}: {l} and {r}", rule.name);
        }
        let (l, r) = (simplify(&mut terms, left, &facts), simplify(&mut terms, right, &facts));
        let same = l == r || (rule.by == By::NormalForm && equal(&mut terms, left, right, &facts));
        assert!(same, "{} is not applied", rule.name);
    }
}

/// Variables of all broadcast shapes with facts, and their values at a random point.
struct World {
    terms: Terms,
    facts: Facts,
    vars: Vec<(VarId, Bounds, Vec<usize>)>,
}

fn world() -> World {
    let mut w = World { terms: Terms::new(), facts: Facts::new(), vars: vec![] };
    let (rows, cols) = (Dim::symbol("m"), Dim::symbol("n"));
    let shapes = [
        (Shape::scalar(), vec![]),
        (Shape::matrix(rows.clone(), Dim::one()), vec![3, 1]),
        (Shape::matrix(Dim::one(), cols.clone()), vec![1, 2]),
        (Shape::matrix(rows, cols), vec![3, 2]),
    ];
    let kinds = [Bounds::REALS, Bounds::POSITIVE, Bounds::UNIT, Bounds::NOT_NEGATIVE];
    for (i, (shape, sizes)) in shapes.into_iter().enumerate() {
        for (j, bounds) in kinds.into_iter().enumerate() {
            let v = w.terms.add_var(format!("x{i}{j}"), Role::Bound, shape.clone(), None);
            w.facts.bound(v, bounds);
            w.vars.push((v, bounds, sizes.clone()));
        }
    }
    w
}

fn point(w: &World, dice: &mut Dice) -> Env {
    let mut env = Env { dims: DimEnv::from([(Arc::from("m"), 3), (Arc::from("n"), 2)]), ..Env::default() };
    for (v, bounds, sizes) in &w.vars {
        let count = sizes.iter().product();
        let data = (0..count).map(|_| dice.within(*bounds)).collect();
        env.vars.insert(*v, Tensor { shape: sizes.clone(), data });
    }
    env
}

/// A random term; few variables, so that they meet again.
fn grow(w: &mut World, dice: &mut Dice, depth: u32) -> TermId {
    if depth == 0 || dice.next() < 0.1 {
        let n = w.vars.len();
        return match dice.below(4) {
            0 => w.terms.num([0.0, 1.0, 2.0, -1.0, 0.5, 0.3][dice.below(6)]),
            _ => {
                let v = w.vars[dice.below(n)].0;
                w.terms.use_var(v)
            }
        };
    }
    let a = grow(w, dice, depth - 1);
    let unary = [
        Fn1::Neg,
        Fn1::Exp,
        Fn1::Log,
        Fn1::Sqrt,
        Fn1::Abs,
        Fn1::Sign,
        Fn1::Tanh,
        Fn1::Sigmoid,
        Fn1::Asinh,
        Fn1::Log1p,
        Fn1::Cosh,
    ];
    match dice.below(15) {
        0..=2 => w.terms.fn1(unary[dice.below(unary.len())], a).unwrap(),
        3 => {
            let n = w.terms.num([2.0, 3.0, -1.0, 0.5, -2.0, 1.5][dice.below(6)]);
            w.terms.fn2(Fn2::Pow, a, n).unwrap()
        }
        4 => {
            let (b, c) = (grow(w, dice, depth - 1), grow(w, dice, depth - 1));
            let test = w.terms.compare(Cmp::Lt, a, b).unwrap();
            w.terms.select(test, b, c).unwrap()
        }
        5 => w.terms.sum(a).unwrap(),
        n => {
            let b = grow(w, dice, depth - 1);
            let f =
                [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Add, Fn2::Mul, Fn2::Max, Fn2::Min, Fn2::Pow]
                    [n - 6];
            w.terms.fn2(f, a, b).unwrap()
        }
    }
}

#[test]
fn random_terms_keep_their_values_and_shapes() {
    let mut compared = 0;
    for seed in 0..2500 {
        let (mut w, mut dice) = (world(), Dice(seed * 7919 + 13));
        // Few variables per term make cancellation likely.
        let keep = 1 + dice.below(4);
        let first = dice.below(w.vars.len());
        w.vars = w.vars.iter().cycle().skip(first).take(keep).cloned().collect();
        let original = grow(&mut w, &mut dice, 5);
        let simple = simplify(&mut w.terms, original, &w.facts.clone());
        assert_eq!(w.terms.shape(original), w.terms.shape(simple), "seed {seed}");
        for _ in 0..3 {
            let env = point(&w, &mut dice);
            let (a, b) = (w.terms.eval_one(original, &env), w.terms.eval_one(simple, &env));
            let (Ok(a), Ok(b)) = (a, b) else { continue };
            if !moderate(&w.terms, original, &env) {
                continue;
            }
            for (x, y) in a.data.iter().zip(&b.data) {
                if x.abs() > 1e6 {
                    continue;
                }
                compared += 1;
                let text = |t| miras_term::print(&w.terms, t, &Default::default());
                assert!(
                    (x - y).abs() <= 1e-6 * (1.0 + x.abs()),
                    "seed {seed}: {x} became {y}\n{}\n{}",
                    text(original),
                    text(simple)
                );
            }
        }
    }
    assert!(compared > 3000, "{compared}");
}

/// Whether no part of the term over- or underflows there: simplification does not keep the traces of that.
fn moderate(terms: &Terms, id: TermId, env: &Env) -> bool {
    let parts = terms.reachable(&[id]);
    let Ok(values) = terms.eval(&parts, env) else { return false };
    parts.iter().zip(&values).all(|(t, v)| {
        if let Op::Compare(_, a, b) = terms.op(*t) {
            // Rounding decides ties.
            let Ok(sides) = terms.eval(&[*a, *b], env) else { return false };
            let gap = |x: &f64| sides[1].data.iter().all(|y| (x - y).abs() > 1e-9);
            return sides[0].data.iter().all(gap);
        }
        let powers = matches!(terms.op(*t), Op::Fn2(Fn2::Pow, ..) | Op::Fn1(Fn1::Exp, _));
        v.data.iter().all(|x| x.abs() < 1e60 && (x.abs() > 1e-60 || (*x == 0.0 && !powers)))
    })
}

#[test]
fn simplification_is_deterministic_and_settles() {
    for seed in 0..200 {
        let build = || {
            let (mut w, mut dice) = (world(), Dice(seed));
            let t = grow(&mut w, &mut dice, 5);
            let s = simplify(&mut w.terms, t, &w.facts.clone());
            let text = miras_term::print(&w.terms, s, &Default::default());
            (w, s, text)
        };
        let ((mut w, s, text), (_, _, again)) = (build(), build());
        assert_eq!(text, again);
        let twice = simplify(&mut w.terms, s, &w.facts.clone());
        assert!(super::size(&w.terms, twice) <= super::size(&w.terms, s));
    }
}

#[test]
fn linear_terms_are_collected_and_others_are_not() {
    let mut w = world();
    let (facts, shape) = (w.facts.clone(), Shape::matrix(Dim::symbol("m"), Dim::symbol("n")));
    let t = &mut w.terms;
    let v = t.add_var("w", Role::Bound, shape, None);
    let (x, gate) = (t.use_var(v), t.use_var(w.vars[6].0));
    let one = t.num(1.0);
    let keep = t.sub(one, gate).unwrap();
    let kept = t.mul(keep, x).unwrap();
    let whole = t.add(kept, gate).unwrap();
    let (c, r) = collect_linear(t, whole, v, &facts).unwrap();
    assert_eq!((c, r), (keep, gate));
    let square = t.mul(x, x).unwrap();
    assert!(collect_linear(t, square, v, &facts).is_none());
    let curved = t.fn1(Fn1::Tanh, x).unwrap();
    assert!(collect_linear(t, curved, v, &facts).is_none());
    assert_eq!(occurrences(t, square, v), 2);
}

#[test]
fn deep_and_wide_terms_end_quickly() {
    let mut t = Terms::new();
    let v = t.add_var("x", Role::Bound, Shape::scalar(), None);
    let x = t.use_var(v);
    let mut deep = x;
    for i in 0..20_000 {
        let c = t.num(f64::from(i));
        let sum = t.add(deep, c).unwrap();
        deep = t.fn1(Fn1::Tanh, sum).unwrap();
    }
    let mut wide = x;
    for i in 0..60 {
        let y = t.add_var(format!("y{i}"), Role::Bound, Shape::scalar(), None);
        let y = t.use_var(y);
        let sum = t.add(x, y).unwrap();
        wide = t.mul(wide, sum).unwrap();
    }
    for term in [deep, wide] {
        simplify(&mut t, term, &Facts::new());
    }
}
