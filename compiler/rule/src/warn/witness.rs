//! Each warning on a layer that deserves it, and its absence on one that does not.

use crate::derive;
use crate::rule::UpdateRule;
use crate::sample::{Kept, Sample};
use miras_base::diagnostic::{Code, code};
use miras_spec::{Kind, Per};

fn codes(rule: &UpdateRule) -> Vec<Code> {
    rule.warnings.iter().map(|w| w.code).collect()
}

fn rule(sample: Sample) -> UpdateRule {
    derive(sample.layer).expect("a rule")
}

#[test]
fn a_gate_that_nothing_uses_is_named() {
    let mut s = Sample::new(Kept::Mlp);
    assert!(!codes(&rule(Sample::new(Kept::Mlp))).contains(&code::UNUSED_GATE));
    s.gate("bias.extra", Kind::Positive, Per::Token);
    let rule = rule(s);
    let warning = rule.warnings.iter().find(|w| w.code == code::UNUSED_GATE).expect("a warning");
    assert!(warning.message.contains("bias.extra"));
}

#[test]
fn a_parameter_from_which_a_weight_starts_is_used() {
    let mut s = Sample::new(Kept::Matrix);
    let first = s.gate("trained.first", Kind::Real, Per::Entry);
    s.layer.memory.weights[0].start = Some(first);
    let rule = rule(s);
    assert!(!codes(&rule).contains(&code::UNUSED_GATE), "{:?}", rule.warnings);
}

#[test]
fn a_rate_that_scales_no_gradient_is_unused() {
    let mut s = Sample::new(Kept::Matrix);
    let zero = s.layer.terms.num(0.0);
    s.layer.bias.loss = zero;
    let rule = rule(s);
    let unused: Vec<_> = rule.warnings.iter().filter(|w| w.code == code::UNUSED_GATE).collect();
    assert!(unused.iter().any(|w| w.message.contains("algo.eta")), "{:?}", rule.warnings);
}

#[test]
fn a_gradient_that_the_step_leaves_out_makes_its_gates_unused() {
    let mut s = Sample::new(Kept::Matrix);
    s.huber(Per::Token);
    let (k, v) = (s.layer.key, s.layer.value);
    s.direct(|t, _| {
        let (k, v) = (t.use_var(k), t.use_var(v));
        t.outer(v, k).unwrap()
    });
    let rule = rule(s);
    let unused = rule.warnings.iter().filter(|w| w.code == code::UNUSED_GATE);
    let unused: Vec<&str> = unused.map(|w| w.message.as_str()).collect();
    assert_eq!(unused.len(), 2, "{unused:?}");
    assert!(unused[0].contains("algo.eta") && unused[1].contains("bias.delta"));
}

#[test]
fn a_term_with_the_weight_zero_is_inert() {
    let mut s = Sample::new(Kept::Matrix);
    assert!(!codes(&rule(Sample::new(Kept::Matrix))).contains(&code::INERT_RETENTION));
    s.layer.params.retain(|p| p.tensor != "retention.alpha");
    let zero = s.layer.terms.num(0.0);
    s.retain_l2(zero);
    assert!(codes(&rule(s)).contains(&code::INERT_RETENTION));
}

#[test]
fn a_small_mass_before_a_layernorm_is_warned_of() {
    for (mass, weak) in [(1.0, true), (16.0, false)] {
        let mut s = Sample::new(Kept::Mlp);
        let alpha = s.gate("retention.alpha", Kind::Unit, Per::Token);
        s.retain_entropy(alpha, mass);
        assert_eq!(codes(&rule(s)).contains(&code::WEAK_SIGNAL), weak, "mass {mass}");
    }
}

#[test]
fn long_keys_are_warned_of_where_they_can_turn_the_weights_over() {
    assert!(codes(&rule(Sample::new(Kept::Matrix))).contains(&code::UNIT_KEYS));
    let mut s = Sample::new(Kept::Matrix);
    let eta = s.gate("algo.rate", Kind::Positive, Per::Token);
    let key = s.layer.key;
    let t = &mut s.layer.terms;
    let k = t.use_var(key);
    let (square, one) = (t.dot(k, k).unwrap(), t.num(1.0));
    let grown = t.mul(eta, square).unwrap();
    let below = t.add(one, grown).unwrap();
    let implicit = t.div(eta, below).unwrap();
    s.descend(implicit);
    assert!(!codes(&rule(s)).contains(&code::UNIT_KEYS));
}

#[test]
fn a_declared_slope_is_noted_with_the_derivative_it_replaces() {
    let mut s = Sample::new(Kept::Matrix);
    let t = &mut s.layer.terms;
    let (y, v) = (t.use_var(s.layer.bias.answer), t.use_var(s.layer.value));
    let e = t.sub(y, v).unwrap();
    s.layer.bias.slope = Some(t.fn1(miras_base::scalar::Fn1::Tanh, e).unwrap());
    let rule = rule(s);
    let note = rule.warnings.iter().find(|w| w.code == code::DECLARED).expect("a note");
    assert!(note.message.contains("tanh(y - v)"));
    assert_eq!(note.notes, ["the derivative of its loss is y - v"]);
}
