//! Blocks of tokens on the cpu where blocks go wrong: decays that underflow or reset, systems that grow, a future that
//! is not finite, streams of many blocks.

use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_tests::adapter_or_required;
use miras_tests::compare::difference;
use miras_tests::pipeline::{self, Loaded};
use miras_verify::cut;

const GATED: &str = "memory: matrix; bias: dot; retention: l2(alpha = learned); algo: gd(eta = 1)";
const BY_KEY: &str =
    "memory: matrix; bias: dot; retention: l2(alpha = learned(per = key)); algo: gd(eta = 1)";
const DELTA: &str =
    "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(eta = learned, at = retained)";
const TITANS: &str = "layer x = titans_lmm;";

struct Case {
    loaded: Loaded,
    data: host::Bundle,
    tokens: usize,
}

impl Case {
    fn new(program: &str, tokens: usize, d: usize) -> Case {
        Case::seeded(program, tokens, d, 5)
    }

    fn seeded(program: &str, tokens: usize, d: usize, seed: u64) -> Case {
        let loaded = pipeline::load("layer.miras", program, &Choice::default());
        let loaded = loaded.unwrap_or_else(|e| panic!("{}", pipeline::told(&e)));
        let wanted = host::Synthetic { seed, batch: 1, heads: 1, tokens, dk: d, dv: d, grad: false };
        let data = host::synthetic(&loaded.rule, &wanted).expect("data");
        Case { loaded, data, tokens }
    }

    /// Sets an input of every token, entry by entry, by the token's number; to numbers that float32 has.
    fn set(mut self, name: &str, value: impl Fn(usize) -> f64) -> Case {
        let shape = self.data.get(name).expect("an input").shape.clone();
        let each = shape.iter().product::<usize>() / self.tokens;
        let value = |t: usize| f64::from(value(t) as f32);
        let values = (0..self.tokens).flat_map(|t| std::iter::repeat_n(value(t), each)).collect();
        self.data.insert(name, host::Tensor::f64(shape, values));
        self
    }

    fn run(&mut self, backend: Backend, schedule: ScheduleName, chunk: Option<u32>) -> host::Bundle {
        let asked = Asked { schedule: Some(schedule), chunk, ..pipeline::asked(backend) };
        let finished = self.loaded.run(&self.data, &asked);
        finished.unwrap_or_else(|e| panic!("{}", pipeline::told(&e))).results
    }

    /// The cpu's chunks against the recurrence in float64.
    fn hold(&mut self, chunk: u32, relative: f64) {
        self.hold_on(Backend::Cpu, chunk, relative);
    }

    /// A backend's chunks against the recurrence in float64.
    fn hold_on(&mut self, backend: Backend, chunk: u32, relative: f64) {
        let expected = self.run(Backend::Reference, ScheduleName::Recurrent, None);
        let found = self.run(backend, ScheduleName::Chunked, Some(chunk));
        for name in ["o", "state.memory.W"] {
            let (found, expected) =
                (found.get(name).expect("a result"), expected.get(name).expect("a result"));
            if let Some(what) = difference(found, expected, relative, 0.0) {
                panic!("{backend:?}, chunk {chunk}: `{name}` {what}");
            }
        }
    }
}

#[test]
fn strong_decays_neither_overflow_nor_vanish() {
    for program in [GATED, BY_KEY, DELTA] {
        for (tokens, log) in [(16, -5.6), (64, -1.5), (64, -0.001)] {
            let mut case = Case::new(program, tokens, 8).set("retention.alpha", |_| 1.0 - f64::exp(log));
            case.hold(16, 1e-6);
            case.hold(64, 1e-6);
        }
    }
}

#[test]
fn a_reset_costs_nothing_of_what_follows() {
    for program in [GATED, BY_KEY, DELTA] {
        let keep = |t: usize| if t == 3 { 0.0 } else { f64::exp(-0.01) };
        let mut case = Case::new(program, 256, 8).set("retention.alpha", |t| 1.0 - keep(t));
        case.hold(64, 1e-6);
        let whole = case.run(Backend::Cpu, ScheduleName::Chunked, Some(64));
        case.data = cut::tokens(&case.loaded.rule, &case.data, 256, 3..256);
        let rest = case.run(Backend::Cpu, ScheduleName::Chunked, Some(64));
        let after = cut::along(whole.get("o").expect("answers"), 2, 3..256);
        assert_eq!(difference(rest.get("o").expect("answers"), &after, 1e-6, 0.0), None, "{program}");
    }
}

/// At 1.9 every step overshoots by nine tenths, so that roundings are carried on for some ten tokens.
#[test]
fn triangular_systems_are_substituted() {
    let backends = if adapter_or_required() { vec![Backend::Cpu, Backend::Gpu] } else { vec![Backend::Cpu] };
    for (chunk, eta) in [(64, 0.835), (64, 1.9), (128, 0.835), (128, 1.9)] {
        for (backend, seeds) in backends.iter().zip([5..11, 5..6]) {
            for seed in seeds {
                let mut case = Case::seeded(DELTA, chunk as usize, 64, seed);
                case = case.set("retention.alpha", |_| 1.0 - f64::exp(-0.001));
                case = case.set("algo.eta", |_| eta).set("k", |_| 0.125);
                case.hold_on(*backend, chunk, 1e-6);
            }
        }
    }
}

/// Blocks have 64, 16, 8 and 4 tokens: the future begins at a border of them, and inside.
#[test]
fn a_future_that_overflows_leaves_the_past_as_it_was() {
    const LIBRARY: [&str; 5] = ["rwkv7", "deltaproduct", "longhorn", "dfw", "yaad"];
    let library = LIBRARY.map(|name| format!("layer x = {name};"));
    for program in [GATED, BY_KEY, DELTA, TITANS].into_iter().chain(library.iter().map(String::as_str)) {
        for past in [40, 41, 43] {
            the_future_leaves(program, past);
        }
    }
}

fn the_future_leaves(program: &str, past: usize) {
    let mut case = Case::new(program, 64, 16);
    let before = case.run(Backend::Cpu, ScheduleName::Chunked, Some(64));
    for name in ["q", "k", "v"] {
        let tensor = case.data.get(name).expect("an input");
        let at = past * tensor.shape[2] / 64;
        let (kept, mut rest) = (cut::along(tensor, 2, 0..at), cut::along(tensor, 2, at..tensor.shape[2]));
        let huge = rest.f64s().unwrap_or_default().iter().map(|x| 1e38 * x.signum()).collect();
        rest = host::Tensor::f64(rest.shape.clone(), huge);
        case.data.insert(name, cut::joined(&kept, &rest, 2));
    }
    let after = case.run(Backend::Cpu, ScheduleName::Chunked, Some(64));
    let kept = |o: &host::Bundle| cut::along(o.get("o").expect("answers"), 2, 0..past);
    let bits =
        |t: &host::Tensor| t.f64s().unwrap_or_default().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&kept(&before)), bits(&kept(&after)), "{program}, {past} tokens");
    let last = after.get("o").and_then(|o| o.f64s().map(|x| x.iter().any(|x| !x.is_finite())));
    assert_eq!(last, Some(true), "{program}: the future does overflow");
}

#[test]
fn many_blocks_and_one_token_more() {
    let mut case = Case::new(GATED, 65_537, 2);
    let one = case.run(Backend::Cpu, ScheduleName::Recurrent, None);
    let many = case.run(Backend::Cpu, ScheduleName::Chunked, None);
    for name in ["o", "state.memory.W"] {
        let (a, b) = (many.get(name).expect("a result"), one.get(name).expect("a result"));
        assert_eq!(difference(a, b, 1e-5, 0.0), None, "{name}");
    }
}
