//! The checks hold where they must, and each of them can fail.

use miras_base::{Diagnostic, SourceMap};
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;
use miras_verify::{Case, Failure, Reference, Report, Runner, Verdict, verify};

fn rule_of(text: &str) -> rule::UpdateRule {
    let mut sources = SourceMap::new();
    let root = sources.add("test.miras", text);
    let mut reader = |path: &str| Err(format!("{path} is not there"));
    let (program, problems) =
        spec::Program::load(&mut sources, root, &spec::Library::standard(), &mut reader);
    assert!(!problems.iter().any(Diagnostic::is_error), "{problems:?}");
    let (layer, _) = program.elaborate(&mut sources, None, &[]).unwrap_or_else(|d| panic!("{d:?}"));
    rule::derive(layer).unwrap_or_else(|d| panic!("{d:?}"))
}

fn data_for(rule: &rule::UpdateRule) -> host::Bundle {
    let wanted = host::Synthetic { seed: 2, batch: 2, heads: 2, tokens: 9, dk: 4, dv: 4, grad: false };
    host::synthetic(rule, &wanted).unwrap_or_else(|d| panic!("{d}"))
}

type Change = fn(&mut Vec<f64>);

/// The reference's results after a change.
struct Changed<'a> {
    reference: Reference<'a>,
    change: Change,
    only: &'static str,
}

impl Runner for Changed<'_> {
    fn name(&self) -> String {
        "changed".into()
    }

    fn run(
        &mut self,
        data: &host::Bundle,
        schedule: host::Schedule,
        grad: bool,
    ) -> Result<host::Bundle, Failure> {
        let mut results = self.reference.run(data, schedule, grad)?;
        if let Some(tensor) = results.get(self.only).cloned() {
            let mut values = tensor.f64s().unwrap_or_default().into_owned();
            (self.change)(&mut values);
            results.insert(self.only, host::Tensor::f64(tensor.shape.clone(), values));
        }
        Ok(results)
    }
}

fn report(rule: &rule::UpdateRule, backends: &mut [Box<dyn Runner + '_>]) -> Report {
    let data = data_for(rule);
    let exact = !matches!(rule.class.kind, rule::ClassKind::DualLinear | rule::ClassKind::General);
    let case = Case { rule, data: &data, chunk: 4, exact };
    verify(&case, backends, &[]).unwrap_or_else(|d| panic!("{d:?}"))
}

fn broken(report: &Report) -> Vec<(String, String)> {
    let rows = report.sections.iter().flat_map(|s| s.rows.iter().map(move |r| (s, r)));
    let broken = rows.filter(|(_, r)| r.verdict == Verdict::Broken);
    broken.map(|(s, r)| (s.title.clone(), r.what.clone())).collect()
}

const LAYERS: [&str; 6] = [
    "memory: matrix; bias: l2; retention: l2; algo: gd(at = retained)",
    "memory: mlp(2, expand = 2); bias: huber; retention: kl; algo: momentum",
    "memory: matrix; bias: lp(3); retention: elastic; algo: gd",
    "memory: matrix; bias: huber; retention: ball(radius = 0.5); algo: gd",
    "memory: matrix; bias: robust; retention: lq_exact(1.5); algo: gd",
    "memory: cache; bias: l2; retention: none; algo: nonparametric(kernel = exp(dot(q, k)))",
];

#[test]
fn promises_hold_for_layers_of_every_kind() {
    for text in LAYERS {
        let rule = rule_of(text);
        let report = report(&rule, &mut [Box::new(Reference::new(&rule))]);
        assert_eq!(broken(&report), [], "{text}\n{}", report.text());
        assert!(report.holding() > 15, "{text}\n{}", report.text());
    }
}

#[test]
fn a_backend_that_is_off_is_found() {
    let rule = rule_of(LAYERS[0]);
    let off: [(&str, Change); 4] = [
        ("o", |v| v.iter_mut().take(5).for_each(|x| *x += 1e-2)),
        ("o", |v| v.iter_mut().take(1).for_each(|x| *x = f64::NAN)),
        ("state.memory.W", |v| v.iter_mut().for_each(|x| *x *= 1.01)),
        ("d.k", |v| v.iter_mut().take(3).for_each(|x| *x += 0.1)),
    ];
    for (only, change) in off {
        let changed = Changed { reference: Reference::new(&rule), change, only };
        let report = report(&rule, &mut [Box::new(changed)]);
        let found = broken(&report);
        assert!(
            found.iter().any(|(title, _)| title == "Backends against the reference"),
            "{only}: {found:?}"
        );
    }
}

#[test]
fn a_wrong_gradient_is_found() {
    let mut rule = rule_of(LAYERS[1]);
    let products = &mut rule.gradients[0].by_weight[1].products;
    let twice = products[0];
    products.push(twice);
    let found = broken(&report(&rule, &mut []));
    assert!(found.contains(&("Inner gradient".into(), "gradient by W[2]".into())), "{found:?}");
}

#[test]
fn a_wrong_closed_form_is_found() {
    for text in [LAYERS[0], LAYERS[2], LAYERS[4]] {
        let mut rule = rule_of(text);
        let other = rule_of("memory: matrix; bias: l2; retention: none; algo: gd");
        assert_eq!(other.retention.len(), 1);
        let retained = &mut rule.retention[0];
        let terms = &mut rule.layer.terms;
        let (half, advance) = (terms.num(0.5), retained.advance);
        retained.advance = terms.mul(half, advance).unwrap_or_else(|d| panic!("{d:?}"));
        let found = broken(&report(&rule, &mut []));
        assert!(found.contains(&("Closed form of retention".into(), "W' of W".into())), "{text}: {found:?}");
    }
}

#[test]
fn a_wrong_answer_of_a_history_is_found() {
    let refined = "memory: cache; bias: own; retention: none; algo: looks;
        bias own { loss = sum((2 * y - v)^2); }
        algo looks { weigh = 1 + dot(q, k)^2; refine: 2; window: 5; }";
    for text in [LAYERS[5], refined] {
        let title = String::from("Closed form of the answer");
        let mut rule = rule_of(text);
        let whole = report(&rule, &mut []);
        assert_eq!(broken(&whole), [], "{}", whole.text());
        assert!(whole.sections.iter().any(|s| s.title == title && s.rows[0].verdict == Verdict::Holds));
        let terms = &mut rule.layer.terms;
        let answer = rule.answer.as_mut().unwrap();
        let most = terms.num(0.99);
        answer.averaged = terms.mul(most, answer.averaged).unwrap();
        assert!(broken(&report(&rule, &mut [])).contains(&(title, "answer of the history".into())), "{text}");
    }
}

#[test]
fn a_schedule_that_is_not_exact_is_found() {
    let rule = rule_of(LAYERS[3]);
    let data = data_for(&rule);
    let case = Case { rule: &rule, data: &data, chunk: 4, exact: true };
    let report = verify(&case, &mut [], &[]).unwrap_or_else(|d| panic!("{d:?}"));
    let found = broken(&report);
    assert!(
        found.contains(&("Chunks against the recurrence".into(), "chunked(4): outputs".into())),
        "{found:?}"
    );
    let case = Case { exact: false, ..case };
    assert_eq!(broken(&verify(&case, &mut [], &[]).unwrap_or_else(|d| panic!("{d:?}"))), []);
}
