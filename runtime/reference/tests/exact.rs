//! Rules whose numbers are known exactly, built by hand: nothing here depends on the language, on the
//! derivation or on files.

use miras_base::scalar::Fn1;
use miras_base::{Dim, DimEnv};
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use miras_term as term;
use std::collections::BTreeMap;
use std::sync::Arc;
use term::{Role, Shape, TermId, Terms, VarId};

/// What varies between the rules below.
#[derive(Clone, Copy)]
struct Choice {
    /// 1/2 |y - v|^2, or -<y, v>.
    quadratic: bool,
    /// The gradient is taken at what retention makes of the weights.
    at_retained: bool,
    /// S' = S / 2 + u.
    momentum: bool,
    kind: rule::ClassKind,
}

const LINEAR: Choice =
    Choice { quadratic: false, at_retained: false, momentum: false, kind: rule::ClassKind::Linear };
const DELTA: Choice = Choice { quadratic: true, kind: rule::ClassKind::Delta, ..LINEAR };
const GATED: Choice = Choice { at_retained: true, ..DELTA };
const MOMENTUM: Choice = Choice { momentum: true, kind: rule::ClassKind::General, ..DELTA };

struct Vars {
    weight: VarId,
    gate: VarId,
    eta: VarId,
    update: VarId,
    retained: VarId,
    gradient: VarId,
    state: [VarId; 2],
}

/// W' = gate * W + u with u = -eta g (or momentum of it); reads W q.
fn layer(choice: Choice) -> rule::UpdateRule {
    let mut t = Terms::new();
    let (dk, dv) = (Shape::vector(Dim::dk()), Shape::vector(Dim::dv()));
    let matrix = Shape::matrix(Dim::dv(), Dim::dk());
    let mut var = |name: &str, role, shape: &Shape| t.add_var(name, role, shape.clone(), None);
    let query = var("q", Role::Query, &dk);
    let key = var("k", Role::Key, &dk);
    let value = var("v", Role::Value, &dv);
    let argument = var("x", Role::ReadArgument, &dk);
    let answer = var("y", Role::Answer, &dv);
    let vars = Vars {
        weight: var("W", Role::Weight(0), &matrix),
        gate: var("keep", Role::Parameter(0), &Shape::scalar()),
        eta: var("eta", Role::Parameter(1), &Shape::scalar()),
        update: var("u", Role::Update(0), &matrix),
        retained: var("R", Role::Retained(0), &matrix),
        gradient: var("g", Role::Gradient { point: 0, weight: 0 }, &matrix),
        state: [var("S", Role::State(0), &matrix), var("S'", Role::NewState(0), &matrix)],
    };
    let new_weight = var("W'", Role::NewWeight(0), &matrix);
    let [w, x, y, v] = [vars.weight, argument, answer, value].map(|v| t.use_var(v));
    let read = t.matmul(w, x).unwrap();
    let loss = loss(&mut t, choice, y, v);
    let algo = algo(&mut t, choice, &vars, &matrix);
    let retained = retained(&mut t, &vars);
    let params = [("retention.keep", vars.gate), ("algo.eta", vars.eta)].map(|(tensor, var)| spec::Param {
        tensor: tensor.into(),
        var,
        kind: spec::Kind::Real,
        source: spec::Source::Learned(spec::Per::Token),
        repeated: false,
        span: None,
        asked_by: String::new(),
    });
    let zero = t.fill(0.0, matrix.clone());
    let weight = spec::Weight {
        name: "W".into(),
        display: "W".into(),
        var: vars.weight,
        shape: matrix.clone(),
        start: Some(zero),
        span: None,
    };
    let clause = |clause| spec::Choice {
        clause,
        definition: String::new(),
        text: String::new(),
        span: None,
        definition_span: None,
        about: Vec::new(),
        arguments: Vec::new(),
        body: String::new(),
    };
    let form = spec::Form::DeclaredMap { next: retained.advance };
    let layer = spec::Layer {
        name: "hand".into(),
        span: None,
        terms: t,
        query,
        key,
        value,
        params: params.to_vec(),
        memory: spec::Memory { weights: vec![weight], argument, read: Some(read), history: false },
        bias: spec::Bias { answer, loss, slope: None, slope_span: None },
        retention: vec![spec::Retention { new_weight, update: vars.update, form, newton: None, span: None }],
        algo: spec::Algo::Step(algo),
        choices: ["memory", "bias", "retention", "algo"].map(clause),
        read_before: false,
        chunk: 4,
        constraints: Vec::new(),
        ranges: Vec::new(),
    };
    rule::UpdateRule {
        layer,
        slope: None,
        gradients: Vec::new(),
        retention: vec![retained],
        answer: None,
        class: rule::Class { kind: choice.kind, reason: String::new(), corrections: 0 },
        derivation: rule::Derivation::default(),
        warnings: Vec::new(),
    }
}

fn loss(t: &mut Terms, choice: Choice, y: TermId, v: TermId) -> TermId {
    if !choice.quadratic {
        let dot = t.dot(y, v).unwrap();
        return t.neg(dot).unwrap();
    }
    let (half, e) = (t.num(0.5), t.sub(y, v).unwrap());
    let square = t.dot(e, e).unwrap();
    t.mul(half, square).unwrap()
}

fn algo(t: &mut Terms, choice: Choice, vars: &Vars, matrix: &Shape) -> spec::Step {
    let [w, retained, g, eta] = [vars.weight, vars.retained, vars.gradient, vars.eta].map(|v| t.use_var(v));
    let step = t.mul(eta, g).unwrap();
    let mut direction = t.fn1(Fn1::Neg, step).unwrap();
    let mut states = Vec::new();
    if choice.momentum {
        let (half, old, new) = (t.num(0.5), t.use_var(vars.state[0]), t.use_var(vars.state[1]));
        let decayed = t.mul(half, old).unwrap();
        let next = t.add(decayed, direction).unwrap();
        let start = t.fill(0.0, matrix.clone());
        let [old, new_var] = vars.state;
        states.push(spec::State { name: "S.W".into(), old, new: new_var, start, next, span: None });
        direction = new;
    }
    let at = if choice.at_retained { retained } else { w };
    let point = spec::Point { at: vec![at], gradients: vec![vars.gradient] };
    spec::Step {
        repeats: 1,
        points: vec![point],
        retained: vec![vars.retained],
        states,
        direction: vec![direction],
        span: None,
    }
}

fn retained(t: &mut Terms, vars: &Vars) -> rule::Retained {
    let [w, gate, u] = [vars.weight, vars.gate, vars.update].map(|v| t.use_var(v));
    let kept = t.mul(gate, w).unwrap();
    rule::Retained {
        carried: vars.weight,
        update: vars.update,
        start: None,
        initial: rule::InitialDomain::Any,
        advance: t.add(kept, u).unwrap(),
        linear: Some(rule::Linear { keep: gate, write: None, shift: None }),
        value: None,
        finish: None,
        retained: Some(kept),
        inside: rule::Inside::Identity,
    }
}

const K: [f64; 8] = [0.6, 0.8, 1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
const V: [f64; 8] = [1.0, -2.0, 0.0, 1.0, 2.0, 2.0, -1.0, 0.5];
const Q: [f64; 8] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.6, -0.8];

/// Four tokens of one head with the keys, values and queries above.
fn bound(rule: &rule::UpdateRule, keep: [f64; 4], eta: [f64; 4], schedule: host::Schedule) -> host::Bound {
    let tensor = |shape: &[usize], data: &[f64]| Arc::new(host::Tensor::f64(shape.to_vec(), data.to_vec()));
    let values = [keep, eta];
    let params = rule.layer.params.iter().zip(values).map(|(param, values)| host::BoundParam {
        var: param.var,
        layout: host::Layout::PerToken { entries: 1 },
        shape: Vec::new(),
        values: tensor(&[1, 1, 4], &values),
        given: true,
    });
    let spec::Algo::Step(step) = &rule.layer.algo else { panic!("built with steps") };
    let start = || Some(tensor(&[1, 2, 2], &[0.0; 4]));
    let state = |_: &spec::State| host::BoundState { shape: vec![2, 2], initial: start(), carried: None };
    let weight = host::BoundWeight {
        shape: vec![2, 2],
        initial: start(),
        given: false,
        carried: None,
        anchor: None,
        remembered: BTreeMap::new(),
    };
    let names = ["q", "k", "v"].map(|name| (name.to_string(), vec![1, 1, 4, 2]));
    let gates = ["retention.keep", "algo.eta"].map(|name| (name.to_string(), vec![1, 1, 4]));
    host::Bound {
        width: host::Width::F64,
        schedule,
        batch: 1,
        heads: 1,
        tokens: 4,
        repeats: 1,
        dims: DimEnv::from([(Arc::from("dk"), 2), (Arc::from("dv"), 2)]),
        layer: (0, 1),
        streams: vec![host::Stream { row: 0, first: 0, last: 4, position: 0 }],
        packed: false,
        query: tensor(&[1, 1, 4, 2], &Q),
        key: tensor(&[1, 1, 4, 2], &K),
        value: tensor(&[1, 1, 4, 2], &V),
        params: params.collect(),
        weights: vec![weight],
        states: step.states.iter().map(state).collect(),
        cache: None,
        continued: false,
        cotangents: Some(host::Cotangents {
            output: tensor(&[1, 1, 4, 2], &[1.0; 8]),
            states: BTreeMap::new(),
        }),
        given: [names.to_vec(), gates.to_vec()].concat(),
        notes: Vec::new(),
    }
}

fn run(choice: Choice, keep: [f64; 4], eta: [f64; 4], schedule: host::Schedule) -> host::Bundle {
    let rule = layer(choice);
    miras_reference::run(&rule, &bound(&rule, keep, eta, schedule)).unwrap()
}

fn check(results: &host::Bundle, name: &str, expected: &[f64]) {
    let found = results.get(name).unwrap_or_else(|| panic!("no {name}")).f64s().unwrap().into_owned();
    assert_eq!(found.len(), expected.len(), "{name}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{name}: {found:?}, expected {expected:?}");
    }
}

const KEEP: [f64; 4] = [1.0, 0.5, 0.0, 0.75];
const ETA: [f64; 4] = [0.5, 1.0, 0.75, 2.0];

#[test]
fn linear_attention() {
    for schedule in [host::Schedule::Recurrent, host::Schedule::Chunked(3)] {
        let results = run(LINEAR, [1.0; 4], [1.0; 4], schedule);
        check(&results, "state.memory.W", &[9.0 / 5.0, 7.0 / 5.0, 1.0, 0.5]);
        check(&results, "o", &[0.6, -1.2, 0.8, -1.6, 4.2, 1.0, -0.04, 0.2]);
    }
}

#[test]
fn delta_rule() {
    for schedule in [host::Schedule::Recurrent, host::Schedule::Chunked(2)] {
        let results = run(DELTA, [1.0; 4], ETA, schedule);
        check(&results, "state.memory.W", &[189.0 / 250.0, -426.0 / 125.0, 959.0 / 500.0, 72.0 / 125.0]);
        check(&results, "o", &[0.3, -0.6, 0.4, -0.8, 541.0 / 250.0, 1171.0 / 500.0, 159.0 / 50.0, 0.69]);
    }
}

#[test]
fn gated_delta_rule_at_the_retained_weights() {
    let results = run(GATED, KEEP, ETA, host::Schedule::Recurrent);
    check(&results, "state.memory.W", &[27.0 / 40.0, -2.9, 27.0 / 40.0, 0.1]);
    check(&results, "o", &[0.3, -0.6, 0.2, -0.4, 2.1, 2.1, 109.0 / 40.0, 13.0 / 40.0]);
}

#[test]
fn momentum_recurrent_and_with_frozen_gradients() {
    let (keep, eta) = ([1.0, 0.75, 0.0, 0.5], [0.5; 4]);
    let results = run(MOMENTUM, keep, eta, host::Schedule::Recurrent);
    check(&results, "state.memory.W", &[879.0 / 2000.0, -0.157, 1.081, 0.704]);
    check(&results, "state.algo.S.W", &[879.0 / 4000.0, -0.5, 1081.0 / 2000.0, 0.25]);
    let results = run(MOMENTUM, keep, eta, host::Schedule::Chunked(4));
    check(&results, "state.memory.W", &[27.0 / 40.0, 0.4, 0.7, 0.85]);
    assert!(results.get("state.anchor.W").is_none());
    let open = run(MOMENTUM, keep, eta, host::Schedule::Chunked(5));
    check(&open, "state.memory.W", &[27.0 / 40.0, 0.4, 0.7, 0.85]);
    check(&open, "state.anchor.W", &[0.0; 4]);
}

#[test]
fn chunks_of_one_token_are_the_recurrence() {
    let (keep, eta) = ([1.0, 0.75, 0.0, 0.5], [0.5; 4]);
    let [a, b] = [host::Schedule::Recurrent, host::Schedule::Chunked(1)].map(|s| run(MOMENTUM, keep, eta, s));
    for name in
        ["o", "state.memory.W", "state.algo.S.W", "d.q", "d.k", "d.v", "d.retention.keep", "d.algo.eta"]
    {
        assert_eq!(a.get(name), b.get(name), "{name}");
    }
}

#[test]
fn a_reset_lets_no_gradient_through() {
    let results = run(LINEAR, KEEP, ETA, host::Schedule::Recurrent);
    let before = results.get("d.v").unwrap().f64s().unwrap().into_owned();
    let ones = run(LINEAR, [1.0; 4], ETA, host::Schedule::Recurrent);
    let without = ones.get("d.v").unwrap().f64s().unwrap().into_owned();
    // keep = 0 at the third token: only the reads before it see the first two values.
    assert!((before[0] - 0.5 * (0.6 + 0.5 * 0.8)).abs() < 1e-15, "{before:?}");
    assert!(before[0] < without[0], "{before:?} {without:?}");
}

#[test]
fn gradients_are_those_of_differences() {
    for (choice, schedule) in [(GATED, host::Schedule::Recurrent), (MOMENTUM, host::Schedule::Chunked(3))] {
        let total = |keep, eta| -> f64 {
            let results = run(choice, keep, eta, schedule);
            results.get("o").unwrap().f64s().unwrap().iter().sum()
        };
        let results = run(choice, KEEP, ETA, schedule);
        for n in 0..4 {
            let moved = |by: f64| {
                let (mut keep, mut eta) = (KEEP, ETA);
                keep[n] += by;
                eta[n] -= 2.0 * by;
                total(keep, eta)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let at = |name: &str| results.get(name).unwrap().at(n).unwrap();
            let found = at("d.retention.keep") - 2.0 * at("d.algo.eta");
            assert!((found - difference).abs() < 1e-8, "token {n}: {found} against {difference}");
        }
    }
}
