//! Objectives: the derivative vanishes at the solution, or the conditions of its domain hold.

use super::world::{COLS, ROWS, World, close, normalised, slices, solve};
use crate::algebra::Bounds;
use crate::algebra::Dice;
use crate::rule::{InitialDomain, Inside};
use miras_term::Axis;

/// The derivative is 0 at the solution, for several random points.
fn stationary(w: &mut World, weights: Bounds) {
    let mut dice = Dice(11);
    for _ in 0..20 {
        let env = w.env(&mut dice, weights);
        let after = w.step(&env);
        for s in w.slope(&env, &after).data {
            assert!(s.abs() < 1e-9, "slope {s} at the solution");
        }
        rest_is_consistent(w, &env);
    }
}

/// `retained` is the step with u = 0.
fn rest_is_consistent(w: &World, env: &miras_term::Env) {
    let Some(retained) = w.solved.retained else { return };
    let mut env = env.clone();
    let zero = miras_term::Tensor::matrix(ROWS, COLS, vec![0.0; ROWS * COLS]);
    env.vars.insert(w.retention().update, zero);
    let (a, b) = (w.step(&env), w.layer.terms.eval_one(retained, &env).unwrap());
    assert_eq!(b.shape, vec![ROWS, COLS]);
    for (a, b) in a.data.iter().zip(&b.data) {
        close(*b, *a, 1e-9, "retained");
    }
}

/// Derivatives are equal where entries are positive, and not smaller where they are 0.
fn on_simplex(w: &mut World, axis: Axis, mass: f64) {
    let mut dice = Dice(5);
    for _ in 0..20 {
        let mut env = w.env(&mut dice, Bounds::open(0.02, 1.0));
        let start = normalised(env.vars[&w.weight()].clone(), axis, mass);
        env.vars.insert(w.weight(), start);
        let after = w.step(&env);
        let slope = w.slope(&env, &after);
        for slice in slices(axis) {
            let sum: f64 = slice.iter().map(|i| after.data[*i]).sum();
            close(sum, mass, 1e-9, "sum of a slice");
            let inner: Vec<usize> = slice.iter().copied().filter(|i| after.data[*i] > 1e-12).collect();
            let zeta = slope.data[inner[0]];
            for i in &slice {
                assert!(after.data[*i] >= 0.0);
                if inner.contains(i) {
                    close(slope.data[*i], zeta, 1e-7, "derivative within a slice");
                } else {
                    assert!(slope.data[*i] >= zeta - 1e-9, "an entry at 0 would rise");
                }
            }
        }
        rest_is_consistent(w, &env);
    }
}

#[test]
fn quadratic_terms() {
    let mut w = solve("", "l2(alpha = learned)");
    assert_eq!(w.text(w.solved.advance), "(1 - alpha) * W + u");
    let linear = w.solved.linear.clone().unwrap();
    assert_eq!(w.text(linear.keep), "1 - alpha");
    assert!(linear.shift.is_none() && matches!(w.solved.inside, Inside::Identity));
    assert_eq!(w.text(w.solved.retained.unwrap()), "(1 - alpha) * W");
    stationary(&mut w, Bounds::REALS);
    let w = solve("", "none");
    assert_eq!(w.text(w.solved.advance), "W + u");
    assert_eq!(w.layer.terms.as_num(w.solved.linear.unwrap().keep), Some(1.0));
}

#[test]
fn quadratic_terms_with_gates_of_every_shape() {
    for per in ["token", "channel", "key", "value", "entry"] {
        let mut w = solve("", &format!("l2(alpha = learned(per = {per}))"));
        stationary(&mut w, Bounds::REALS);
    }
    let w = solve("", "l2(alpha = 1 - 2^(-5 - head))");
    assert_eq!(w.text(w.solved.linear.clone().unwrap().keep), "2^(-5 - head)");
}

#[test]
fn quadratic_terms_spelled_otherwise() {
    let cases = [
        "local(W, P) = norm(W - P, 2)^2 / 2;",
        "local(W, P) = sum((W - P)^2); global(W) = alpha * norm(W, 2)^2;",
        "local(W, P) = (1 - alpha) * dot(W - P, W - P) / 2; global(W) = alpha * sum(W * W) / 2;",
        "local(W, P) = mean((W - P)^2) + sum(W * P) * alpha;",
        "local(W, P) = sum((W - P)^2) / (2 * (1 + alpha)); global(W) = 0.3 * sum((W - 1)^2);",
        "local(W, P) = (1 - alpha) * sum((W - P)^2) / 2; global(W) = beta * sum(W^2) / 2;",
    ];
    for body in cases {
        let gates = "alpha: unit = learned, beta: positive = learned";
        let mut w = solve(&format!("retention mine({gates}) {{ {body} }}"), "mine");
        stationary(&mut w, Bounds::REALS);
    }
}

#[test]
fn a_positive_divisor_is_taken_as_not_zero() {
    let def = "retention prox(eta: positive = learned) { local(W, P) = sum((W - P)^2) / (2 * eta); }";
    let mut w = solve(def, "prox");
    assert_eq!(w.text(w.solved.advance), "W + eta * u");
    stationary(&mut w, Bounds::REALS);
}

#[test]
fn absolute_values() {
    let mut w = solve("", "elastic(alpha = learned, gamma = learned)");
    assert_eq!(w.text(w.solved.advance), "(1 - alpha) * W + u");
    assert_eq!(w.text(w.solved.finish.unwrap()), "sign(W) * max(abs(W) - gamma, 0)");
    let Inside::Threshold(threshold) = w.solved.inside else { panic!("no threshold") };
    assert_eq!(w.text(threshold), "gamma");
    let gamma = w.layer.params.iter().find(|p| p.tensor == "retention.gamma").unwrap().var;
    let mut dice = Dice(3);
    for _ in 0..20 {
        let env = w.env(&mut dice, Bounds::REALS);
        let after = w.step(&env);
        let slope = w.slope(&env, &after);
        let gamma = env.vars[&gamma].data[0];
        for (x, s) in after.data.iter().zip(&slope.data) {
            // The table's sign(0) is 0; between -gamma and gamma the subgradient holds 0.
            assert!(if *x == 0.0 { s.abs() <= gamma + 1e-12 } else { s.abs() < 1e-12 }, "{x} {s}");
        }
    }
}

#[test]
fn absolute_values_around_another_point() {
    let bodies = [
        ("local(W, P) = sum((W - P)^2) / 2 + gamma * sum(abs(W - P)); global(W) = sum(W^2) / 4;", None),
        ("local(W, P) = sum((W - P)^2); global(W) = gamma * sum(abs(1 - 2 * W));", Some(0.5)),
    ];
    let mut dice = Dice(5);
    for (body, point) in bodies {
        let mut w = solve(&format!("retention mine(gamma: positive = learned) {{ {body} }}"), "mine");
        assert!(matches!(w.solved.inside, Inside::TokenByToken), "{body}");
        let gamma = w.layer.params.iter().find(|p| p.tensor == "retention.gamma").unwrap().var;
        let mut rested = 0;
        for _ in 0..40 {
            let env = w.env(&mut dice, Bounds::REALS);
            let (after, old) = (w.step(&env), env.vars[&w.weight()].clone());
            let slope = w.slope(&env, &after);
            let width = env.vars[&gamma].data[0] * if point.is_some() { 2.0 } else { 1.0 };
            for (i, (x, s)) in after.data.iter().zip(&slope.data).enumerate() {
                let at_rest = (x - point.unwrap_or(old.data[i])).abs() < 1e-12;
                rested += usize::from(at_rest);
                let holds = if at_rest { s.abs() <= width + 1e-9 } else { s.abs() < 1e-9 };
                assert!(holds, "{body}: {x} {s}");
            }
        }
        assert!(rested > 0, "{body}");
    }
}

#[test]
fn separable_links() {
    let defs = "
        fn hyper(w) = w * asinh(w) - sqrt(1 + w^2);
        fn negentropy(w) = w * log(w) - w;
        fn bare(w) = w * log(w);
        fn burg(w) = -log(w) + w^2 / 2;
        fn quartic(w) = w^4 / 4;
        fn powered(w) = abs(w)^2.5 / 2.5;
        fn cosine(w) = exp(w) + exp(-w);
        fn circle(w) = -sqrt(1 - w^2);
        fn fermi(w) = w * log(w) + (1 - w) * log(1 - w);
        fn fermi2(w) = w * log(w / (1 - w)) + log(1 - w);
        fn fermi3(w) = w * log(w) + (1 - w) * log1p(-w);
        retention both(f: fn, alpha: unit = learned) {
          local(W, P) = (1 - alpha) * bregman(f, W, P);
          global(W) = alpha * sum(f(W));
        }
        retention between(f: fn, alpha: unit = learned) on interval(0, 1) {
          local(W, P) = bregman(f, W, P);
          global(W) = alpha * sum(f(W));
        }";
    let cases = [
        ("bregman(hyper)", Bounds::REALS, "sinh(theta)"),
        ("both(hyper)", Bounds::REALS, "sinh(theta)"),
        ("bregman(negentropy)", Bounds::POSITIVE, "exp(theta)"),
        ("both(negentropy)", Bounds::POSITIVE, "exp(theta)"),
        ("both(bare)", Bounds::POSITIVE, "exp(theta - 1)"),
        ("bregman(burg)", Bounds::POSITIVE, "0.5 * (theta + 2 * sqrt(1 + theta^2 / 4))"),
        ("both(quartic)", Bounds::REALS, "sign(theta) * abs(theta)^0.3333333333333333"),
        ("both(powered)", Bounds::REALS, "sign(theta) * abs(theta)^0.6666666666666666"),
        ("both(circle)", Bounds::open(-1.0, 1.0), "theta / sqrt(1 + theta^2)"),
        ("both(fermi)", Bounds::open(0.0, 1.0), "sigmoid(theta)"),
        ("both(fermi2)", Bounds::open(0.0, 1.0), "sigmoid(theta)"),
        ("both(fermi3)", Bounds::open(0.0, 1.0), "sigmoid(theta)"),
        ("between(fermi)", Bounds::open(0.0, 1.0), "sigmoid(theta)"),
        ("sigmoid(alpha = learned)", Bounds::open(0.0, 1.0), "sigmoid(theta)"),
    ];
    for (clause, weights, value) in cases {
        let mut w = solve(defs, clause);
        assert_eq!(w.text(w.solved.value.unwrap()), value, "{clause}");
        assert!(matches!(w.solved.inside, Inside::Mapped), "{clause}");
        stationary(&mut w, weights);
    }
}

#[test]
fn duals_are_linear_and_start_at_the_slope_of_f() {
    let defs = "fn bare(w) = w * log(w);
        retention both(f: fn, alpha: unit = learned) {
          local(W, P) = (1 - alpha) * bregman(f, W, P);
          global(W) = alpha * sum(f(W));
        }";
    let w = solve(defs, "both(bare)");
    assert_eq!(w.text(w.solved.advance), "(1 - alpha) * theta + u");
    assert_eq!(w.text(w.solved.start.unwrap()), "1 + log(W)");
    assert!(w.solved.linear.is_some());
    let w = solve("", "sigmoid(alpha = learned)");
    assert_eq!(w.text(w.solved.advance), "(1 - alpha) * theta + u");
    assert!(matches!(w.solved.initial, InitialDomain::Open(0.0, 1.0)));
}

#[test]
fn a_link_with_a_gate_carries_the_weights() {
    let def = "retention warped(c: positive = learned) {
        local(W, P) = sum(sinh(W) - W * sinh(P)) + (1 + c) * sum(W^2 - 2 * W * P);
      }
      retention tilted(c: positive = learned) { local(W, P) = sum(exp((1 + c) * W) - W * P * exp(P)); }";
    let mut w = solve(
        &format!(
            "{def} retention curved(c: positive = learned) {{
        local(W, P) = sum(asinh_like(W, c) - asinh_like_slope(P, c) * W); }}
        fn asinh_like(w, c) = (1 + c) * cosh_of(w / (1 + c));
        fn cosh_of(x) = (exp(x) + exp(-x)) / 2;
        fn asinh_like_slope(p, c) = sinh(p / (1 + c));"
        ),
        "curved",
    );
    assert!(w.solved.value.is_none() && matches!(w.solved.inside, Inside::TokenByToken));
    stationary(&mut w, Bounds::REALS);
}

#[test]
fn entropy_on_simplices() {
    let def = "retention mine(alpha: unit = learned, mass: positive = 1) on simplex(AXIS, mass) {
        local(W, P) = (1 - alpha) * sum(W * log(W / P));
        global(W) = alpha * sum(W * log(W)) + 0.5 * sum(W);
      }";
    for (word, axis) in [("row", Axis::Row), ("column", Axis::Column), ("all", Axis::All)] {
        let mut w = solve(&def.replace("AXIS", word), "mine(mass = 2)");
        assert_eq!(w.text(w.solved.advance), "(1 - alpha) * theta + u");
        assert!(matches!(w.solved.initial, InitialDomain::Simplex(a, _) if a == axis));
        on_simplex(&mut w, axis, 2.0);
    }
    let mut w = solve("", "kl(alpha = learned(per = value), mass = 3)");
    on_simplex(&mut w, Axis::Row, 3.0);
    assert_eq!(w.text(w.solved.start.unwrap()), "log(W)");
    assert_eq!(w.text(w.solved.value.unwrap()), "3 * softmax_row(theta)");
}

#[test]
fn divergences_on_simplices() {
    let defs = "fn chi2(t) = (t - 1)^2 / 2;
        fn tlogt(t) = t * log(t);
        fn hellinger(t) = 2 * (1 - sqrt(t));
        fn reverse(t) = -log(t);
        fn shannon(t) = t * log(t) - (1 + t) * log((1 + t) / 2);
        fn squares(w) = w^2 / 2;
        retention euclid(alpha: unit = learned) on simplex(row, 2) {
          local(W, P) = (1 - alpha) * sum((W - P)^2) / 2;
          global(W) = alpha * sum(W^2) / 2;
        }
        retention roots(alpha: unit = learned) on simplex(column, 1) {
          local(W, P) = (1 - alpha) * bregman(root, W, P);
          global(W) = alpha * sum(root(W));
        }
        fn root(w) = -2 * sqrt(w);";
    for (clause, axis, mass) in [
        ("fdiv(f = chi2, mass = 2)", Axis::Row, 2.0),
        ("fdiv(f = tlogt, mass = 1)", Axis::Row, 1.0),
        ("fdiv(f = hellinger, mass = 1)", Axis::Row, 1.0),
        ("fdiv(f = reverse, mass = 2)", Axis::Row, 2.0),
        ("fdiv(f = shannon, mass = 1)", Axis::Row, 1.0),
        ("euclid", Axis::Row, 2.0),
        ("roots", Axis::Column, 1.0),
    ] {
        let mut w = solve(defs, clause);
        on_simplex(&mut w, axis, mass);
    }
    let w = solve(defs, "roots");
    assert!(w.solved.linear.is_some() && matches!(w.solved.inside, Inside::Mapped));
    let w = solve(defs, "fdiv(f = chi2, mass = 2)");
    assert!(w.solved.linear.is_none() && w.solved.carried == w.weight());
}

#[test]
fn balls_and_intervals() {
    let mut w = solve("", "ball(radius = 0.8, alpha = learned)");
    let mut dice = Dice(9);
    for _ in 0..20 {
        let env = w.env(&mut dice, Bounds::open(-0.4, 0.4));
        let after = w.step(&env);
        let norm = after.data.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(norm <= 0.8 + 1e-12);
        // -slope is a multiple of the weights, at least 0, and 0 inside.
        let slope = w.slope(&env, &after);
        let lambda = -slope.data[0] / after.data[0];
        assert!(lambda >= -1e-9 && (norm > 0.8 - 1e-9 || lambda.abs() < 1e-9));
        for (x, s) in after.data.iter().zip(&slope.data) {
            close(-s, lambda * x, 1e-9, "multiplier of the ball");
        }
        rest_is_consistent(&w, &env);
    }
    let def = "retention boxed(alpha: unit = learned) on interval(-0.5, 0.7) {
        local(W, P) = sum((W - P)^2) / 2; global(W) = alpha * sum(W^2) / 2; }";
    let mut w = solve(def, "boxed(alpha = learned(per = entry))");
    for _ in 0..20 {
        let env = w.env(&mut dice, Bounds::open(-0.5, 0.7));
        let after = w.step(&env);
        for (x, s) in after.data.iter().zip(&w.slope(&env, &after).data) {
            let holds = match *x {
                0.7 => *s <= 1e-12,
                -0.5 => *s >= -1e-12,
                x => x > -0.5 && x < 0.7 && s.abs() < 1e-9,
            };
            assert!(holds, "{x} {s}");
        }
    }
}

#[test]
fn newton_steps() {
    let cases = [
        ("sum(log(exp(W - P) + exp(P - W))) + sum((W - P)^2) / 2", Bounds::REALS),
        ("sum((W - P)^2) / 2 + sum(abs(W)^3) * alpha", Bounds::REALS),
        ("sum(W * log(W / P) - W + P) + alpha * sum(W^2)", Bounds::POSITIVE),
        ("sum(W * log(W) + (1 - W) * log(1 - W)) + alpha * sum((W - P)^2)", Bounds::open(0.0, 1.0)),
        ("sum(W^4) / 4 + sum(W^2 - W * P)", Bounds::REALS),
        ("sum((W - P)^4) / 4 + sum((W - P)^2) / 2", Bounds::REALS),
        ("sum((W - P)^2) / 2 + alpha * sum(sqrt(1 + W^2))", Bounds::REALS),
        ("sum((W - P)^2) / 2 + alpha * sum(log(1 + exp(W)))", Bounds::REALS),
        ("0.5 * sum((W - P)^2) + sum(sqrt(1 + (W - P)^2))", Bounds::REALS),
    ];
    for (objective, weights) in cases {
        let def = format!(
            "retention mine(alpha: unit = learned) {{ local(W, P) = {objective}; solve: newton(8); }}"
        );
        let mut w = solve(&def, "mine");
        assert!(matches!(w.solved.inside, Inside::TokenByToken), "{objective}");
        stationary(&mut w, weights);
    }
}

#[test]
fn a_slope_that_falls_somewhere_is_not_bracketed() {
    let def = "retention mine { local(W, P) = sum((W - P)^2) / 2 + 3 * sum(sin(W)); solve: newton(8); }";
    let d = super::world::refusal(def, "mine");
    assert!(d.notes.iter().any(|n| n.contains("not known to rise")), "{:?}", d.notes);
}

#[test]
fn vectors_and_several_weights() {
    let defs = "memory gated { weight w: [dv] = 1; read(x) = w * x; }";
    for clause in
        ["l2(alpha = learned)", "kl(alpha = learned)", "fdiv(f = chi2)", "ball(radius = 1)", "lq(4)"]
    {
        let text = format!("{defs} fn chi2(t) = (t - 1)^2 / 2;");
        let mut layer = super::world::layer_of(&text, "gated", clause);
        let (solved, _) =
            super::super::solve(&mut layer, 0).unwrap_or_else(|d| panic!("{clause}: {d} {:?}", d.notes));
        assert_eq!(layer.terms.shape(solved.advance).rank(), 1, "{clause}");
    }
    let mut layer = super::world::layer_of("", "mlp(2)", "kl(alpha = learned)");
    let (first, _) = super::super::solve(&mut layer, 0).unwrap();
    let (second, _) = super::super::solve(&mut layer, 1).unwrap();
    let name = |v| layer.terms.var(v).name.clone();
    assert_eq!((name(first.carried).as_str(), name(second.carried).as_str()), ("theta[1]", "theta[2]"));
}

#[test]
fn an_exponential_number_of_parts_is_refused_quickly() {
    let sums = "a = a + a;".repeat(60);
    let def = format!("retention mine {{ local(W, P) = {{ let a = sum((W - P)^2); {sums} a }}; }}");
    let d = super::world::refusal(&def, "mine");
    assert!(d.notes.iter().any(|n| n.contains("parts")), "{:?}", d.notes);
}

#[test]
fn derivations_are_written_from_the_terms() {
    let told = |definitions: &str, clause: &str| {
        let w = solve(definitions, clause);
        let lines =
            w.told.iter().flat_map(|s| &s.equations).map(|e| format!("{} = {}", e.left, w.text(e.right)));
        (
            lines.collect::<Vec<_>>(),
            w.told.iter().map(|s| s.justification.clone()).collect::<Vec<_>>().join("\n"),
        )
    };
    let (lines, _) = told("", "l2(alpha = learned)");
    assert_eq!(lines, ["u = W' - (1 - alpha) * W", "W' = (1 - alpha) * W + u"]);
    let (lines, _) = told("", "elastic(alpha = learned, gamma = learned)");
    assert_eq!(lines[2], "W' = sign(Z) * max(abs(Z) - gamma, 0)");
    let (lines, why) = told("", "sigmoid(alpha = learned)");
    let expected = ["theta' = logit(W')", "theta' = (1 - alpha) * theta + u", "W = sigmoid(theta)"];
    assert_eq!(lines[1..], expected);
    assert!(why.contains("logit from logarithms"), "{why}");
    let prox = "retention prox(eta: positive = learned) { local(W, P) = sum((W - P)^2) / (2 * eta); }";
    assert!(told(prox, "prox").1.contains("Not 0, since the objective divides by it: eta."));
}
