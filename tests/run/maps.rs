//! Retention's maps at single points whose images are known, through the public pipeline on both backends: one
//! token writes u into a memory of one row, and as many heads read one entry each.

use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_tests::compare::difference;
use miras_tests::pipeline;

/// Weights (or their dual) `start`, a step `u`, and the weights that come of it.
struct Point {
    retention: &'static str,
    start: &'static [f64],
    u: &'static [f64],
    expected: &'static [f64],
    relative: f64,
}

#[test]
fn kl_moves_along_logits() {
    hold(&Point {
        retention: "kl(alpha = 0.25)",
        start: &[0.7, 0.2, 0.1],
        u: &[-0.5, 0.5, -0.25],
        expected: &[0.4236108145, 0.4499979005, 0.126391285],
        relative: 1e-9,
    });
}

/// The fifth entry ends exactly on the threshold.
#[test]
fn elastic_shrinks_towards_zero() {
    hold(&Point {
        retention: "elastic(alpha = 0.1, gamma = 0.1)",
        start: &[0.3, -0.05, 0.1, -0.1, 0.0, 2.0],
        u: &[0.0, 0.0, 0.0, 0.0, -0.1, 0.2],
        expected: &[0.17, 0.0, 0.0, 0.0, 0.0, 1.9],
        relative: 1e-12,
    });
}

#[test]
fn lq_scales_by_a_norm_that_neither_vanishes_nor_overflows() {
    let norm = 34.0_f64.sqrt();
    let expected: &'static [f64] = vec![1.0 / norm, -2.0 / norm, 2.0 / norm, 1.0 / norm].leak();
    let lq = "lq(q = 4, alpha = 0)";
    hold(&Point { retention: lq, start: &[1.0, -2.0, 2.0, 1.0], u: &[0.0; 4], expected, relative: 1e-12 });
    // Below the floor of 1e-6 the scale is 1e12.
    let tiny: &[f64] = &[1e-12, -2e-12, 3e-12, 0.0];
    hold(&Point {
        retention: lq,
        start: tiny,
        u: &[0.0; 4],
        expected: &[1.0, -2.0, 3.0, 0.0],
        relative: 1e-9,
    });
    let huge = 17.0_f64.sqrt() * 1e11;
    let expected: &'static [f64] = vec![1.0 / huge, 2.0 / huge].leak();
    hold(&Point { retention: lq, start: &[1e11, 2e11], u: &[0.0; 2], expected, relative: 1e-12 });
    hold(&Point { retention: lq, start: &[0.0; 3], u: &[0.0; 3], expected: &[0.0; 3], relative: 1e-12 });
}

/// W' = (q - 1) N (A / N)^(p - 1) with N the p-norm: p = 11 raises neither an entry nor a norm by itself.
#[test]
fn lq_exact_raises_shares_of_the_norm() {
    for size in [1e-5, 1.0, 1e4, 1e11] {
        let start: &'static [f64] = vec![size, -2.0 * size, 0.0].leak();
        let norm = (1.0 + 2_f64.powi(11)).powf(1.0 / 11.0);
        let image = |share: f64| 0.1 * norm * size * (share / norm).powi(10);
        let expected: &'static [f64] = vec![image(1.0), -image(2.0), 0.0].leak();
        hold(&Point {
            retention: "lq_exact(q = 1.1, alpha = 0)",
            start,
            u: &[0.0; 3],
            expected,
            relative: 1e-9,
        });
    }
}

/// 400 steps away and 400 back: what is carried is the dual, so nothing is lost at the edge of the domain.
#[test]
fn far_and_back() {
    for retention in ["kl(alpha = 0)", "sigmoid(alpha = 0)"] {
        let steps = 800;
        let program = format!("memory: matrix; bias: dot; retention: {retention}; algo: gd(eta = 1)");
        let mut keys = [-0.5, 0.5].repeat(steps / 2);
        keys.extend([0.5, -0.5].repeat(steps / 2));
        let tensor = |shape: &[usize], values: Vec<f64>| host::Tensor::f64(shape, values);
        let data: host::Bundle = [
            ("q", tensor(&[1, 1, steps, 2], [1.0, 0.0].repeat(steps))),
            ("k", tensor(&[1, 1, steps, 2], keys)),
            ("v", tensor(&[1, 1, steps, 1], vec![1.0; steps])),
            ("memory.W", tensor(&[1, 1, 2], vec![0.5, 0.5])),
        ]
        .into_iter()
        .collect();
        for (backend, results) in runs(&program, &data) {
            let o = results.get("o").and_then(|o| o.at(steps - 1)).unwrap_or(f64::NAN);
            assert!((o - 0.5).abs() < 1e-6, "{retention} on {backend:?}: {o}");
        }
    }
}

fn hold(point: &Point) {
    let n = point.start.len();
    let program = format!("memory: matrix; bias: dot; retention: {}; algo: gd(eta = 1)", point.retention);
    let each = |values: &[f64]| values.repeat(n);
    let unit = |i: usize| (0..n).map(move |j| if i == j { 1.0 } else { 0.0 });
    let tensor = |shape: &[usize], values: Vec<f64>| host::Tensor::f64(shape, values);
    let data: host::Bundle = [
        ("q", tensor(&[1, n, 1, n], (0..n).flat_map(unit).collect())),
        ("k", tensor(&[1, n, 1, n], each(point.u))),
        ("v", tensor(&[1, n, 1, 1], vec![1.0; n])),
        ("memory.W", tensor(&[n, 1, n], each(point.start))),
    ]
    .into_iter()
    .collect();
    let expected = tensor(&[1, n, 1, 1], point.expected.to_vec());
    for (backend, results) in runs(&program, &data) {
        let found = results.get("o").expect("a run gives o");
        let wide = backend == Backend::Reference;
        let (relative, absolute) = if wide { (point.relative, 1e-15) } else { (1e-6, 0.0) };
        assert_eq!(
            difference(found, &expected, relative, absolute),
            None,
            "{} on {backend:?}",
            point.retention
        );
    }
}

fn runs(program: &str, data: &host::Bundle) -> Vec<(Backend, host::Bundle)> {
    let mut loaded = pipeline::load("map.miras", program, &Choice::default())
        .unwrap_or_else(|e| panic!("{program}: {}", pipeline::told(&e)));
    let mut run = |backend| {
        let asked = Asked { schedule: Some(ScheduleName::Recurrent), ..pipeline::asked(backend) };
        let finished =
            loaded.run(data, &asked).unwrap_or_else(|e| panic!("{program}: {}", pipeline::told(&e)));
        (backend, finished.results)
    };
    vec![run(Backend::Reference), run(Backend::Cpu)]
}
