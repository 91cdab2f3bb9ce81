//! The numbers of the closed forms, duals and declared maps.

use super::world::{COLS, ROWS, World, close, random, solve};
use crate::algebra::Bounds;
use crate::algebra::Dice;
use crate::calculus::gradient;
use crate::rule::Inside;
use miras_base::DimEnv;
use miras_spec as spec;
use miras_term::{Env, Tensor};
use std::sync::Arc;

fn env(rows: usize, cols: usize) -> Env {
    let dims = DimEnv::from([(Arc::from("dv"), rows as u64), (Arc::from("dk"), cols as u64)]);
    Env { dims, heads: 1, layers: 1, ..Env::default() }
}

/// Sets a parameter by the name of its tensor.
fn set(w: &World, env: &mut Env, tensor: &str, value: f64) {
    let p = w.layer.params.iter().find(|p| p.tensor == tensor).unwrap();
    env.vars.insert(p.var, Tensor::scalar(value));
}

fn row(data: &[f64]) -> Tensor {
    Tensor::matrix(1, data.len(), data.to_vec())
}

#[test]
fn kl_as_the_cases_print_it() {
    let w = solve("", "kl(alpha = learned)");
    let mut env = env(1, 3);
    set(&w, &mut env, "retention.alpha", 0.25);
    env.vars.insert(w.weight(), row(&[0.7, 0.2, 0.1]));
    env.vars.insert(w.retention().update, row(&[-0.5, 0.5, -0.25]));
    let after = w.step(&env);
    for (a, b) in after.data.iter().zip([0.4236108145, 0.4499979005, 0.126391285]) {
        close(*a, b, 1e-9, "kl");
    }
}

#[test]
fn going_out_and_back_returns() {
    for clause in ["kl(alpha = 0)", "sigmoid(alpha = 0)"] {
        let w = solve("", clause);
        let mut env = env(1, 2);
        env.vars.insert(w.weight(), row(&[0.5, 0.5]));
        let start = w.layer.terms.eval_one(w.solved.start.unwrap(), &env).unwrap();
        env.vars.insert(w.solved.carried, start);
        for i in 0..800 {
            let u = if i < 400 { 0.5 } else { -0.5 };
            env.vars.insert(w.retention().update, row(&[-u, u]));
            let next = w.carried_after(&env);
            env.vars.insert(w.solved.carried, next);
        }
        for x in w.layer.terms.eval_one(w.solved.value.unwrap(), &env).unwrap().data {
            close(x, 0.5, 1e-12, clause);
        }
    }
}

#[test]
fn elastic_as_the_cases_print_it() {
    let w = solve("", "elastic(alpha = learned, gamma = learned)");
    let mut env = env(1, 6);
    set(&w, &mut env, "retention.alpha", 0.1);
    set(&w, &mut env, "retention.gamma", 0.1);
    env.vars.insert(w.weight(), row(&[0.3, -0.05, 0.1, -0.1, 0.0, 2.0]));
    env.vars.insert(w.retention().update, row(&[0.0, 0.0, 0.0, 0.0, -0.1, 0.2]));
    let after = w.step(&env);
    for (a, b) in after.data.iter().zip([0.17, 0.0, 0.0, 0.0, 0.0, 1.9]) {
        close(*a, b, 1e-12, "elastic");
    }
}

#[test]
fn tlogt_is_kl_and_chi2_stays_on_the_simplex() {
    let defs = "fn tlogt(t) = t * log(t); fn chi2(t) = (t - 1)^2 / 2;";
    let (a, b) = (solve(defs, "fdiv(f = tlogt, mass = 1)"), solve("", "kl(alpha = 0)"));
    let mut point = env(1, 3);
    for w in [&a, &b] {
        point.vars.insert(w.weight(), row(&[0.7, 0.2, 0.1]));
        point.vars.insert(w.retention().update, row(&[-0.5, 0.5, -0.25]));
    }
    for (a, b) in a.step(&point).data.iter().zip(&b.step(&point).data) {
        close(*a, *b, 1e-12, "tlogt and kl");
    }
    let w = solve(defs, "fdiv(f = chi2, mass = 2)");
    let mut point = env(1, 4);
    let mut weights = row(&[1.2, 0.5, 0.2, 0.1]);
    let mut touched = false;
    for i in 0..50 {
        point.vars.insert(w.weight(), weights);
        let x = f64::from(i);
        point
            .vars
            .insert(w.retention().update, row(&[x.sin(), 2.0 * (x * 1.7).cos(), -1.5, (x * 0.3).sin()]));
        weights = w.step(&point);
        close(weights.data.iter().sum(), 2.0, 1e-9, "mass");
        assert!(weights.data.iter().all(|x| *x >= 0.0), "{weights:?}");
        touched |= weights.data.contains(&0.0);
    }
    assert!(touched, "the boundary was never reached");
}

/// The value of a dual at given A, and its map's derivative of potential at it.
fn value_at(w: &World, env: &mut Env, dual: Tensor) -> Tensor {
    env.vars.insert(w.solved.carried, dual);
    w.layer.terms.eval_one(w.solved.value.unwrap(), env).unwrap()
}

#[test]
fn lq_is_a_frozen_scale_and_robust() {
    let w = solve("", "lq(4, alpha = learned)");
    let Inside::FrozenScale(scale) = w.solved.inside else { panic!("{:?}", w.solved.inside) };
    assert_eq!(w.layer.terms.shape(scale).rank(), 0);
    assert_eq!(w.text(w.solved.advance), "(1 - alpha) * A + u");
    assert!(w.solved.linear.is_some() && w.solved.start.is_none() && w.solved.retained.is_none());
    let mut point = env(1, 4);
    let a = [1.0, -2.0, 2.0, 1.0];
    for (x, a) in value_at(&w, &mut point, row(&a)).data.iter().zip(a) {
        close(*x, a / 34.0_f64.sqrt(), 1e-12, "lq");
    }
    for (size, expected) in [(0.0, 0.0), (1e-12, 1.0), (1e11, 1e-11)] {
        let values = value_at(&w, &mut point, row(&[size, -2.0 * size, 3.0 * size, 0.0]));
        assert!(values.data.iter().all(|x| x.is_finite()), "{values:?}");
        if size == 0.0 {
            assert!(values.data.iter().all(|x| *x == expected));
        }
    }
    let small = value_at(&w, &mut point, row(&[1e-12, 0.0, 0.0, 0.0]));
    close(small.data[0], 1.0, 1e-9, "the floor 1e-6 holds");
}

#[test]
fn lq_exact_as_the_table_has_it() {
    for q in [1.5, 2.0, 3.0, 4.0] {
        let mut w = solve("", &format!("lq_exact({q}, alpha = learned)"));
        let p = q / (q - 1.0);
        let mut dice = Dice(2);
        let dual = random(&mut dice, vec![ROWS, COLS], Bounds::REALS);
        let mut point = env(ROWS, COLS);
        let value = if q == 2.0 { dual.clone() } else { value_at(&w, &mut point, dual.clone()) };
        let norm = dual.data.iter().map(|a| a.abs().powf(p)).sum::<f64>().powf(1.0 / p);
        for (x, a) in value.data.iter().zip(&dual.data) {
            let table = (q - 1.0) * a.signum() * a.abs().powf(p - 1.0) / norm.powf(p - 2.0);
            close(*x, table, 1e-12, "lq_exact");
        }
        potential_is_stationary(&mut w, &point, &dual, &value);
    }
}

/// The derivative of potential(W) - <A, W> is 0.
fn potential_is_stationary(w: &mut World, point: &Env, dual: &Tensor, value: &Tensor) {
    let retention = w.retention().clone();
    let spec::Form::Lazy { potential, .. } = retention.form else { panic!("not lazy") };
    let slope = gradient(&mut w.layer.terms, potential, &[retention.new_weight]).unwrap()[0];
    let mut point = point.clone();
    point.vars.insert(retention.new_weight, value.clone());
    let slope = w.layer.terms.eval_one(slope, &point).unwrap();
    for (s, a) in slope.data.iter().zip(&dual.data) {
        close(*s, *a, 1e-9, "slope of the potential");
    }
}

#[test]
fn lazy_potentials() {
    let def = "retention mine(gamma: positive = learned) { dual A' = 0.9 * A + u; potential(W) = BODY; }";
    for body in [
        "sum(W^2)",
        "sum(W * asinh(W) - sqrt(1 + W^2)) * (1 + gamma)",
        "sum(W * log(W) - W)",
        "sum(W * log(W) + (1 - W) * log(1 - W))",
        "sum(abs(W)^3) / 3",
        "norm(W, 3)^2",
    ] {
        let mut w = solve(&def.replace("BODY", body), "mine");
        assert!(matches!(w.solved.inside, Inside::Mapped), "{body}");
        let mut dice = Dice(21);
        for _ in 0..10 {
            let mut point = w.env(&mut dice, Bounds::REALS);
            let dual = random(&mut dice, vec![ROWS, COLS], Bounds::REALS);
            let value = value_at(&w, &mut point, dual.clone());
            potential_is_stationary(&mut w, &point, &dual, &value);
        }
    }
    let newton =
        def.replace("BODY", "sum(W^2) / 2 + sum(log(exp(W) + exp(-W)))").replace("}", " solve: newton(9); }");
    let mut w = solve(&newton, "mine");
    let mut point = env(1, 3);
    set(&w, &mut point, "retention.gamma", 0.5);
    let value = value_at(&w, &mut point, row(&[0.3, -2.0, 0.0]));
    potential_is_stationary(&mut w, &point, &row(&[0.3, -2.0, 0.0]), &value);
}

#[test]
fn lazy_elastic_is_a_soft_threshold_of_the_dual() {
    let w = solve("", "elastic_lazy(gamma = 0.15)");
    assert_eq!(w.text(w.solved.advance), "A + u");
    assert_eq!(w.text(w.solved.value.unwrap()), "sign(A) * max(abs(A) - 0.15, 0)");
    assert!(matches!(w.solved.inside, Inside::Mapped) && w.solved.linear.is_some());
}

#[test]
fn lazy_simplices_balls_and_intervals() {
    let def = "retention mine(alpha: unit = learned) on DOMAIN { dual A' = A + u; potential(W) = BODY; }";
    let mut point = env(1, 3);
    let a = row(&[1.0, -0.5, 0.25]);
    for (domain, body, expected) in [
        ("simplex(row, 2)", "sum(W * log(W))", None),
        ("simplex(row, 1)", "sum(W^2) / 2", Some([0.875, 0.0, 0.125])),
        ("ball(0.5)", "sum(W^2) / 2", None),
        ("interval(-0.25, 0.5)", "sum(W^2) / 2", Some([0.5, -0.25, 0.25])),
    ] {
        let w = solve(&def.replace("DOMAIN", domain).replace("BODY", body), "mine");
        let value = value_at(&w, &mut point, a.clone());
        let sum: f64 = a.data.iter().map(|x| x.exp()).sum();
        let norm = a.data.iter().map(|x| x * x).sum::<f64>().sqrt();
        for (i, x) in value.data.iter().enumerate() {
            let expected = match (expected, domain) {
                (Some(e), _) => e[i],
                (None, "ball(0.5)") => a.data[i] * 0.5 / norm,
                (None, _) => 2.0 * a.data[i].exp() / sum,
            };
            close(*x, expected, 1e-9, domain);
        }
    }
}

#[test]
fn declared_maps() {
    let w = solve("", "elastic_smooth(alpha = learned, gamma = learned)");
    assert!(matches!(w.solved.inside, Inside::TokenByToken) && w.solved.linear.is_none());
    let w = solve("retention mine(alpha: unit = learned) { W' = W - alpha * W + u; }", "mine");
    assert_eq!(w.text(w.solved.linear.clone().unwrap().keep), "1 - alpha");
    assert!(matches!(w.solved.inside, Inside::Identity));
    let w = solve("retention mine { dual A' = A / 2 + u; W' = tanh(A'); }", "mine");
    assert_eq!(w.text(w.solved.value.unwrap()), "tanh(A)");
    assert_eq!(w.text(w.solved.linear.clone().unwrap().keep), "0.5");
    assert!(!w.told.is_empty());
}

#[test]
fn a_scaled_step_is_a_linear_recurrence() {
    let cases = [
        ("local(W, P) = sum((W - P)^2);", "1", "0.5"),
        (
            "local(W, P) = sum((W - P)^2) / 2; global(W) = alpha * sum(W^2) / 2;",
            "1 / (1 + alpha)",
            "1 / (1 + alpha)",
        ),
        ("W' = (1 - alpha) * W + alpha * u;", "1 - alpha", "alpha"),
        ("dual A' = A + alpha * u; W' = A';", "1", "alpha"),
    ];
    for (body, keep, write) in cases {
        let w = solve(&format!("retention mine(alpha: unit = learned) {{ {body} }}"), "mine");
        let linear = w.solved.linear.clone().unwrap();
        assert_eq!([w.text(linear.keep), w.text(linear.write.unwrap())], [keep, write], "{body}");
        assert!(matches!(w.solved.inside, Inside::Identity), "{body}");
    }
}

#[test]
fn a_hard_reset_keeps_exactly_nothing() {
    for clause in
        ["l2(alpha = learned)", "kl(alpha = learned)", "sigmoid(alpha = learned)", "lq(4, alpha = learned)"]
    {
        let w = solve("", clause);
        let mut point = env(1, 3);
        set(&w, &mut point, "retention.alpha", 1.0);
        let keep = w.layer.terms.eval_one(w.solved.linear.clone().unwrap().keep, &point).unwrap();
        assert_eq!(keep.data[0], 0.0, "{clause}");
    }
}
