//! One semantics (docs/mathematics.md): pieces with the state handed on, tokens one by one, packed streams and
//! whole ones agree, for every class, gradients included.

use miras_base::SourceMap;
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use std::collections::BTreeMap;
use std::sync::Arc;

const TOKENS: usize = 11;
const CHUNK: host::Schedule = host::Schedule::Chunked(4);

/// At least one layer of each class and of each way to read inside a chunk.
const LAYERS: [&str; 20] = [
    "memory: matrix; bias: dot; retention: l2(alpha = learned(per = key)); algo: gd(eta = 1)",
    "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(eta = learned, at = retained)",
    "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: multi(n = 2, eta = learned)",
    "memory: matrix; bias: l2; retention: none; algo: newton(ridge = 0.5)",
    "memory: mlp(2, expand = 2); bias: l2; retention: l2(alpha = learned); algo: momentum",
    "memory: mlp(2, expand = 2); bias: huber(delta = learned); retention: kl(alpha = learned, mass = 4); algo: gd",
    "memory: matrix; bias: huber(delta = learned); retention: elastic; algo: gd",
    "memory: matrix; bias: l2; retention: elastic_lazy(gamma = 0.02); algo: gd",
    "memory: matrix; bias: l2; retention: elastic_smooth; algo: gd",
    "memory: matrix; bias: l2; retention: lq(4, alpha = learned); algo: gd",
    "memory: matrix; bias: l2; retention: lq_exact(1.5); algo: gd",
    "memory: matrix; bias: l2; retention: sigmoid; algo: gd",
    "memory: matrix; bias: l2; retention: ball(radius = 1.5); algo: momentum",
    "memory: matrix; bias: huber(delta = 0.1); retention: l2; algo: multi(n = 2)",
    "memory: matrix; bias: huber(delta = 0.1); retention: l2; algo: gd(at = retained); read: before",
    "fn chi2(t) = (t - 1)^2 / 2; memory: matrix; bias: l2; retention: fdiv(f = chi2, mass = 2); algo: gd",
    "memory: cache; bias: l2; retention: none; algo: nonparametric",
    "memory: cache; bias: l2; retention: none; algo: nonparametric(window = 3)",
    "memory: matrix; bias: l2; retention: elastic_lazy; algo: gd",
    "input p: positive; memory: matrix; bias: l2; retention: lq(q = 2 + p); algo: momentum",
];

fn rule(text: &str) -> rule::UpdateRule {
    let mut sources = SourceMap::new();
    let root = sources.add("layer.miras", text);
    let mut nothing = |path: &str| Err(format!("no file {path}"));
    let library = spec::Library::standard();
    let (program, _) = spec::Program::load(&mut sources, root, &library, &mut nothing);
    let (layer, _) = program.elaborate(&mut sources, None, &[]).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    rule::derive(layer).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

/// Valid inputs for two rows and two heads, in float64.
fn inputs(rule: &rule::UpdateRule, batch: usize, tokens: usize) -> host::Bundle {
    let sizes = host::Synthetic { seed: 7, batch, heads: 2, tokens, dk: 3, dv: 3, grad: true };
    let bundle = host::synthetic(rule, &sizes).unwrap();
    let mut wide = host::Bundle::new();
    for (name, tensor) in bundle.iter() {
        // A threshold of the size of the weights would leave nothing to compare.
        let scale = if name == "retention.gamma" { 0.01 } else { 1.0 };
        let values = tensor.f64s().unwrap().iter().map(|x| scale * x).collect();
        wide.insert(name, host::Tensor::f64(tensor.shape.clone(), values));
    }
    wide
}

fn run(rule: &rule::UpdateRule, inputs: &host::Bundle, schedule: host::Schedule, grad: bool) -> host::Bundle {
    let options = host::BindOptions { schedule, grad, allow_extra: true, ..host::BindOptions::default() };
    let bound = host::bind(rule, inputs, &options)
        .unwrap_or_else(|e| panic!("{}: {e:?}", rule.layer.choices[2].text));
    miras_reference::run(rule, &bound).unwrap_or_else(|e| panic!("{}: {e:?}", rule.layer.choices[2].text))
}

/// Entries per token along the third axis of an input, if it has that axis.
fn entries(rule: &rule::UpdateRule, name: &str) -> Option<usize> {
    let repeats = rule.layer.repeats() as usize;
    match name {
        "q" | "grad.o" => Some(1),
        "k" | "v" => Some(repeats),
        _ => rule.layer.params.iter().find(|p| p.tensor == name).and_then(|p| match p.source {
            spec::Source::Learned(_) | spec::Source::Input => Some(if p.repeated { repeats } else { 1 }),
            spec::Source::Trained(_) | spec::Source::Slow(_) => None,
        }),
    }
}

/// Entries `first..last` along an axis.
fn slice(tensor: &host::Tensor, axis: usize, first: usize, last: usize) -> host::Tensor {
    let inner: usize = tensor.shape[axis + 1..].iter().product();
    let length = tensor.shape[axis];
    let mut shape = tensor.shape.clone();
    shape[axis] = last - first;
    let outer: usize = tensor.shape[..axis].iter().product();
    let data = tensor.f64s().unwrap();
    let part = |o: usize| data[(o * length + first) * inner..(o * length + last) * inner].to_vec();
    host::Tensor::f64(shape, (0..outer).flat_map(part).collect())
}

/// The inputs of tokens `first..last`; what has no time axis is kept.
fn piece(rule: &rule::UpdateRule, inputs: &host::Bundle, first: usize, last: usize) -> host::Bundle {
    let mut part = host::Bundle::new();
    for (name, tensor) in inputs.iter() {
        match entries(rule, name) {
            Some(n) => part.insert(name, slice(tensor, 2, first * n, last * n)),
            None => part.insert(name, tensor.clone()),
        }
    }
    part
}

/// Adds an earlier run's state, in place of initial weights.
fn hand_on(inputs: &mut host::Bundle, earlier: &host::Bundle) {
    for (name, tensor) in earlier.iter().filter(|(name, _)| name.starts_with("state.")) {
        inputs.insert(name, tensor.clone());
        if let Some(weight) = name.strip_prefix("state.memory.") {
            inputs.remove(&format!("memory.{weight}"));
        }
    }
}

#[track_caller]
fn close(what: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{what}");
    let size = b.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-11 * size + 1e-13, "{what}: {x} against {y}");
    }
}

fn floats(tensor: &host::Tensor) -> Vec<f64> {
    tensor.f64s().map(|x| x.into_owned()).unwrap_or_default()
}

/// Runs pieces one after another forwards, then backwards with each piece's state cotangents, and
/// compares everything with the whole.
fn compare_split(
    text: &str,
    rule: &rule::UpdateRule,
    inputs: &host::Bundle,
    schedule: host::Schedule,
    cuts: &[usize],
) {
    let whole = run(rule, inputs, schedule, true);
    let mut states: Vec<host::Bundle> = vec![host::Bundle::new()];
    let spans: Vec<(usize, usize)> = cuts.windows(2).map(|w| (w[0], w[1])).collect();
    let part = |states: &[host::Bundle], n: usize| {
        let mut part = piece(rule, inputs, spans[n].0, spans[n].1);
        hand_on(&mut part, &states[n]);
        part
    };
    for (n, (first, last)) in spans.iter().enumerate() {
        let found = run(rule, &part(&states, n), schedule, false);
        let expected = slice(whole.get("o").unwrap(), 2, *first, *last);
        close(
            &format!("{text} {schedule:?} {cuts:?}: o of piece {n}"),
            &floats(found.get("o").unwrap()),
            &floats(&expected),
        );
        states.push(found);
    }
    for (name, tensor) in whole.iter().filter(|(name, _)| name.starts_with("state.")) {
        let found = states.last().unwrap().get(name).unwrap_or_else(|| panic!("{text}: no {name}"));
        assert_eq!(found.i64s(), tensor.i64s(), "{text}: {name}");
        close(&format!("{text} {schedule:?} {cuts:?}: {name}"), &floats(found), &floats(tensor));
    }
    let mut later: BTreeMap<String, host::Tensor> = BTreeMap::new();
    let mut once: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (n, (first, last)) in spans.iter().enumerate().rev() {
        let mut part = part(&states, n);
        for (name, cotangent) in &later {
            part.insert(name.clone(), cotangent.clone());
        }
        let found = run(rule, &part, schedule, true);
        later.clear();
        for (name, gradient) in found.iter().filter_map(|(name, t)| Some((name.strip_prefix("d.")?, t))) {
            if name.starts_with("state.") {
                later.insert(format!("grad.{name}"), gradient.as_ref().clone());
            } else if let Some(entries) = entries(rule, name) {
                let expected =
                    slice(whole.get(&format!("d.{name}")).unwrap(), 2, first * entries, last * entries);
                close(
                    &format!("{text} {schedule:?} {cuts:?}: d.{name} of piece {n}"),
                    &floats(gradient),
                    &floats(&expected),
                );
            } else {
                let sum = once.entry(name.to_string()).or_insert_with(|| vec![0.0; gradient.len()]);
                sum.iter_mut().zip(floats(gradient)).for_each(|(s, g)| *s += g);
            }
        }
    }
    for (name, sum) in once {
        close(
            &format!("{text} {schedule:?} {cuts:?}: d.{name}"),
            &sum,
            &floats(whole.get(&format!("d.{name}")).unwrap()),
        );
    }
}

#[test]
fn pieces_with_the_state_handed_on_are_the_whole() {
    for text in LAYERS {
        let rule = rule(text);
        let inputs = inputs(&rule, 2, TOKENS);
        for schedule in [host::Schedule::Recurrent, CHUNK] {
            for cut in [0, 1, 3, 4, 6, 8, 11] {
                compare_split(text, &rule, &inputs, schedule, &[0, cut, TOKENS]);
            }
            compare_split(text, &rule, &inputs, schedule, &[0, 2, 3, 9, TOKENS]);
            compare_split(text, &rule, &inputs, schedule, &(0..=TOKENS).collect::<Vec<usize>>());
        }
    }
}

#[test]
fn packed_streams_are_separate_ones_to_the_bit() {
    for text in LAYERS {
        let rule = rule(text);
        let inputs = inputs(&rule, 1, TOKENS);
        let cuts: [i64; 6] = [0, 3, 3, 7, 8, 11];
        let mut packed = inputs.clone();
        packed.insert("segments", host::Tensor::i64(vec![6], cuts.to_vec()));
        for schedule in [host::Schedule::Recurrent, CHUNK] {
            let together = run(&rule, &packed, schedule, true);
            for (n, pair) in cuts.windows(2).enumerate() {
                let (first, last) = (pair[0] as usize, pair[1] as usize);
                let alone = run(&rule, &piece(&rule, &inputs, first, last), schedule, true);
                for name in ["o", "d.q"] {
                    let part = slice(together.get(name).unwrap(), 2, first, last);
                    assert_eq!(
                        &part,
                        alone.get(name).unwrap().as_ref(),
                        "{text} {schedule:?}: {name} of segment {n}"
                    );
                }
                for (name, tensor) in alone.iter().filter(|(name, _)| name.starts_with("state.memory.")) {
                    let row = slice(together.get(name).unwrap(), 0, n, n + 1);
                    assert_eq!(&row, tensor.as_ref(), "{text} {schedule:?}: {name} of segment {n}");
                }
            }
        }
    }
}

#[test]
fn packed_caches_lie_end_to_end_and_go_on() {
    for text in &LAYERS[16..18] {
        let rule = rule(text);
        let inputs = inputs(&rule, 1, TOKENS);
        let part = |cuts: &[i64], first, last| {
            let mut part = piece(&rule, &inputs, first, last);
            part.insert("segments", host::Tensor::i64(vec![cuts.len()], cuts.to_vec()));
            part
        };
        let whole = run(&rule, &part(&[0, 4, 11], 0, 11), host::Schedule::Recurrent, false);
        // The first two tokens of both streams, then the rest of both.
        let gather = |ranges: [(usize, usize); 2], cuts: &[i64]| {
            let mut both = host::Bundle::new();
            let parts = ranges.map(|(a, b)| piece(&rule, &inputs, a, b));
            for (name, tensor) in parts[0].iter() {
                let pair = [tensor.as_ref(), parts[1].get(name).unwrap()];
                both.insert(
                    name,
                    if entries(&rule, name).is_some() { join(pair) } else { tensor.as_ref().clone() },
                );
            }
            both.insert("segments", host::Tensor::i64(vec![cuts.len()], cuts.to_vec()));
            both
        };
        let first = run(&rule, &gather([(0, 2), (4, 6)], &[0, 2, 4]), host::Schedule::Recurrent, false);
        let mut rest = gather([(2, 4), (6, 11)], &[0, 2, 7]);
        hand_on(&mut rest, &first);
        let second = run(&rule, &rest, host::Schedule::Recurrent, false);
        for name in ["state.cache.k", "state.cache.v"] {
            close(name, &floats(second.get(name).unwrap()), &floats(whole.get(name).unwrap()));
        }
        let cuts =
            |bundle: &host::Bundle| bundle.get("state.cache.segments").unwrap().i64s().unwrap().to_vec();
        assert_eq!(cuts(&second), cuts(&whole), "{text}");
        let tail = slice(whole.get("o").unwrap(), 2, 6, 11);
        close(text, &floats(&slice(second.get("o").unwrap(), 2, 2, 7)), &floats(&tail));
    }
}

/// Two tensors end to end along the third axis.
fn join([a, b]: [&host::Tensor; 2]) -> host::Tensor {
    let inner: usize = a.shape[3..].iter().product();
    let (m, n) = (a.shape[2] * inner, b.shape[2] * inner);
    let (x, y) = (floats(a), floats(b));
    let rows = a.shape[0] * a.shape[1];
    let data = (0..rows).flat_map(|r| [&x[r * m..(r + 1) * m], &y[r * n..(r + 1) * n]].concat()).collect();
    let mut shape = a.shape.clone();
    shape[2] += b.shape[2];
    host::Tensor::f64(shape, data)
}

#[test]
fn the_future_and_other_rows_do_not_reach_the_past() {
    for text in LAYERS {
        let rule = rule(text);
        let inputs = inputs(&rule, 2, TOKENS);
        let mut changed = inputs.clone();
        for name in ["q", "k", "v"] {
            let mut tensor = inputs.get(name).unwrap().as_ref().clone();
            let late = tensor.len() / 4 - tensor.len() / (4 * TOKENS);
            if let host::Data::F64(x) = &mut tensor.data {
                // The last token of the first head of the first row.
                x[late..late + 1].iter_mut().for_each(|x| *x += 0.5);
            }
            changed.insert(name, tensor);
        }
        for schedule in [host::Schedule::Recurrent, CHUNK] {
            let [a, b] = [&inputs, &changed].map(|i| run(&rule, i, schedule, false));
            let (a, b) = (a.get("o").unwrap(), b.get("o").unwrap());
            assert_ne!(a, b, "{text}: the change has no effect at all");
            assert_eq!(slice(a, 2, 0, TOKENS - 1), slice(b, 2, 0, TOKENS - 1), "{text} {schedule:?}");
            assert_eq!(slice(a, 0, 1, 2), slice(b, 0, 1, 2), "{text} {schedule:?}");
        }
    }
}

#[test]
fn chunks_of_one_token_are_the_recurrence() {
    for text in LAYERS {
        // Here a chunk's gradients are at other weights than the recurrence's, even for one token: not at
        // the retained ones, or not at those of the steps before.
        if text.contains("huber") && (text.contains("multi") || text.contains("at = retained")) {
            continue;
        }
        let rule = rule(text);
        let inputs = inputs(&rule, 1, 5);
        let [a, b] =
            [host::Schedule::Recurrent, host::Schedule::Chunked(1)].map(|s| run(&rule, &inputs, s, true));
        for (name, tensor) in a.iter().filter(|(name, _)| *name == "o" || name.starts_with("state.")) {
            close(&format!("{text}: {name}"), &floats(b.get(name).unwrap()), &floats(tensor));
        }
    }
}

#[test]
fn a_long_stream_needs_memory_for_its_tokens_only() {
    let rule = rule(LAYERS[0]);
    let mut inputs = inputs(&rule, 1, 1);
    let tokens = 65_537;
    for (name, d) in [("q", 3), ("k", 3), ("v", 3), ("retention.alpha", 3), ("grad.o", 3)] {
        let data = (0..2 * tokens * d).map(|i| 0.5 + 0.4 * (i as f64).sin()).collect();
        inputs.insert(name, host::Tensor::f64(vec![1, 2, tokens, d], data));
    }
    let found = run(&rule, &inputs, CHUNK, true);
    let last: Arc<host::Tensor> = found.get("state.position").unwrap().clone();
    assert_eq!(last.i64s(), Some([tokens as i64].as_slice()));
    assert!(floats(found.get("d.v").unwrap()).iter().all(|x| x.is_finite()));
}

#[test]
fn a_chunk_that_began_with_a_gate_is_not_continued_without_its_start() {
    let rule = rule("memory: matrix; bias: l2; retention: elastic_lazy; algo: gd");
    let inputs = inputs(&rule, 1, TOKENS);
    let first = run(&rule, &piece(&rule, &inputs, 0, 6), CHUNK, false);
    let mut rest = piece(&rule, &inputs, 6, TOKENS);
    hand_on(&mut rest, &first);
    assert!(rest.remove("state.anchor.start.W").is_some());
    let options = host::BindOptions { schedule: CHUNK, allow_extra: true, ..host::BindOptions::default() };
    let refused = host::bind(&rule, &rest, &options).unwrap_err();
    assert!(refused[0].message.contains("`state.anchor.start.W` is missing"), "{refused:?}");
}
