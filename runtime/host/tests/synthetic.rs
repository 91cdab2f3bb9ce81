//! Synthetic inputs bind, are the same each time, and lie where they should.

mod fixture;

use fixture::*;
use miras_host::{BindOptions, Synthetic, Width, bind, synthetic};
use miras_rule::InitialDomain;
use miras_spec::{Kind, Source};
use miras_term::Axis;

fn wanted(seed: u64) -> Synthetic {
    Synthetic { seed, batch: 2, heads: 3, tokens: 9, dk: 4, dv: 5, grad: true }
}

#[test]
fn inputs_of_every_kind_and_domain_bind_in_both_widths() {
    for domain in 0..6 {
        let mut fixture = plain();
        let mass = fixture.terms.num(16.0);
        let initial = match domain {
            0 => InitialDomain::Any,
            1 => InitialDomain::Open(0.0, 1.0),
            2 => InitialDomain::Open(0.0, f64::INFINITY),
            3 => InitialDomain::Simplex(Axis::Row, mass),
            4 => InitialDomain::Simplex(Axis::Column, mass),
            _ => InitialDomain::Simplex(Axis::All, mass),
        };
        let half = fixture.terms.num(0.5);
        fixture.repeats = 2;
        let rule = fixture
            .weight("U", vec![hidden(), dk()], None, initial)
            .param("input.dt", Kind::Real, Source::Input, vec![dv()], true)
            .param("trained.A", Kind::Unit, Source::Trained(Some(half)), vec![dv(), dk()], false)
            .param("memory.gain", Kind::Real, Source::Slow(None), vec![dv()], false)
            .build();
        let inputs = synthetic(&rule, &wanted(7)).unwrap();
        for width in [Width::F32, Width::F64] {
            let options = BindOptions { width, grad: true, ..BindOptions::default() };
            let bound = bind(&rule, &inputs, &options).unwrap();
            assert!(bound.notes.is_empty() && bound.weights.iter().all(|w| w.given));
            assert_eq!(bound.key.shape, [2, 3, 18, 4]);
        }
        assert_eq!(inputs, synthetic(&rule, &wanted(7)).unwrap());
        assert_ne!(inputs, synthetic(&rule, &wanted(8)).unwrap());
    }
}

#[test]
fn keys_have_unit_norm_and_numbers_stay_as_they_are() {
    let inputs = synthetic(&plain().build(), &wanted(1)).unwrap();
    let keys = inputs.get("k").unwrap().f64s().unwrap().into_owned();
    for key in keys.chunks(4) {
        assert!((key.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-6);
    }
    let values = inputs.get("v").unwrap().f64s().unwrap().into_owned();
    let variance = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
    assert!((variance - 1.0).abs() < 0.25, "{variance}");
    // Examples and tests elsewhere rely on the very numbers.
    let digest = keys
        .iter()
        .chain(&values)
        .fold(0_u64, |h, x| (h ^ u64::from((*x as f32).to_bits())).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(digest, 0xd7d7_7c29_3e52_47a0, "{digest:#x}");
}

#[test]
fn impossible_sizes_are_refused() {
    let rule = plain().build();
    for bad in [
        Synthetic { batch: 0, ..wanted(1) },
        Synthetic { dk: 0, ..wanted(1) },
        Synthetic { tokens: usize::MAX, ..wanted(1) },
        Synthetic { dk: 1 << 40, dv: 1 << 40, tokens: 0, ..wanted(1) },
    ] {
        assert!(synthetic(&rule, &bad).is_err(), "{bad:?}");
    }
    assert!(synthetic(&rule, &Synthetic { tokens: 0, ..wanted(1) }).is_ok());
}
