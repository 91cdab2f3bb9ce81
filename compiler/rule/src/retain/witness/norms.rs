//! Norms beside quadratic terms and by themselves: nothing near the solution is better, and what the closed forms say.

use super::world::{COLS, ROWS, World, close, random, solve};
use crate::algebra::{Bounds, Dice};
use crate::rule::Inside;
use miras_term::{Env, Tensor};

/// Directions in which other weights are tried, and how far they are.
const DIRECTIONS: usize = 30;
const STEPS: [f64; 3] = [0.3, 1e-2, 1e-4];

/// The objective is nowhere smaller than at the solution: all of these are convex.
fn nothing_is_better(w: &mut World, env: &Env, after: &Tensor, dice: &mut Dice) {
    let best = w.value(env, after);
    for _ in 0..DIRECTIONS {
        let along = random(dice, vec![ROWS, COLS], Bounds::open(-1.0, 1.0));
        for step in STEPS {
            let data = after.data.iter().zip(&along.data).map(|(x, d)| x + step * d).collect();
            let other = Tensor { data, ..after.clone() };
            let value = w.value(env, &other);
            assert!(value >= best - 1e-12 * (1.0 + best.abs()), "{value} < {best} at {step}");
        }
    }
}

fn minimised(definition: &str) -> (World, usize) {
    let mut w = solve(definition, "mine");
    assert!(matches!(w.solved.inside, Inside::TokenByToken), "{definition}");
    let (mut dice, mut zeros) = (Dice(17), 0);
    for n in 0..20 {
        let mut env = w.env(&mut dice, Bounds::open(-0.5, 0.5));
        let update = w.retention().update;
        if n == 19 {
            // Nothing moves the weights, and the kink of the norm may lie there.
            env.vars.insert(update, Tensor::matrix(ROWS, COLS, vec![0.0; ROWS * COLS]));
        }
        let after = w.step(&env);
        assert!(after.data.iter().all(|x| x.is_finite()), "{definition}: {after:?}");
        zeros += after.data.iter().filter(|x| **x == 0.0).count();
        nothing_is_better(&mut w, &env, &after, &mut dice);
    }
    (w, zeros)
}

fn definition(local: &str) -> String {
    format!(
        "retention mine(alpha: unit = learned, gamma: positive = learned) {{ local(W, P) = sum((W - P)^2) / 2 + {local}; }}"
    )
}

#[test]
fn one_norm_beside_quadratic_terms() {
    for (norm, rests) in [
        ("3 * gamma * norm(W, 2)", true),
        ("gamma * norm(W - P, 2)", false),
        ("3 * gamma * sqrt(sum(W^2))", true),
        ("alpha * sum(W^2) + gamma * norm(2 * W - 1, 2)", false),
        ("gamma * sum(sqrt(W^2 @ ones(dk)))", true),
        ("gamma * sum(sqrt((W * W) @ ones(dk))) + alpha * sum(W^2)", true),
        ("gamma * sum(sqrt(transpose(W^2) @ ones(dv)))", true),
        ("gamma * sum(sqrt(sum(W^2, row)))", true),
        ("gamma * sum(sqrt(sum(W * W, column)))", true),
        ("gamma * sum(sqrt(W^2 @ ones(dk))) + alpha * sum(abs(W))", true),
        ("gamma * norm(W, 2)^3 + alpha * sum(abs(W))", true),
        ("gamma * norm(W, 2)^3", false),
        ("gamma * norm(W, 2)^4", false),
        ("alpha * sum(W^2) + gamma * norm(W - P, 2)^2.5", false),
        ("gamma * norm(W, 2)^6 / 6", false),
    ] {
        let (w, zeros) = minimised(&definition(norm));
        assert_eq!(zeros > 0, rests, "{norm}: {zeros} zeros");
        assert!(w.told.iter().any(|s| s.title == "closed form"), "{norm}");
    }
}

#[test]
fn a_group_is_kept_or_dropped_as_a_whole() {
    let mut w = solve(&definition("0.6 * sum(sqrt(W^2 @ ones(dk)))"), "mine");
    let mut env = w.env(&mut Dice(1), Bounds::REALS);
    let z = [[0.3, 0.4, 0.0, 0.0], [0.0, 0.0, 1.2, 0.5], [0.0; 4]];
    env.vars.insert(w.weight(), Tensor::matrix(ROWS, COLS, z.concat()));
    env.vars.insert(w.retention().update, Tensor::matrix(ROWS, COLS, vec![0.0; ROWS * COLS]));
    let after = w.step(&env);
    // Lengths 0.5 (dropped), 1.3 (kept in the part 0.7 / 1.3) and 0.
    for (n, (x, z)) in after.data.iter().zip(z.concat()).enumerate() {
        close(*x, if n / COLS == 1 { z * 0.7 / 1.3 } else { 0.0 }, 1e-12, "group");
    }
    nothing_is_better(&mut w, &env, &after, &mut Dice(2));
}

/// Absolute values in a ball and in an interval: no other point of the domain is better.
#[test]
fn absolute_values_on_domains() {
    for (domain, inside) in [
        (
            "ball(0.8)",
            (|w: &Tensor| w.data.iter().map(|x| x * x).sum::<f64>() <= 0.64 + 1e-12) as fn(&Tensor) -> bool,
        ),
        ("interval(-0.2, 0.3)", |w| w.data.iter().all(|x| (-0.2..=0.3).contains(x))),
    ] {
        let def = format!(
            "retention mine(alpha: unit = learned, gamma: positive = learned) on {domain} {{
               local(W, P) = sum((W - P)^2) / 2; global(W) = alpha * sum(W^2) + gamma * sum(abs(W)); }}"
        );
        let mut w = solve(&def, "mine");
        assert!(matches!(w.solved.inside, Inside::TokenByToken) && w.solved.linear.is_none());
        let (mut dice, mut held) = (Dice(41), 0);
        for _ in 0..30 {
            let env = w.env(&mut dice, Bounds::open(-0.2, 0.2));
            let after = w.step(&env);
            assert!(inside(&after), "{domain}: {after:?}");
            let best = w.value(&env, &after);
            for _ in 0..DIRECTIONS * 10 {
                let along = random(&mut dice, vec![ROWS, COLS], Bounds::open(-1.0, 1.0));
                for step in STEPS {
                    let data = after.data.iter().zip(&along.data).map(|(x, d)| x + step * d).collect();
                    let other = Tensor { data, ..after.clone() };
                    if inside(&other) {
                        held += 1;
                        let value = w.value(&env, &other);
                        assert!(value >= best - 1e-12 * (1.0 + best.abs()), "{domain}: {value} < {best}");
                    }
                }
            }
        }
        assert!(held > 500, "{domain}: {held} other points");
    }
}

#[test]
fn powers_of_a_norm_by_themselves() {
    for body in [
        "norm(W - P, 3)^2",
        "norm(W - P, 1.5)^2 / 2",
        "norm(W - P, 2)^4 / 4",
        "(1 + gamma) * norm(W - P, 3)^5",
    ] {
        let def = format!("retention mine(gamma: positive = learned) {{ local(W, P) = {body}; }}");
        let (w, _) = minimised(&def);
        assert!(w.solved.linear.is_none(), "{body}");
    }
}

#[test]
fn potentials_with_norms() {
    for body in [
        "norm(W, 2)^4 / 4",
        "norm(W, 3)^1.5",
        "sum(W^2) / 2 + gamma * norm(W, 2)",
        "sum(W^2) + norm(W, 2)^4",
        "sum(W^2) / 2 + gamma * sum(sqrt(W^2 @ ones(dk)))",
    ] {
        let def = format!(
            "retention mine(gamma: positive = learned) {{ dual A' = 0.9 * A + u; potential(W) = {body}; }}"
        );
        let mut w = solve(&def, "mine");
        let mut dice = Dice(23);
        for _ in 0..10 {
            let mut env = w.env(&mut dice, Bounds::REALS);
            let dual = random(&mut dice, vec![ROWS, COLS], Bounds::open(-2.0, 2.0));
            env.vars.insert(w.solved.carried, dual.clone());
            let value = w.layer.terms.eval_one(w.solved.value.unwrap(), &env).unwrap();
            // The potential is pulled by the dual itself.
            let miras_spec::Form::Lazy { dual: [_, pull], .. } = w.retention().form else {
                panic!("not lazy")
            };
            env.vars.insert(pull, dual);
            nothing_is_better(&mut w, &env, &value, &mut dice);
        }
    }
}

#[test]
fn larger_of_two_is_an_absolute_value() {
    let cases = [
        ("gamma * sum(max(W, -W))", "gamma * sum(abs(W))"),
        ("gamma * sum(max(-W, W))", "gamma * sum(abs(W))"),
        ("-gamma * sum(min(W, -W))", "gamma * sum(abs(W))"),
        ("gamma * sum(max(W, 0))", "gamma * sum(W + abs(W)) / 2"),
        ("gamma * sum(relu(W))", "gamma * sum(W + abs(W)) / 2"),
        ("gamma * sum(max(W, P))", "gamma * sum(W + P + abs(W - P)) / 2"),
    ];
    for (spelled, plain) in cases {
        let (w, plain) = (solve(&definition(spelled), "mine"), solve(&definition(plain), "mine"));
        let (mut w, mut dice, mut same) = (w, Dice(29), Dice(29));
        for _ in 0..10 {
            let (env, other) = (w.env(&mut dice, Bounds::REALS), plain.env(&mut same, Bounds::REALS));
            let after = w.step(&env);
            for (a, b) in after.data.iter().zip(&plain.step(&other).data) {
                close(*a, *b, 1e-12, spelled);
            }
            nothing_is_better(&mut w, &env, &after, &mut Dice(31));
        }
    }
}
