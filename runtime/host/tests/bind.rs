//! What binding hands on when the data is right.

mod fixture;

use fixture::*;
use miras_host::{BindOptions, Bundle, Layout, Schedule, Tensor, Width, bind, layout};
use miras_rule::{ClassKind, InitialDomain, UpdateRule};
use miras_spec::{Kind, Source};

fn options(width: Width) -> BindOptions {
    BindOptions { width, ..BindOptions::default() }
}

fn names(rule: &UpdateRule, bound: &miras_host::Bound) -> Vec<(String, Vec<usize>)> {
    layout(rule, bound).into_iter().map(|o| (o.name, o.shape)).collect()
}

#[test]
fn sizes_streams_and_defaults() {
    let rule = plain().build();
    let bound = bind(&rule, &plain_inputs(), &BindOptions::default()).unwrap();
    assert_eq!((bound.batch, bound.heads, bound.tokens, bound.repeats), (2, 3, 4, 1));
    assert_eq!((bound.dims["dk"], bound.dims["dv"]), (5, 6));
    assert_eq!(bound.streams.len(), 2);
    assert_eq!((bound.streams[1].row, bound.streams[1].first, bound.streams[1].last), (1, 0, 4));
    let weight = &bound.weights[0];
    assert_eq!(weight.shape, [6, 5]);
    assert!(!weight.given);
    assert_eq!(**weight.initial.as_ref().unwrap(), full(&[3, 6, 5], 0.0));
    let given: Vec<&str> = bound.given.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(given, ["q", "k", "v", "retention.alpha", "algo.eta", "bias.delta"]);
    let expected: Vec<(String, Vec<usize>)> = [
        ("o", vec![2, 3, 4, 6]),
        ("state.memory.W", vec![2, 3, 6, 5]),
        ("state.position", vec![2]),
        ("state.chunk", vec![1]),
    ]
    .map(|(n, s)| (n.to_string(), s))
    .to_vec();
    assert_eq!(names(&rule, &bound), expected);
}

#[test]
fn floats_have_the_width_of_the_backend_and_are_shared_where_they_have_it_already() {
    let rule = plain().build();
    let mut inputs = plain_inputs();
    let odd = 0.1_f32;
    inputs.insert("q", Tensor::f32([2, 3, 4, 5], vec![odd; 120]));
    let narrow = bind(&rule, &inputs, &options(Width::F32)).unwrap();
    assert!(std::sync::Arc::ptr_eq(&narrow.query, inputs.get("q").unwrap()));
    assert_eq!(narrow.key.width(), Some(Width::F32));
    assert_eq!(narrow.weights[0].initial.as_ref().unwrap().width(), Some(Width::F32));
    let wide = bind(&rule, &inputs, &options(Width::F64)).unwrap();
    assert_eq!(wide.query.at(7), Some(f64::from(odd)), "widened, not re-read as decimal");
}

#[test]
fn no_tokens_is_legal() {
    let rule = plain().build();
    let mut inputs = Bundle::new();
    for (name, last) in [("q", Some(5)), ("k", Some(5)), ("v", Some(6)), ("bias.delta", Some(6))] {
        inputs.insert(name, full(&[&[2, 3, 0], last.as_slice()].concat(), 0.0));
    }
    inputs.insert("retention.alpha", full(&[2, 3, 0], 0.0));
    inputs.insert("algo.eta", full(&[2, 3, 0], 0.0));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    assert!(bound.streams.iter().all(|s| s.is_empty()));
    assert_eq!(bound.carried_at_start(&rule, 0, 0).unwrap()[0].data, vec![0.0; 30]);
}

#[test]
fn packed_segments_are_streams_with_states_of_their_own() {
    let rule = plain().build();
    let mut inputs = Bundle::new();
    for (name, last) in [("q", 5), ("k", 5), ("v", 6), ("bias.delta", 6)] {
        inputs.insert(name, full(&[1, 3, 7, last], 0.5));
    }
    inputs.insert("retention.alpha", full(&[1, 3, 7], 0.0));
    inputs.insert("algo.eta", full(&[1, 3, 7], 0.0));
    inputs.insert("segments", Tensor::i64([4], vec![0, 3, 3, 7]));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    let ranges: Vec<(usize, usize)> = bound.streams.iter().map(|s| (s.first, s.last)).collect();
    assert_eq!(ranges, [(0, 3), (3, 3), (3, 7)]);
    assert_eq!(names(&rule, &bound)[1], ("state.memory.W".into(), vec![3, 3, 6, 5]));
}

#[test]
fn repeated_parameters_have_entries_for_every_step() {
    let mut fixture = plain().param("algo.step", Kind::Real, Source::Input, vec![dk()], true);
    fixture.repeats = 2;
    let rule = fixture.build();
    let mut inputs = plain_inputs();
    inputs.insert("k", full(&[2, 3, 8, 5], 0.25));
    inputs.insert("v", full(&[2, 3, 8, 6], 0.25));
    let values = (0..240).map(f64::from).collect();
    inputs.insert("algo.step", Tensor::f64([2, 3, 8, 5], values));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    let step = &bound.params[3];
    assert_eq!(step.layout, Layout::PerToken { entries: 2 });
    // Row 1, head 2, token 3, step 1: entry 7 of the last sequence of 8.
    assert_eq!(step.offset(3, 4, [1, 2, 3, 1]), ((3 + 2) * 8 + 7) * 5);
    let alpha = &bound.params[0];
    assert_eq!(alpha.offset(3, 4, [1, 2, 3, 1]), (3 + 2) * 4 + 3);
}

#[test]
fn optional_tensors_come_from_the_program_per_head_and_trained_ones_with_a_note() {
    let mut fixture = plain();
    let head = fixture.terms.place(miras_term::Place::Head);
    let half = fixture.terms.num(0.5);
    let start = fixture.terms.add(head, half).unwrap();
    let rule = fixture
        .param("memory.gain", Kind::Real, Source::Slow(Some(start)), vec![dv()], false)
        .param("algo.beta", Kind::Positive, Source::Trained(Some(half)), vec![], false)
        .build();
    let bound = bind(&rule, &plain_inputs(), &BindOptions::default()).unwrap();
    let gain = &bound.params[3];
    assert!(!gain.given);
    assert_eq!(gain.layout, Layout::PerHead);
    assert_eq!((gain.values.at(0), gain.values.at(17)), (Some(0.5), Some(2.5)));
    assert_eq!(bound.notes.len(), 1);
    assert!(bound.notes[0].message.contains("`algo.beta`") && !bound.notes[0].is_error());
    let mut inputs = plain_inputs();
    inputs.insert("memory.gain", full(&[3, 6], 4.0));
    inputs.insert("algo.beta", full(&[3], 4.0));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    assert!(bound.notes.is_empty());
    let env = bound.env(&rule.layer, 1, Some((0, 2)));
    assert_eq!(env.vars[&gain.var].data, [4.0; 6]);
    assert_eq!(env.vars[&bound.params[0].var].data, [0.125]);
}

#[test]
fn the_carried_value_starts_from_the_initial_weight() {
    let rule = Fixture::new()
        .weight("W1", vec![dv(), dk()], None, InitialDomain::Open(0.0, f64::INFINITY))
        .logarithmic()
        .build();
    let mut inputs = sequences();
    inputs.insert("memory.W1", full(&[3, 6, 5], 2.0));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    assert_eq!(bound.carried_at_start(&rule, 1, 2).unwrap()[0].data, [2.0_f64.ln(); 30]);
    inputs.insert("state.memory.W1", full(&[2, 3, 6, 5], -7.0));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    assert_eq!(bound.carried_at_start(&rule, 1, 2).unwrap()[0].data, [-7.0; 30]);
    assert!(bound.continued && bound.notes[0].message.contains("no effect"));
}

/// A layer whose gradients are frozen, with a state of the algorithm and a threshold.
fn frozen() -> UpdateRule {
    let mut fixture = plain().threshold().class(ClassKind::General);
    let zero = fixture.terms.fill(0.0, miras_term::Shape::matrix(dv(), dk()));
    fixture.state("S.W", vec![dv(), dk()], zero).build()
}

fn continued() -> Bundle {
    let mut inputs = plain_inputs();
    inputs.insert("state.memory.W", full(&[2, 3, 6, 5], 3.0));
    inputs.insert("state.algo.S.W", full(&[2, 3, 6, 5], 4.0));
    inputs
}

#[test]
fn streams_go_on_inside_a_chunk_with_their_anchors() {
    let rule = frozen();
    let mut inputs = continued();
    inputs.insert("state.position", Tensor::i64([2], vec![11, 16]));
    inputs.insert("state.chunk", Tensor::i64([1], vec![8]));
    inputs.insert("state.anchor.W", full(&[2, 3, 6, 5], 5.0));
    inputs.insert("state.anchor.threshold.W", full(&[2, 3, 6, 5], 6.0));
    let options = BindOptions { schedule: Schedule::Chunked(8), ..BindOptions::default() };
    let bound = bind(&rule, &inputs, &options).unwrap();
    assert_eq!(bound.weights[0].anchor.as_ref().unwrap().at(0), Some(5.0));
    assert_eq!(bound.weights[0].remembered[&miras_rule::Remembered::Threshold].at(0), Some(6.0));
    assert_eq!(bound.states[0].carried.as_ref().unwrap().at(0), Some(4.0));
    assert_eq!(bound.streams[0].position, 11);
    // 15 and 20 tokens behind: inside a chunk, so the results have anchors.
    let results = names(&rule, &bound);
    assert!(results.iter().any(|(n, _)| n == "state.anchor.W"));
    assert!(results.iter().any(|(n, _)| n == "state.anchor.threshold.W"));
    let outputs = miras_host::Outputs::new(&rule, &bound);
    assert!(outputs.clone().finish().is_err(), "nothing is filled in yet");
}

#[test]
fn a_state_without_position_begins_a_chunk_and_the_end_of_one_needs_no_anchor() {
    let rule = frozen();
    let options = BindOptions { schedule: Schedule::Chunked(4), ..BindOptions::default() };
    let bound = bind(&rule, &continued(), &options).unwrap();
    assert!(bound.continued && bound.streams.iter().all(|s| s.position == 0));
    assert!(names(&rule, &bound).iter().all(|(n, _)| !n.contains("anchor")));
    // At a multiple of both chunk lengths the stream may go on with another one.
    let mut inputs = continued();
    inputs.insert("state.position", Tensor::i64([2], vec![8, 16]));
    inputs.insert("state.chunk", Tensor::i64([1], vec![8]));
    assert!(bind(&rule, &inputs, &options).is_ok());
    assert!(bind(&rule, &inputs, &BindOptions::default()).is_ok());
}

#[test]
fn exact_classes_go_on_at_any_chunk_length() {
    let mut inputs = plain_inputs();
    inputs.insert("state.memory.W", full(&[2, 3, 6, 5], 3.0));
    inputs.insert("state.position", Tensor::i64([2], vec![11, 3]));
    inputs.insert("state.chunk", Tensor::i64([1], vec![8]));
    for schedule in [Schedule::Recurrent, Schedule::Chunked(8), Schedule::Chunked(64)] {
        let options = BindOptions { schedule, ..BindOptions::default() };
        let bound = bind(&plain().build(), &inputs, &options).unwrap();
        assert_eq!(bound.streams[0].position, 11);
    }
}

#[test]
fn caches_start_empty_and_keep_the_window() {
    for (window, kept) in [(None, 11), (Some(5), 4)] {
        let mut fixture = Fixture::new().class(ClassKind::NonParametric);
        fixture.history = Some(window);
        let rule = fixture.build();
        let bound = bind(&rule, &sequences(), &BindOptions::default()).unwrap();
        assert_eq!(bound.cache.as_ref().unwrap().keys.shape, [2, 3, 0, 5]);
        assert_eq!(names(&rule, &bound)[1].1, [2, 3, 4, 5]);
        let mut inputs = sequences();
        inputs.insert("state.cache.k", full(&[2, 3, 7, 5], 0.0));
        inputs.insert("state.cache.v", full(&[2, 3, 7, 6], 0.0));
        let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
        assert_eq!(bound.streams[1].position, 7, "a cache without a position is all there was");
        assert_eq!(names(&rule, &bound)[1], ("state.cache.k".into(), vec![2, 3, kept, 5]));
    }
}

#[test]
fn packed_caches_lie_end_to_end() {
    let mut fixture = Fixture::new().class(ClassKind::NonParametric);
    fixture.history = Some(None);
    let rule = fixture.build();
    let mut inputs = Bundle::new();
    for (name, last) in [("q", 5), ("k", 5), ("v", 6)] {
        inputs.insert(name, full(&[1, 3, 4, last], 0.5));
    }
    inputs.insert("segments", Tensor::i64([3], vec![0, 1, 4]));
    inputs.insert("state.cache.k", full(&[1, 3, 7, 5], 0.0));
    inputs.insert("state.cache.v", full(&[1, 3, 7, 6], 0.0));
    inputs.insert("state.cache.segments", Tensor::i64([3], vec![0, 2, 7]));
    let bound = bind(&rule, &inputs, &BindOptions::default()).unwrap();
    assert_eq!(bound.cache.as_ref().unwrap().ranges, [(0, 2), (2, 7)]);
    let mut outputs = miras_host::Outputs::new(&rule, &bound);
    for (name, count) in [("o", 72), ("state.cache.k", 165), ("state.cache.v", 198)] {
        outputs.set(name, miras_host::Data::F32(vec![0.0; count])).unwrap();
    }
    assert!(outputs.set("o", miras_host::Data::F32(vec![0.0; 3])).is_err());
    assert!(outputs.set("oo", miras_host::Data::F32(vec![])).is_err());
    let out = outputs.finish().unwrap();
    assert_eq!(out.get("state.cache.segments").unwrap().i64s().unwrap(), [0, 3, 11]);
    assert_eq!(out.get("state.position").unwrap().i64s().unwrap(), [3, 8]);
    assert_eq!(out.get("o").unwrap().width(), Some(Width::F64));
}

#[test]
fn cotangents_are_inputs_with_grad_and_every_given_float_has_a_gradient() {
    let rule = plain().build();
    let mut inputs = plain_inputs();
    inputs.insert("grad.o", full(&[2, 3, 4, 6], 1.0));
    inputs.insert("grad.state.memory.W", full(&[2, 3, 6, 5], 1.0));
    let options = BindOptions { grad: true, ..BindOptions::default() };
    let bound = bind(&rule, &inputs, &options).unwrap();
    let cotangents = bound.cotangents.as_ref().unwrap();
    assert_eq!(cotangents.states.keys().collect::<Vec<_>>(), ["state.memory.W"]);
    let gradients: Vec<String> =
        names(&rule, &bound).into_iter().map(|(n, _)| n).filter(|n| n.starts_with("d.")).collect();
    assert_eq!(gradients, ["d.q", "d.k", "d.v", "d.retention.alpha", "d.algo.eta", "d.bias.delta"]);
    assert!(bind(&rule, &inputs, &BindOptions { allow_extra: true, ..BindOptions::default() }).is_ok());
}
