//! Whole rules of hand-built layers.

use crate::derive;
use crate::rule::ClassKind;
use crate::sample::{Kept, Sample};
use miras_base::diagnostic::code;
use miras_base::scalar::Fn1;
use miras_spec::{Algo, Kind, Per, Weigh};
use miras_term::{PrintOptions, TermId, Terms, print};

/// A memory with a history that weighs it by a kernel of q.k.
fn history(kernel: impl FnOnce(&mut Terms, TermId) -> TermId) -> Sample {
    let mut s = Sample::new(Kept::Matrix);
    s.layer.memory.weights.clear();
    s.layer.retention.clear();
    s.layer.params.clear();
    s.layer.memory.read = None;
    s.layer.memory.history = true;
    let t = &mut s.layer.terms;
    let (q, k) = (t.use_var(s.layer.query), t.use_var(s.layer.key));
    let dot = t.dot(q, k).unwrap();
    let kernel = kernel(t, dot);
    s.layer.algo = Algo::Weigh(Weigh { kernel, window: None, refinements: 0, span: None });
    s
}

#[test]
fn an_exponential_kernel_and_the_squared_error_give_attention() {
    let rule = derive(history(|t, dot| t.fn1(Fn1::Exp, dot).unwrap()).layer).expect("a rule");
    assert_eq!(rule.class.kind, ClassKind::NonParametric);
    let answer = rule.answer.as_ref().expect("an answer");
    let text = |id| print(rule.terms(), id, &PrintOptions::default());
    assert_eq!((text(answer.log_kernel), text(answer.averaged)), ("sum(q * k)".into(), "v".into()));
}

#[test]
fn a_weighted_squared_error_averages_the_values_still() {
    let mut s = history(|t, dot| {
        let (a, b) = (t.fn1(Fn1::Exp, dot).unwrap(), t.fn1(Fn1::Sigmoid, dot).unwrap());
        t.mul(a, b).unwrap()
    });
    s.loss(|t, e| {
        let (three, square) = (t.num(3.0), t.mul(e, e).unwrap());
        let scaled = t.mul(three, square).unwrap();
        t.sum(scaled).unwrap()
    });
    let rule = derive(s.layer).expect("a rule");
    let answer = rule.answer.as_ref().expect("an answer");
    let text = |id| print(rule.terms(), id, &PrintOptions::default());
    assert_eq!(text(answer.averaged), "v");
    assert_eq!(text(answer.log_kernel), "sum(q * k) + log(sigmoid(sum(q * k)))");
}

#[test]
fn what_has_no_closed_answer_is_refused() {
    let signed = derive(history(|_, dot| dot).layer).unwrap_err();
    assert_eq!(signed[0].code, code::REFUSED_PAIR);
    let mut huber = history(|t, dot| t.fn1(Fn1::Exp, dot).unwrap());
    huber.huber(Per::Token);
    assert_eq!(derive(huber.layer).unwrap_err()[0].code, code::REFUSED_PAIR);
    let mut steps = Sample::new(Kept::Matrix);
    steps.layer.memory.weights.clear();
    assert_eq!(derive(steps.layer).unwrap_err()[0].code, code::NOT_DERIVABLE);
}

#[test]
fn the_steps_tell_the_whole_way() {
    let mut s = Sample::new(Kept::Matrix);
    s.layer.params.clear();
    let alpha = s.gate("retention.alpha", Kind::Unit, Per::Token);
    s.retain_l2(alpha);
    let eta = s.gate("algo.eta", Kind::Positive, Per::Token);
    s.descend_retained(eta);
    let rule = derive(s.layer).expect("a rule");
    let choices: Vec<&str> = rule.derivation.steps.iter().map(|s| s.choice).collect();
    assert_eq!(choices[..4], ["memory", "bias", "rule", "algo"]);
    assert_eq!(choices.last(), Some(&"rule"));
    let last = &rule.derivation.steps.last().expect("steps").equations[0];
    let text = print(rule.terms(), last.right, &PrintOptions::default());
    assert_eq!(
        format!("{} = {text}", last.left),
        "W' = (1 - alpha) * W - eta * outer((1 - alpha) * W @ k - v, k)"
    );
    let notes = rule.derivation.notes.join("\n");
    assert!(notes.contains("at what retention leaves of the weights"), "{notes}");
}
