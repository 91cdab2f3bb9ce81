//! Every way in which data can be wrong: the code, and the words that a user needs to mend it.

mod fixture;

use fixture::mistakes::*;
use fixture::*;
use miras_host::{BindOptions, Bundle, Foreign, Tensor, Width, bind};
use miras_rule::{ClassKind, InitialDomain};
use miras_spec::{Kind, Source};
use miras_term::Axis;

#[test]
fn sequences_and_their_sizes() {
    let zero = |shape: [usize; 4]| full(&shape, 0.0);
    let rows: &[Row<'_>] = &[
        ("no q", &drop_it("q"), "E0501", &["`q`", "[B, H, T, dk]"]),
        ("no v", &drop_it("v"), "E0501", &["`v`", "[B, H, T, dv]"]),
        ("rank of k", &put("k", full(&[2, 4, 5], 0.0)), "E0502", &["`k`", "[2, 4, 5]", "[B, H, T, dk]"]),
        (
            "T of k",
            &put("k", zero([2, 3, 3, 5])),
            "E0502",
            &["`k`", "[2, 3, 3, 5]", "[B, H, T, dk] = [2, 3, 4, 5]"],
        ),
        (
            "dk of k",
            &put("k", zero([2, 3, 4, 6])),
            "E0502",
            &["beside `q` of shape [2, 3, 4, 5] it needs [B, H, T, dk] = [2, 3, 4, 5]"],
        ),
        ("B of v", &put("v", zero([1, 3, 4, 6])), "E0502", &["`v`", "[B, H, T, dv] = [2, 3, 4, 6]"]),
        ("axes of v", &put("v", zero([2, 4, 3, 6])), "E0502", &["their order"]),
        (
            "integers",
            &put("q", Tensor::i64([2, 3, 4, 5], vec![0; 120])),
            "E0506",
            &["`q`", "int64", "float32"],
        ),
        ("NaN", &spoil("k", 67, f64::NAN), "E0503", &["`k` holds NaN at [1, 0, 1, 2]", "finite"]),
        ("infinity", &spoil("v", 0, f64::NEG_INFINITY), "E0503", &["`v` holds -inf at [0, 0, 0, 0]"]),
    ];
    check(&plain().build(), &plain_inputs(), &BindOptions::default(), rows);
}

#[test]
fn sizes_of_zero() {
    for (name, shape, symbol) in [
        ("q", [0, 3, 4, 5], "B"),
        ("q", [2, 0, 4, 5], "H"),
        ("q", [2, 3, 4, 0], "dk"),
        ("v", [2, 3, 4, 0], "dv"),
    ] {
        let mut inputs = plain_inputs();
        inputs.insert(name, full(&shape, 0.0));
        let texts: Vec<String> =
            problems(&plain().build(), &inputs, &BindOptions::default()).iter().map(told).collect();
        assert!(texts.len() == 1 && texts[0].contains(&format!("{symbol} is 0")), "{texts:?}");
    }
}

#[test]
fn gates() {
    let foreign = |b: &mut Bundle| {
        b.remove("algo.eta");
        b.insert_foreign("algo.eta", Foreign { shape: vec![2, 3, 4], element: "U8".into() });
    };
    let rows: &[Row<'_>] = &[
        (
            "missing",
            &drop_it("algo.eta"),
            "E0501",
            &["`algo.eta` is missing", "`algo: eta = learned`", "[B, H, T] = [2, 3, 4]"],
        ),
        ("per token given per value", &put("algo.eta", full(&[2, 3, 4, 6], 0.1)), "E0502", &["[2, 3, 4, 6]"]),
        ("per value", &put("bias.delta", full(&[2, 3, 4], 0.1)), "E0502", &["[B, H, T, dv] = [2, 3, 4, 6]"]),
        ("element type", &foreign, "E0506", &["`algo.eta`", "U8"]),
        (
            "above 1",
            &spoil("retention.alpha", 5, 1.5),
            "E0504",
            &["holds 1.5 at [0, 1, 1]", "[0, 1]", "`unit`"],
        ),
        ("below 0", &spoil("retention.alpha", 23, -1e-9), "E0504", &["-1e-9 at [1, 2, 3]"]),
        (
            "negative",
            &spoil("algo.eta", 0, -2.0),
            "E0504",
            &["holds -2 at [0, 0, 0]", "[0, inf)", "`positive`"],
        ),
        ("many", &put("algo.eta", full(&[2, 3, 4], -2.0)), "E0504", &["23 more"]),
        ("NaN", &spoil("retention.alpha", 0, f64::NAN), "E0503", &["`retention.alpha` holds NaN"]),
        ("extra", &put("zebra", full(&[1], 0.0)), "E0505", &["`zebra`", "--allow-extra", "`bias.delta`"]),
        ("a cotangent", &put("grad.o", full(&[2, 3, 4, 6], 0.0)), "E0505", &["`grad.o`", "--grad"]),
        ("a result", &put("o", full(&[2, 3, 4, 6], 0.0)), "E0505", &["result"]),
        ("a gate not learned", &put("algo.mu", full(&[2, 3, 4], 0.0)), "E0505", &["`algo.mu`", "`learned`"]),
        ("exact", &put("state.anchor.W", full(&[2, 3, 6, 5], 0.0)), "E0505", &["anchors"]),
    ];
    check(&plain().build(), &plain_inputs(), &BindOptions::default(), rows);
}

#[test]
fn legal_edges_of_kinds() {
    let mut inputs = plain_inputs();
    for (at, value) in [(0, 0.0), (1, 1.0), (2, -0.0)] {
        spoil("retention.alpha", at, value)(&mut inputs);
    }
    spoil("algo.eta", 0, 0.0)(&mut inputs);
    assert!(bind(&plain().build(), &inputs, &BindOptions::default()).is_ok());
}

#[test]
fn a_slip_in_a_name_is_found_from_both_sides() {
    let mut inputs = plain_inputs();
    rename("retention.alpha", "retention.alpah")(&mut inputs);
    let problems = problems(&plain().build(), &inputs, &BindOptions::default());
    let texts: Vec<String> = problems.iter().map(told).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("E0501") && texts[0].contains("the data has `retention.alpah`"), "{texts:?}");
    assert!(texts[1].contains("E0505") && texts[1].contains("did you mean `retention.alpha`"), "{texts:?}");
    // Optional tensors too.
    let mut inputs = plain_inputs();
    inputs.insert("memory.w", full(&[3, 6, 5], 0.0));
    let texts: Vec<String> =
        bind(&plain().build(), &inputs, &BindOptions::default()).unwrap_err().iter().map(told).collect();
    assert!(texts.len() == 1 && texts[0].contains("did you mean `memory.W`"), "{texts:?}");
}

#[test]
fn many_extra_tensors_do_not_flood_and_strange_names_stay_harmless() {
    let mut inputs = plain_inputs();
    for i in 0..100 {
        inputs.insert(format!("x\u{1b}[31m{i}{}", "y".repeat(500)), full(&[1], 0.0));
    }
    let problems = problems(&plain().build(), &inputs, &BindOptions::default());
    assert_eq!(problems.len(), 9);
    assert!(problems[8].message.contains("92 more"));
    assert!(problems.iter().all(|p| !p.message.contains('\u{1b}') && p.message.len() < 400));
    let lenient = BindOptions { allow_extra: true, ..BindOptions::default() };
    assert!(bind(&plain().build(), &inputs, &lenient).is_ok());
}

#[test]
fn all_mistakes_are_told_at_once() {
    let mut inputs = plain_inputs();
    inputs.remove("algo.eta");
    inputs.insert("retention.alpha", full(&[2, 3, 4], 2.0));
    inputs.insert("zebra", full(&[1], 0.0));
    inputs.insert("memory.W", full(&[3, 5, 6], 0.0));
    let codes: Vec<&str> =
        problems(&plain().build(), &inputs, &BindOptions::default()).iter().map(|p| p.code.0).collect();
    assert_eq!(codes, ["E0504", "E0501", "E0502", "E0505"]);
    // Also where sizes are not known.
    inputs.remove("q");
    let codes: Vec<&str> =
        problems(&plain().build(), &inputs, &BindOptions::default()).iter().map(|p| p.code.0).collect();
    assert_eq!(codes, ["E0501", "E0501", "E0505"]);
}

#[test]
fn equalities_of_sizes_show_both_places() {
    let rule = plain().needs_equal(dk(), dv()).build();
    let problem = problems(&rule, &plain_inputs(), &BindOptions::default()).remove(0);
    assert_eq!(problem.code.0, "E0509");
    let text = told(&problem);
    assert!(text.contains("dk = dv") && text.contains("dk = 5") && text.contains("dv = 6"), "{text}");
    assert_eq!(problem.labels.len(), 2);
    assert_eq!((problem.labels[0].span, problem.labels[1].span), (span(70), span(80)));
}

#[test]
fn requests_point_at_the_program() {
    let mut inputs = plain_inputs();
    inputs.remove("algo.eta");
    let problem = problems(&plain().build(), &inputs, &BindOptions::default()).remove(0);
    assert_eq!(problem.labels[0].span, span(1));
}

#[test]
fn float32_backends_check_what_they_will_see() {
    let narrow = BindOptions { width: Width::F32, ..BindOptions::default() };
    let rule = plain().build();
    let mut inputs = plain_inputs();
    spoil("v", 9, 1e300)(&mut inputs);
    let text = told(&problems(&rule, &inputs, &narrow)[0]);
    assert!(
        text.contains("E0503")
            && text.contains("1e300 at [0, 0, 1, 3]")
            && text.contains("--backend reference"),
        "{text}"
    );
    assert!(bind(&rule, &inputs, &BindOptions::default()).is_ok());
    // 1 - 1e-12 lies inside (0, 1) in float64 and is 1 in float32; 1e-60 is 0.
    let open = Fixture::new().weight("W", vec![dv(), dk()], None, InitialDomain::Open(0.0, 1.0)).build();
    for edge in [1.0 - 1e-12, 1e-60] {
        let mut inputs = sequences();
        inputs.insert("memory.W", full(&[3, 6, 5], edge));
        assert!(bind(&open, &inputs, &BindOptions::default()).is_ok());
        assert_eq!(problems(&open, &inputs, &narrow)[0].code.0, "E0504");
    }
    // -1e-60 lies outside [0, inf) and is -0 in float32; 1 + 1e-12 outside [0, 1] and is 1.
    for (name, outside) in [("algo.eta", -1e-60), ("retention.alpha", 1.0 + 1e-12)] {
        let mut inputs = plain_inputs();
        spoil(name, 0, outside)(&mut inputs);
        assert_eq!(problems(&rule, &inputs, &narrow)[0].code.0, "E0504", "{name}");
    }
}

#[test]
fn initial_weights() {
    let rule = Fixture::new()
        .weight("W1", vec![hidden(), dk()], None, InitialDomain::Any)
        .weight("U", vec![dv()], None, InitialDomain::Open(0.0, 1.0))
        .build();
    let mut good = sequences();
    good.insert("memory.W1", full(&[3, 10, 5], 0.5));
    good.insert("memory.U", full(&[3, 6], 0.5));
    let rows: &[Row<'_>] = &[
        (
            "missing",
            &drop_it("memory.W1"),
            "E0501",
            &["`memory.W1` is missing", "`memory: some_memory`", "[H, hidden, dk] = [3, 10, 5]"],
        ),
        ("with a batch axis", &put("memory.W1", full(&[2, 3, 10, 5], 0.5)), "E0502", &["[2, 3, 10, 5]"]),
        ("NaN", &spoil("memory.W1", 57, f64::NAN), "E0503", &["`memory.W1` holds NaN at [1, 1, 2]"]),
        (
            "on the edge",
            &spoil("memory.U", 8, 1.0),
            "E0504",
            &["`memory.U` holds 1 at [1, 2]", "some_retention", "strictly between 0 and 1"],
        ),
        ("outside", &spoil("memory.U", 0, -0.5), "E0504", &["`memory.U` holds -0.5 at [0, 0]"]),
    ];
    check(&rule, &good, &BindOptions::default(), rows);
}

#[test]
fn simplexes() {
    for (axis, slice, sum) in [
        (Axis::Row, "head 2, row 1", 5.0),
        (Axis::Column, "head 2, column 3", 6.0),
        (Axis::All, "head 2", 30.0),
    ] {
        let mut fixture = Fixture::new();
        let mass = fixture.terms.num(sum);
        let rule =
            fixture.weight("W", vec![dv(), dk()], Some(0.0), InitialDomain::Simplex(axis, mass)).build();
        let mut good = sequences();
        good.insert("memory.W", full(&[3, 6, 5], 1.0));
        let rows: &[Row<'_>] = &[
            ("zero", &spoil("memory.W", 1, 0.0), "E0504", &["holds 0 at [0, 0, 1]", "greater than 0"]),
            ("sum", &spoil("memory.W", 68, 1.01), "E0504", &[slice, "1e-4"]),
            (
                "the default",
                &drop_it("memory.W"),
                "E0504",
                &["`memory.W` (not given; its declared start) holds 0", "some_retention"],
            ),
        ];
        check(&rule, &good, &BindOptions::default(), rows);
        // Within 1e-4 of the mass is close enough.
        let mut close = good.clone();
        spoil("memory.W", 68, 1.0 + 0.9e-4 * sum)(&mut close);
        assert!(bind(&rule, &close, &BindOptions::default()).is_ok());
        spoil("memory.W", 68, 1.0 + 1.1e-4 * sum)(&mut close);
        assert!(bind(&rule, &close, &BindOptions::default()).is_err());
    }
}

#[test]
fn per_head_tensors_without_a_start_must_be_given() {
    let rule = plain().param("trained.A", Kind::Real, Source::Trained(None), vec![dv(), dk()], false).build();
    let mut good = plain_inputs();
    good.insert("trained.A", full(&[3, 6, 5], 0.5));
    let rows: &[Row<'_>] = &[
        ("missing", &drop_it("trained.A"), "E0501", &["`trained.A`", "[H, dv, dk] = [3, 6, 5]"]),
        ("misshapen", &put("trained.A", full(&[2, 3, 4, 6, 5], 0.5)), "E0502", &["[H, dv, dk] = [3, 6, 5]"]),
    ];
    check(&rule, &good, &BindOptions::default(), rows);
}

#[test]
fn sizes_that_no_machine_holds() {
    // No bytes in the file, 10^24 numbers in the state.
    let mut inputs = plain_inputs();
    let huge = 1_000_000_000_000;
    for (name, last) in [("q", huge), ("k", huge), ("v", huge), ("bias.delta", huge)] {
        inputs.insert(name, Tensor::f64([1, 1, 0, last], vec![]));
    }
    inputs.insert("retention.alpha", full(&[1, 1, 0], 0.0));
    inputs.insert("algo.eta", full(&[1, 1, 0], 0.0));
    let text = told(&problems(&plain().build(), &inputs, &BindOptions::default())[0]);
    assert!(text.contains("E0602") && text.contains("dk = 1000000000000"), "{text}");
    // Sizes whose product cannot even be counted.
    let most = usize::MAX / 2;
    for (name, last) in [("q", most), ("k", most), ("v", most), ("bias.delta", most)] {
        inputs.insert(name, Tensor::f64([1, 1, 0, last], vec![]));
    }
    assert!(!problems(&plain().build(), &inputs, &BindOptions::default()).is_empty());
    // Nothing in a head but a billion times a billion of them.
    let mut fixture = Fixture::new().class(ClassKind::NonParametric);
    fixture.history = Some(None);
    let many: Bundle =
        ["q", "k", "v"].map(|n| (n, Tensor::f64([1 << 30, 1 << 30, 0, 1], vec![]))).into_iter().collect();
    assert_eq!(problems(&fixture.build(), &many, &BindOptions::default())[0].code.0, "E0602");
    // A limit of the user's own.
    let small = BindOptions { memory_limit: Some(1000), ..BindOptions::default() };
    let text = told(&problems(&plain().build(), &plain_inputs(), &small)[0]);
    assert!(text.contains("E0602") && text.contains("1000 bytes"), "{text}");
}

#[test]
fn shapes_that_are_no_sizes() {
    let less = dk().add(&miras_base::Dim::constant(-5)).unwrap();
    let rule = Fixture::new().weight("W", vec![less], Some(0.0), InitialDomain::Any).build();
    let text = told(&problems(&rule, &sequences(), &BindOptions::default())[0]);
    assert!(text.contains("E0502") && text.contains("`memory.W`") && text.contains("dk = 5"), "{text}");
}
