//! Values that the program itself gives, judged once heads and sizes are known; and names proposed for missing tensors.

mod fixture;

use fixture::mistakes::*;
use fixture::*;
use miras_host::{BindOptions, bind};
use miras_rule::{InitialDomain, UpdateRule};
use miras_spec::{Kind, Ranged, Source};
use miras_term::{Place, TermId, Terms};

/// `scale * head`.
fn by_head(terms: &mut Terms, scale: f64) -> TermId {
    let (head, scale) = (terms.place(Place::Head), terms.num(scale));
    terms.mul(scale, head).unwrap()
}

fn with_range(scale: f64, kind: Kind) -> UpdateRule {
    let mut rule = plain().build();
    let value = by_head(&mut rule.layer.terms, scale);
    let asked_by = "`retention: l2(alpha = scale * head)`".into();
    rule.layer.ranges.push(Ranged { name: "alpha".into(), value, kind, span: Some(span(7)), asked_by });
    rule
}

#[test]
fn a_value_by_head_lies_in_its_kind_in_every_head() {
    // Heads 0, 1 and 2.
    let inputs = plain_inputs();
    for (scale, kind) in [(0.5, Kind::Unit), (3.0, Kind::Positive), (-3.0, Kind::Real)] {
        assert!(bind(&with_range(scale, kind), &inputs, &BindOptions::default()).is_ok());
    }
    for (scale, kind, words) in [
        (0.75, Kind::Unit, "`alpha` is 1.5 in head 2, outside [0, 1]: its kind is `unit`"),
        (-1.0, Kind::Positive, "`alpha` is -1 in head 1, outside [0, inf): its kind is `positive`"),
    ] {
        let found = problems(&with_range(scale, kind), &inputs, &BindOptions::default());
        let text = told(&found[0]);
        assert!(found.len() == 1 && text.contains("E0504") && text.contains(words), "{text}");
        assert!(text.contains("it is given in `retention: l2(alpha = scale * head)`"), "{text}");
        assert_eq!(found[0].labels.len(), 1);
    }
}

#[test]
fn a_declared_start_by_head_lies_in_its_kind() {
    let started = |scale| {
        let mut fixture = plain();
        let start = by_head(&mut fixture.terms, scale);
        fixture.param("retention.beta", Kind::Unit, Source::Trained(Some(start)), vec![], false).build()
    };
    let inputs = plain_inputs();
    assert!(bind(&started(0.5), &inputs, &BindOptions::default()).is_ok());
    let found = problems(&started(0.75), &inputs, &BindOptions::default());
    let text = told(&found[0]);
    assert!(found.len() == 1 && text.contains("`retention.beta` holds 1.5 at [2], outside [0, 1]"), "{text}");
    assert!(text.contains("declared start"), "{text}");
}

#[test]
fn a_given_tensor_is_proposed_once_and_where_its_shape_fits() {
    let square = || vec![dv(), dv()];
    let rule = plain()
        .weight("W1", vec![dv(), dk()], None, InitialDomain::Any)
        .weight("W2", square(), None, InitialDomain::Any)
        .weight("W3", square(), None, InitialDomain::Any)
        .weight("W4", square(), None, InitialDomain::Any)
        .build();
    let mut inputs = plain_inputs();
    inputs.insert("memory.W4", full(&[3, 6, 6], 0.5));
    inputs.insert("memory.W_3", full(&[3, 6, 6], 0.5));
    let options = BindOptions { allow_extra: true, ..BindOptions::default() };
    let texts: Vec<String> = problems(&rule, &inputs, &options).iter().map(told).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(!texts[0].contains("the data has"), "another shape: {texts:?}");
    assert!(texts[1].contains("the data has `memory.W_3`"), "{texts:?}");
    assert!(!texts[2].contains("the data has"), "W4 is an input itself, W_3 was proposed: {texts:?}");
}
