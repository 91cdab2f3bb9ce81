//! Rules whose numbers are known exactly, through the public pipeline on both backends.

use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_tests::compare::difference;
use miras_tests::pipeline;

/// k, v and q of four tokens, and their gates.
const KEYS: [f64; 8] = [0.6, 0.8, 1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
const VALUES: [f64; 8] = [1.0, -2.0, 0.0, 1.0, 2.0, 2.0, -1.0, 0.5];
const QUERIES: [f64; 8] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.6, -0.8];
const STEPS: [f64; 4] = [0.5, 1.0, 0.75, 2.0];
/// 1 - keep, with keep = 1, 1/2, 0, 3/4.
const FORGET: [f64; 4] = [0.0, 0.5, 1.0, 0.25];

/// A program with the gates it reads and what must come out.
struct Exact {
    program: &'static str,
    gates: &'static [(&'static str, [f64; 4])],
    expected: &'static [(&'static str, &'static [f64])],
    /// Orders in time that give these numbers.
    orders: &'static [(ScheduleName, Option<u32>)],
}

const ALL: &[(ScheduleName, Option<u32>)] = &[
    (ScheduleName::Recurrent, None),
    (ScheduleName::Chunked, None),
    (ScheduleName::Chunked, Some(1)),
    (ScheduleName::Chunked, Some(2)),
    (ScheduleName::Chunked, Some(3)),
    (ScheduleName::Chunked, Some(4)),
];

#[test]
fn linear_attention() {
    hold(&Exact {
        program: "memory: matrix; bias: dot; retention: none; algo: gd(eta = 1)",
        gates: &[],
        expected: &[
            ("state.memory.W", &[9.0 / 5.0, 7.0 / 5.0, 1.0, 0.5]),
            ("o", &[3.0 / 5.0, -6.0 / 5.0, 4.0 / 5.0, -8.0 / 5.0, 21.0 / 5.0, 1.0, -1.0 / 25.0, 1.0 / 5.0]),
        ],
        orders: ALL,
    });
}

#[test]
fn delta_rule() {
    hold(&Exact {
        program: "memory: matrix; bias: l2; retention: none; algo: gd(eta = learned)",
        gates: &[("algo.eta", STEPS)],
        expected: &[
            ("state.memory.W", &[189.0 / 250.0, -426.0 / 125.0, 959.0 / 500.0, 72.0 / 125.0]),
            (
                "o",
                &[
                    3.0 / 10.0,
                    -3.0 / 5.0,
                    2.0 / 5.0,
                    -4.0 / 5.0,
                    541.0 / 250.0,
                    1171.0 / 500.0,
                    159.0 / 50.0,
                    69.0 / 100.0,
                ],
            ),
        ],
        orders: ALL,
    });
}

#[test]
fn gated_delta_rule_at_the_decayed_memory() {
    hold(&Exact {
        program: "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(eta = learned, at = retained)",
        gates: &[("algo.eta", STEPS), ("retention.alpha", FORGET)],
        expected: &[
            ("state.memory.W", &[27.0 / 40.0, -29.0 / 10.0, 27.0 / 40.0, 1.0 / 10.0]),
            (
                "o",
                &[
                    3.0 / 10.0,
                    -3.0 / 5.0,
                    1.0 / 5.0,
                    -2.0 / 5.0,
                    21.0 / 10.0,
                    21.0 / 10.0,
                    109.0 / 40.0,
                    13.0 / 40.0,
                ],
            ),
        ],
        orders: ALL,
    });
}

/// alpha of the momentum cases; 1 is among them.
const MOMENTUM_FORGET: [f64; 4] = [0.0, 0.25, 1.0, 0.5];
const MOMENTUM: &str =
    "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: momentum(eta = 1/2, mu = 1/2)";

#[test]
fn momentum_token_by_token() {
    hold(&Exact {
        program: MOMENTUM,
        gates: &[("retention.alpha", MOMENTUM_FORGET)],
        expected: &[
            ("state.memory.W", &[879.0 / 2000.0, -157.0 / 1000.0, 1081.0 / 1000.0, 88.0 / 125.0]),
            ("state.algo.S.W", &[879.0 / 4000.0, -0.5, 1081.0 / 2000.0, 0.25]),
        ],
        orders: &[(ScheduleName::Recurrent, None), (ScheduleName::Chunked, Some(1))],
    });
}

#[test]
fn momentum_with_frozen_gradients() {
    hold(&Exact {
        program: MOMENTUM,
        gates: &[("retention.alpha", MOMENTUM_FORGET)],
        expected: &[("state.memory.W", &[27.0 / 40.0, 2.0 / 5.0, 7.0 / 10.0, 17.0 / 20.0])],
        orders: &[(ScheduleName::Chunked, Some(4)), (ScheduleName::Chunked, None)],
    });
}

/// What the limits of the delta rule must be: no forgetting, no step, and a reflection.
#[test]
fn identities_of_the_delta_rule() {
    let gated = "memory: matrix; bias: l2; retention: l2(alpha = 0); algo: gd(eta = learned, at = retained)";
    hold(&Exact {
        program: gated,
        gates: &[("algo.eta", STEPS)],
        expected: &[("state.memory.W", &[189.0 / 250.0, -426.0 / 125.0, 959.0 / 500.0, 72.0 / 125.0])],
        orders: ALL,
    });
    hold(&Exact {
        program: "memory: matrix; bias: l2; retention: none; algo: gd(eta = learned)",
        gates: &[("algo.eta", [0.0; 4])],
        expected: &[("state.memory.W", &[0.0; 4]), ("o", &[0.0; 8])],
        orders: ALL,
    });
}

/// A step of 2 along a unit key turns the memory over at the plane that the key is normal to.
#[test]
fn a_step_of_two_is_a_reflection() {
    let mut data = tokens(&[0.6, 0.8], &[0.0, 0.0], &[1.0, 0.0]);
    data.insert("memory.W", host::Tensor::f64([1, 2, 2], vec![1.0, 0.0, 0.0, 1.0]));
    let exact = Exact {
        program: "memory: matrix; bias: l2; retention: none; algo: gd(eta = 2)",
        gates: &[],
        expected: &[("state.memory.W", &[7.0 / 25.0, -24.0 / 25.0, -24.0 / 25.0, -7.0 / 25.0])],
        orders: ALL,
    };
    hold_on(&exact, &data);
}

/// With orthonormal keys and a step of 1 the delta rule has nothing to correct: it is linear attention.
#[test]
fn orthonormal_keys_give_linear_attention() {
    let data = tokens(&[0.6, 0.8, -0.8, 0.6], &[1.0, -2.0, 0.5, 3.0], &[1.0, 0.0, 0.0, 1.0]);
    for program in [
        "memory: matrix; bias: l2; retention: none; algo: gd(eta = 1)",
        "memory: matrix; bias: dot; retention: none; algo: gd(eta = 1)",
    ] {
        let expected: &[(&str, &[f64])] = &[("state.memory.W", &[0.2, 1.1, -3.6, 0.2])];
        hold_on(&Exact { program, gates: &[], expected, orders: ALL }, &data);
    }
}

fn hold(exact: &Exact) {
    hold_on(exact, &data(exact.gates));
}

fn hold_on(exact: &Exact, data: &host::Bundle) {
    let mut loaded = pipeline::load("exact.miras", exact.program, &Choice::default())
        .unwrap_or_else(|e| panic!("{}: {}", exact.program, pipeline::told(&e)));
    for (backend, relative, absolute) in [(Backend::Reference, 1e-13, 1e-14), (Backend::Cpu, 1e-6, 1e-6)] {
        for (schedule, chunk) in exact.orders.iter().copied() {
            let asked = Asked { schedule: Some(schedule), chunk, ..pipeline::asked(backend) };
            let results = match loaded.run(data, &asked) {
                Ok(finished) => finished.results,
                Err(errors) => panic!("{asked:?}: {}", pipeline::told(&errors)),
            };
            for (name, values) in exact.expected {
                let found = results.get(name).unwrap_or_else(|| panic!("{name} is missing"));
                let expected = host::Tensor::f64(found.shape.clone(), values.to_vec());
                let wrong = difference(found, &expected, relative, absolute);
                assert_eq!(wrong, None, "{name}, {asked:?}");
            }
        }
    }
}

fn data(gates: &[(&str, [f64; 4])]) -> host::Bundle {
    let mut data = tokens(&KEYS, &VALUES, &QUERIES);
    for (name, values) in gates {
        data.insert(*name, host::Tensor::f64([1, 1, 4], values.to_vec()));
    }
    data
}

/// k, v and q of one head, two numbers for each token.
fn tokens(keys: &[f64], values: &[f64], queries: &[f64]) -> host::Bundle {
    let rows = |values: &[f64]| host::Tensor::f64([1, 1, values.len() / 2, 2], values.to_vec());
    [("q", rows(queries)), ("k", rows(keys)), ("v", rows(values))].into_iter().collect()
}
