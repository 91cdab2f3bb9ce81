//! Classes of hand-built layers, and the affine form against the step it was read from.

use super::{DeltaForm, Parts, delta_form, written_out};
use crate::calculus::witness::bind;
use crate::rule::{ClassKind, UpdateRule};
use crate::sample::{Kept, Sample};
use crate::{Linear, derive};
use miras_base::scalar::{Fn1, Fn2};
use miras_spec as spec;
use miras_spec::{Kind, Per};
use miras_term::{Shape, TermId, Terms};

fn rule(sample: Sample) -> UpdateRule {
    derive(sample.layer).expect("a rule")
}

fn class(sample: Sample) -> ClassKind {
    rule(sample).class.kind
}

fn dot(s: &mut Sample) {
    let v = s.layer.terms.use_var(s.layer.value);
    let y = s.layer.terms.use_var(s.layer.bias.answer);
    s.loss(|t, _| {
        let dot = t.dot(y, v).unwrap();
        t.neg(dot).unwrap()
    });
}

/// The affine form of a rule, checked against the step at a random point.
fn checked_form(rule: &mut UpdateRule) -> DeltaForm {
    let spec::Algo::Step(step) = rule.layer.algo.clone() else { panic!("a step") };
    let parts = Parts { step: &step, gradients: &rule.gradients, retention: &rule.retention };
    let form = delta_form(&mut rule.layer, parts).expect("no contradiction").expect("an affine form");
    let u = written_out(&mut rule.layer, parts).unwrap().updates[0];
    let w = rule.layer.memory.weights[0].var;
    let rebuilt = rebuilt(&mut rule.layer.terms, &form, w);
    let env = bind(&rule.layer.terms, -1.0, 1.5);
    let a = rule.layer.terms.eval_one(u, &env).unwrap();
    let b = rule.layer.terms.eval_one(rebuilt, &env).unwrap();
    for (x, y) in a.data.iter().zip(&b.data) {
        assert!((x - y).abs() < 1e-12, "{x} and {y}");
    }
    form
}

fn rebuilt(t: &mut Terms, form: &DeltaForm, w: miras_term::VarId) -> TermId {
    let shape: Shape = t.var(w).shape.clone();
    let w = t.use_var(w);
    let mut sum = form.write.unwrap_or_else(|| t.fill(0.0, shape));
    if let Some(d) = form.diagonal {
        let kept = t.mul(d, w).unwrap();
        sum = t.add(sum, kept).unwrap();
    }
    for c in &form.corrections {
        let one = t.num(1.0);
        let entries = t.mul(c.entry.unwrap_or(one), w).unwrap();
        let met = t.matmul(entries, c.input).unwrap();
        let left = t.mul(c.scale.unwrap_or(one), met).unwrap();
        let mut product = t.outer(left, c.right).unwrap();
        if let Some(spread) = c.spread {
            product = t.mul(spread, product).unwrap();
        }
        sum = t.add(sum, product).unwrap();
    }
    sum
}

#[test]
fn a_step_without_the_weight_is_linear() {
    let mut s = Sample::new(Kept::Matrix);
    dot(&mut s);
    let mut rule = rule(s);
    assert_eq!(rule.class.kind, ClassKind::Linear);
    assert!(matches!(&rule.retention[0].linear, Some(Linear { shift: None, .. })));
    let form = checked_form(&mut rule);
    assert!(form.corrections.is_empty() && form.diagonal.is_none());
}

#[test]
fn the_squared_error_on_a_matrix_is_a_delta_rule() {
    let mut rule = rule(Sample::new(Kept::Matrix));
    assert_eq!(rule.class.kind, ClassKind::Delta, "{}", rule.class.reason);
    assert_eq!(checked_form(&mut rule).corrections.len(), 1);
}

#[test]
fn the_gradient_at_decayed_weights_is_a_delta_rule_for_any_decay() {
    for per in [Per::Token, Per::Key, Per::Value, Per::Entry] {
        let mut s = Sample::new(Kept::Matrix);
        s.layer.params.clear();
        let alpha = s.gate("retention.alpha", Kind::Unit, per);
        s.retain_l2(alpha);
        let eta = s.gate("algo.eta", Kind::Positive, Per::Value);
        s.descend_retained(eta);
        let mut rule = rule(s);
        assert_eq!(rule.class.kind, ClassKind::Delta, "{}", rule.class.reason);
        assert!(checked_form(&mut rule).corrections[0].entry.is_some());
    }
}

#[test]
fn a_rate_for_each_entry_leaves_a_delta_rule_exact() {
    let mut s = Sample::new(Kept::Matrix);
    s.layer.params.clear();
    let eta = s.gate("algo.eta", Kind::Positive, Per::Entry);
    s.descend(eta);
    let mut rule = rule(s);
    assert_eq!(rule.class.kind, ClassKind::Delta, "{}", rule.class.reason);
    assert!(checked_form(&mut rule).corrections[0].spread.is_some());
}

/// A direction of W from [k, v, kappa, a].
type Spelling = fn(&mut Terms, TermId, [TermId; 4]) -> TermId;

#[test]
fn written_out_spellings_of_a_delta_rule_are_recognised() {
    let spellings: [Spelling; 3] = [
        |t, w, [k, v, kappa, a]| {
            let (write, met) = (t.outer(v, k).unwrap(), t.matmul(w, kappa).unwrap());
            let right = t.mul(a, kappa).unwrap();
            let removed = t.outer(met, right).unwrap();
            t.sub(write, removed).unwrap()
        },
        |t, w, [k, v, kappa, a]| {
            let right = t.mul(a, kappa).unwrap();
            let projector = t.outer(kappa, right).unwrap();
            let (removed, write) = (t.matmul(w, projector).unwrap(), t.outer(v, k).unwrap());
            let minus = t.neg(removed).unwrap();
            t.add(minus, write).unwrap()
        },
        |t, w, [k, v, _, _]| {
            let eye = t.eye(miras_base::Dim::dk());
            let (square, half) = (t.outer(k, k).unwrap(), t.num(0.5));
            let both = t.add(square, eye).unwrap();
            let product = t.matmul(w, both).unwrap();
            let removed = t.mul(half, product).unwrap();
            let write = t.outer(v, k).unwrap();
            t.sub(write, removed).unwrap()
        },
    ];
    for spelling in spellings {
        let mut s = Sample::new(Kept::Matrix);
        let kappa = s.gate("input.kappa", Kind::Real, Per::Key);
        let a = s.gate("input.a", Kind::Real, Per::Key);
        let t = &mut s.layer.terms;
        let (kappa, a) = (t.flat(kappa).unwrap(), t.flat(a).unwrap());
        let (k, v) = (t.use_var(s.layer.key), t.use_var(s.layer.value));
        s.direct(|t, w| {
            let w = t.use_var(w);
            spelling(t, w, [k, v, kappa, a])
        });
        let mut rule = rule(s);
        assert_eq!(rule.class.kind, ClassKind::Delta, "{}", rule.class.reason);
        assert_eq!(checked_form(&mut rule).corrections.len(), 1);
    }
}

#[test]
fn a_diagonal_memory_is_affine_entry_by_entry() {
    let mut rule = rule(Sample::new(Kept::Vector));
    assert_eq!(rule.class.kind, ClassKind::Delta);
    let spec::Algo::Step(step) = rule.layer.algo.clone() else { panic!("a step") };
    let parts = Parts { step: &step, gradients: &rule.gradients, retention: &rule.retention };
    let form = delta_form(&mut rule.layer, parts).unwrap().unwrap();
    assert!(form.corrections.is_empty() && form.diagonal.is_some());
}

#[test]
fn nonlinear_gradients_and_momentum_are_linear_in_the_carried_value_only() {
    let mut huber = Sample::new(Kept::Matrix);
    huber.huber(Per::Token);
    let mut momentum = Sample::new(Kept::Matrix);
    let (eta, mu) = (
        momentum.gate("algo.eta", Kind::Positive, Per::Token),
        momentum.gate("algo.mu", Kind::Unit, Per::Token),
    );
    momentum.momentum(eta, mu);
    for s in [huber, momentum, Sample::new(Kept::Mlp)] {
        let rule = rule(s);
        assert_eq!(rule.class.kind, ClassKind::DualLinear);
        assert!(rule.class.reason.contains("gradients depend on the weights"), "{}", rule.class.reason);
    }
    let mut free = Sample::new(Kept::Matrix);
    dot(&mut free);
    let (eta, mu) =
        (free.gate("algo.eta", Kind::Positive, Per::Token), free.gate("algo.mu", Kind::Unit, Per::Token));
    free.momentum(eta, mu);
    let rule = rule(free);
    assert_eq!(rule.class.kind, ClassKind::DualLinear);
    assert!(rule.class.reason.contains("do not depend on the weights"), "{}", rule.class.reason);
}

#[test]
fn a_state_that_feeds_back_on_itself_runs_token_by_token() {
    let mut s = Sample::new(Kept::Matrix);
    let eta = s.gate("algo.eta", Kind::Positive, Per::Token);
    let mu = s.gate("algo.mu", Kind::Unit, Per::Token);
    s.momentum(eta, mu);
    let spec::Algo::Step(step) = &mut s.layer.algo else { panic!("a step") };
    let t = &mut s.layer.terms;
    step.states[0].next = t.fn1(Fn1::Tanh, step.states[0].next).unwrap();
    assert_eq!(class(s), ClassKind::TokenByToken);
}

#[test]
fn a_step_that_uses_the_weights_beside_the_gradient_runs_token_by_token() {
    let mut s = Sample::new(Kept::Matrix);
    s.direct(|t, w| {
        let w = t.use_var(w);
        let square = t.fn2(Fn2::Mul, w, w).unwrap();
        t.neg(square).unwrap()
    });
    assert_eq!(class(s), ClassKind::TokenByToken);
}

#[test]
fn many_shared_sums_end_quickly() {
    let mut s = Sample::new(Kept::Matrix);
    let (a, b) = (s.gate("algo.a", Kind::Real, Per::Token), s.gate("algo.b", Kind::Real, Per::Token));
    s.direct(|t, w| {
        let mut sum = t.use_var(w);
        for _ in 0..200 {
            let (left, right) = (t.mul(a, sum).unwrap(), t.mul(b, sum).unwrap());
            sum = t.add(left, right).unwrap();
        }
        sum
    });
    assert_eq!(class(s), ClassKind::TokenByToken);
}
