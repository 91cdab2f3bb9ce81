//! Mistakes in segments, continued states, caches and cotangents: the code, and the words that a user needs.

mod fixture;

use fixture::mistakes::*;
use fixture::*;
use miras_host::{BindOptions, Bundle, Schedule, Tensor};
use miras_rule::{ClassKind, UpdateRule};

#[test]
fn segments() {
    let mut good = Bundle::new();
    for (name, last) in [("q", 5), ("k", 5), ("v", 6), ("bias.delta", 6)] {
        good.insert(name, full(&[1, 3, 7, last], 0.5));
    }
    good.insert("retention.alpha", full(&[1, 3, 7], 0.5));
    good.insert("algo.eta", full(&[1, 3, 7], 0.5));
    good.insert("segments", Tensor::i64([3], vec![0, 3, 7]));
    let cuts = |cuts: &[i64]| put("segments", Tensor::i64([cuts.len()], cuts.to_vec()));
    let rows: &[Row<'_>] = &[
        ("start", &cuts(&[1, 3, 7]), "E0510", &["first number is 1"]),
        ("negative", &cuts(&[-1, 3, 7]), "E0510", &["first number is -1"]),
        ("end", &cuts(&[0, 3, 6]), "E0510", &["last number is 6, not 7"]),
        ("beyond", &cuts(&[0, 3, i64::MAX]), "E0510", &["not 7"]),
        ("falling", &cuts(&[0, 5, 3, 7]), "E0510", &["number 2 is 3, smaller than 5"]),
        ("one number", &cuts(&[0]), "E0510", &["1 numbers"]),
        ("none", &cuts(&[]), "E0510", &["0 numbers"]),
        ("floats", &put("segments", full(&[3], 0.0)), "E0506", &["`segments`", "float64", "int64"]),
        ("rank", &put("segments", Tensor::i64([1, 3], vec![0, 3, 7])), "E0502", &["`segments`", "[1, 3]"]),
    ];
    check(&plain().build(), &good, &BindOptions::default(), rows);
    let mut batch = plain_inputs();
    batch.insert("segments", Tensor::i64([2], vec![0, 4]));
    let text = told(&problems(&plain().build(), &batch, &BindOptions::default())[0]);
    assert!(text.contains("E0510") && text.contains("B is 2") && text.contains("B = 1"), "{text}");
}

fn frozen() -> UpdateRule {
    let mut fixture = plain().threshold().class(ClassKind::DualLinear);
    let zero = fixture.terms.fill(0.0, miras_term::Shape::matrix(dv(), dk()));
    fixture.state("S.W", vec![dv(), dk()], zero).build()
}

#[test]
fn continued_states() {
    let mut good = plain_inputs();
    for name in ["state.memory.W", "state.algo.S.W", "state.anchor.W", "state.anchor.threshold.W"] {
        good.insert(name, full(&[2, 3, 6, 5], 0.5));
    }
    good.insert("state.position", Tensor::i64([2], vec![11, 16]));
    good.insert("state.chunk", Tensor::i64([1], vec![8]));
    let ints = |name, values: &[i64]| put(name, Tensor::i64([values.len()], values.to_vec()));
    let rows: &[Row<'_>] = &[
        ("part", &drop_it("state.memory.W"), "E0501", &["`state.memory.W`", "[B, H, dv, dk] = [2, 3, 6, 5]"]),
        ("part", &drop_it("state.algo.S.W"), "E0501", &["`state.algo.S.W`"]),
        ("shape", &put("state.memory.W", full(&[3, 6, 5], 0.5)), "E0502", &["[B, H, dv, dk] = [2, 3, 6, 5]"]),
        ("NaN", &spoil("state.algo.S.W", 0, f64::NAN), "E0503", &["`state.algo.S.W`"]),
        ("no anchor", &drop_it("state.anchor.W"), "E0511", &["`state.anchor.W`", "11 tokens", "chunk of 8"]),
        ("no threshold", &drop_it("state.anchor.threshold.W"), "E0511", &["`state.anchor.threshold.W`"]),
        (
            "another C",
            &ints("state.chunk", &[16]),
            "E0511",
            &["chunks of 16", "chunks of 8", "11 tokens", "--chunk 16"],
        ),
        ("C of 0", &ints("state.chunk", &[0]), "E0511", &["`state.chunk` is 0"]),
        ("positions", &ints("state.position", &[11]), "E0502", &["`state.position`", "[B] = [2]"]),
        ("negative", &ints("state.position", &[11, -1]), "E0511", &["-1 at [1]"]),
        ("huge", &ints("state.position", &[i64::MAX, 0]), "E0511", &["at [0]"]),
        ("floats", &put("state.position", full(&[2], 3.0)), "E0506", &["`state.position`", "int64"]),
    ];
    let chunked = BindOptions { schedule: Schedule::Chunked(8), ..BindOptions::default() };
    check(&frozen(), &good, &chunked, rows);
    // The other way round: another schedule or chunk length now than then, both named.
    for (schedule, name) in [(Schedule::Recurrent, "recurrent"), (Schedule::Chunked(4), "chunks of 4")] {
        let options = BindOptions { schedule, ..BindOptions::default() };
        let text = told(&problems(&frozen(), &good, &options)[0]);
        assert!(text.contains("E0511") && text.contains(name) && text.contains("chunks of 8"), "{text}");
    }
    let mut lonely = plain_inputs();
    lonely.insert("state.position", Tensor::i64([2], vec![8, 8]));
    let text = told(&problems(&frozen(), &lonely, &chunked)[0]);
    assert!(text.contains("E0511") && text.contains("without the state"), "{text}");
}

#[test]
fn caches() {
    let mut fixture = Fixture::new().class(ClassKind::NonParametric);
    fixture.history = Some(None);
    let rule = fixture.build();
    let mut good = sequences();
    good.insert("state.cache.k", full(&[2, 3, 7, 5], 0.5));
    good.insert("state.cache.v", full(&[2, 3, 7, 6], 0.5));
    good.insert("state.position", Tensor::i64([2], vec![7, 7]));
    let rows: &[Row<'_>] = &[
        (
            "keys alone",
            &drop_it("state.cache.v"),
            "E0501",
            &["`state.cache.v`", "[B, H, L, dv] = [2, 3, 7, 6]"],
        ),
        ("values alone", &drop_it("state.cache.k"), "E0501", &["`state.cache.k`"]),
        ("lengths", &put("state.cache.v", full(&[2, 3, 6, 6], 0.5)), "E0502", &["[2, 3, 7, 6]"]),
        ("rank", &put("state.cache.k", full(&[2, 7, 5], 0.5)), "E0502", &["[B, H, L, dk]"]),
        (
            "length",
            &put("state.position", Tensor::i64([2], vec![7, 8])),
            "E0511",
            &["holds 7 tokens", "`state.position` = 8"],
        ),
        ("cuts unpacked", &put("state.cache.segments", Tensor::i64([2], vec![0, 7])), "E0505", &["segments"]),
    ];
    check(&rule, &good, &BindOptions::default(), rows);
    let mut packed = Bundle::new();
    for (name, last) in [("q", 5), ("k", 5), ("v", 6), ("state.cache.k", 5), ("state.cache.v", 6)] {
        packed.insert(name, full(&[1, 3, 4, last], 0.5));
    }
    packed.insert("segments", Tensor::i64([3], vec![0, 1, 4]));
    packed.insert("state.cache.segments", Tensor::i64([3], vec![0, 4, 4]));
    let cuts = |cuts: &[i64]| put("state.cache.segments", Tensor::i64([cuts.len()], cuts.to_vec()));
    let rows: &[Row<'_>] = &[
        (
            "no cuts",
            &drop_it("state.cache.segments"),
            "E0501",
            &["`state.cache.segments`", "int64 [N+1] = [3]"],
        ),
        ("streams", &cuts(&[0, 4]), "E0502", &["[N+1] = [3]"]),
        ("end", &cuts(&[0, 2, 3]), "E0510", &["`state.cache.segments`", "last number is 3"]),
    ];
    check(&rule, &packed, &BindOptions::default(), rows);
}

#[test]
fn cotangents() {
    let mut good = plain_inputs();
    good.insert("grad.o", full(&[2, 3, 4, 6], 1.0));
    good.insert("grad.state.memory.W", full(&[2, 3, 6, 5], 1.0));
    let rows: &[Row<'_>] = &[
        ("missing", &drop_it("grad.o"), "E0501", &["`grad.o`", "[B, H, T, dv] = [2, 3, 4, 6]"]),
        ("misshapen", &put("grad.o", full(&[2, 3, 4, 5], 1.0)), "E0502", &["`grad.o`", "[2, 3, 4, 6]"]),
        ("NaN", &spoil("grad.o", 1, f64::NAN), "E0503", &["`grad.o` holds NaN"]),
        ("state", &put("grad.state.memory.W", full(&[3, 6, 5], 1.0)), "E0502", &["`grad.state.memory.W`"]),
        ("no such state", &put("grad.state.algo.S", full(&[3], 1.0)), "E0505", &["`grad.state.algo.S`"]),
        ("a count", &put("grad.state.position", full(&[2], 1.0)), "E0505", &["`grad.state.position`"]),
    ];
    check(&plain().build(), &good, &BindOptions { grad: true, ..BindOptions::default() }, rows);
}
