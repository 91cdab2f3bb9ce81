//! The order of the rooms, as an observer sees it.

use miras_base::{DimEnv, SourceMap};
use miras_driver::{Artefact, Choice, Observer, Session, Stage};
use miras_schedule as schedule;
use miras_spec as spec;
use miras_tensor as tensor;

#[derive(Default)]
struct Seen(Vec<(Stage, String)>);

impl Observer for Seen {
    fn made(&mut self, artefact: &Artefact<'_>, _: &SourceMap) {
        self.0.push((artefact.stage(), artefact.text()));
    }
}

const PROGRAM: &str = "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(eta = 0.1)";

#[test]
fn rooms_run_from_left_to_right_and_each_can_be_shown() {
    let mut seen = Seen::default();
    let mut session = Session::new(spec::Library::standard()).observed(&mut seen);
    let root = session.add("a.miras", PROGRAM);
    let program = session.load(root, &mut |_| Err("nothing is used".into())).expect("loads").value;
    let rule = session.rule(&program, &Choice::default()).expect("derives").value;
    let plan = session.plan(rule, schedule::Request::Recurrent).expect("plans").value;
    let sizes = tensor::Sizes { dims: DimEnv::from([("dk".into(), 3), ("dv".into(), 2)]) };
    session.compile(&plan, &sizes, tensor::Start::Weights).expect("compiles");
    let stages: Vec<Stage> = seen.0.iter().map(|(stage, _)| *stage).collect();
    assert_eq!(stages, [Stage::Layer, Stage::Rule, Stage::Plan, Stage::Graph, Stage::Program]);
    for (stage, text) in &seen.0 {
        assert!(text.ends_with('\n') && text.len() > 20, "{stage:?}: {text:?}");
    }
}

#[test]
fn nothing_behind_a_mistake_is_run() {
    let mut seen = Seen::default();
    let mut session = Session::new(spec::Library::standard()).observed(&mut seen);
    let root = session.add("a.miras", "memory: matrix; bias: nobody; retention: none; algo: gd");
    let program = session.load(root, &mut |_| Err("nothing is used".into())).expect("loads").value;
    let errors = session.rule(&program, &Choice::default()).expect_err("the bias is not known");
    assert_eq!(errors[0].code.0, "E0101");
    assert!(seen.0.is_empty());
}

#[test]
fn a_program_without_any_library_compiles() {
    let mut session = Session::new(spec::Library::empty());
    let text = "
        memory m { weight W: [dv, dk]; read(x) = W @ x; }
        bias b { loss = sum((y - v)^2) / 2; }
        retention r { local(W, P) = sum((W - P)^2) / 2; }
        algo a { direction = -0.1 * grad(W); }
        memory: m; bias: b; retention: r; algo: a";
    let root = session.add("a.miras", text);
    let program = session.load(root, &mut |_| Err("nothing is used".into())).expect("loads").value;
    let rule = session.rule(&program, &Choice::default()).expect("derives").value;
    assert_eq!(rule.layer.name, "anonymous");
}

#[test]
fn definitions_that_no_layer_uses_are_derived() {
    let alone = |text: &str| {
        let mut session = Session::new(spec::Library::standard());
        let root = session.add("a.miras", text);
        let program = session.load(root, &mut |_| Err("nothing is used".into())).expect("loads").value;
        let (count, problems) = session.check_alone(&program);
        for problem in &problems {
            assert!(problem.labels.iter().all(|l| l.span.file == root), "{problem:?}");
            assert!(!problem.labels.is_empty(), "{problem:?}");
        }
        (count, problems.iter().map(|p| p.code.0).collect::<Vec<_>>())
    };
    let stiff =
        "retention r(alpha: unit) { local(W, P) = sum((W - P)^2) / 2; global(W) = sum(exp(W)); BODY }";
    assert_eq!(alone(&stiff.replace("BODY", "")), (1, vec!["E0302"]));
    assert_eq!(alone(&stiff.replace("BODY", "solve: newton(8);")), (1, Vec::new()));
    // It can be solved for one number and not for another: what it is given decides.
    let halved = "retention r(alpha: unit) { local(W, P) = alpha * sum((W - P)^2); }";
    assert_eq!(alone(halved), (1, Vec::new()));
    assert_eq!(alone("retention r(f: fn) { local(W, P) = bregman(f, W, P); }"), (1, Vec::new()));
    for (path, text) in miras_stdlib::files().filter(|(path, _)| !path.starts_with("layer/")) {
        assert!(alone(text).1.is_empty(), "{path}");
    }
}
