//! Rules executed literally, as `rule.rs` says, against exact rationals (shared cases of the delta family).

use super::library::{From, rule_of};
use crate::rule::UpdateRule;
use miras_base::DimEnv;
use miras_spec as spec;
use miras_term::{Env, Tensor, TermId, VarId};
use std::collections::HashMap;

/// One token: k, v, q and the gates by tensor name.
struct Token<'a> {
    k: [f64; 2],
    v: [f64; 2],
    q: [f64; 2],
    gates: &'a [(&'a str, f64)],
}

/// A stream through a rule: carried values and states between tokens.
struct Stream<'a> {
    rule: &'a UpdateRule,
    kept: HashMap<VarId, Tensor>,
}

impl<'a> Stream<'a> {
    fn new(rule: &'a UpdateRule) -> Stream<'a> {
        let zeros = || Tensor::matrix(2, 2, vec![0.0; 4]);
        let mut kept: HashMap<VarId, Tensor> = rule.retention.iter().map(|r| (r.carried, zeros())).collect();
        if let spec::Algo::Step(step) = &rule.layer.algo {
            kept.extend(step.states.iter().map(|s| (s.old, zeros())));
        }
        Stream { rule, kept }
    }

    /// Advances by a token; the output.
    fn step(&mut self, token: &Token<'_>) -> Vec<f64> {
        let rule = self.rule;
        let spec::Algo::Step(step) = &rule.layer.algo else { panic!("a step") };
        let mut env = self.environment(token);
        for (weight, r) in rule.layer.memory.weights.iter().zip(&rule.retention) {
            set(rule, &mut env, weight.var, r.value.unwrap_or_else(|| term_of(rule, r.carried)));
        }
        for (var, r) in step.retained.iter().zip(&rule.retention) {
            if let Some(term) = r.retained {
                set(rule, &mut env, *var, term);
            }
        }
        for (point, gradient) in step.points.iter().zip(&rule.gradients) {
            let at: Vec<Tensor> = point.at.iter().map(|t| rule.terms().eval_one(*t, &env).unwrap()).collect();
            env.vars.extend(gradient.at_vars.iter().copied().zip(at));
            for (var, sum) in point.gradients.iter().zip(&gradient.by_weight) {
                set(rule, &mut env, *var, sum.whole.unwrap());
            }
        }
        for state in &step.states {
            set(rule, &mut env, state.new, state.next);
        }
        for (r, direction) in rule.retention.iter().zip(&step.direction) {
            set(rule, &mut env, r.update, *direction);
        }
        for state in &step.states {
            self.kept.insert(state.old, env.vars[&state.new].clone());
        }
        for (weight, r) in rule.layer.memory.weights.iter().zip(&rule.retention) {
            let carried = rule.terms().eval_one(r.advance, &env).unwrap();
            env.vars.insert(r.carried, carried.clone());
            env.vars.insert(weight.var, carried.clone());
            self.kept.insert(r.carried, carried);
        }
        env.vars.insert(rule.layer.memory.argument, Tensor::vector(token.q.to_vec()));
        rule.terms().eval_one(rule.layer.memory.read.unwrap(), &env).unwrap().data
    }

    fn environment(&self, token: &Token<'_>) -> Env {
        let dims = DimEnv::from([("dk".into(), 2), ("dv".into(), 2)]);
        let mut env = Env { dims, heads: 1, layers: 1, vars: self.kept.clone(), ..Env::default() };
        let layer = &self.rule.layer;
        for (var, x) in [(layer.key, token.k), (layer.value, token.v), (layer.query, token.q)] {
            env.vars.insert(var, Tensor::vector(x.to_vec()));
        }
        for p in &layer.params {
            let gate = token.gates.iter().find(|(name, _)| *name == p.tensor).expect("a gate");
            env.vars.insert(p.var, Tensor::scalar(gate.1));
        }
        env
    }
}

fn term_of(rule: &UpdateRule, var: VarId) -> TermId {
    rule.terms().clone().use_var(var)
}

fn set(rule: &UpdateRule, env: &mut Env, var: VarId, term: TermId) {
    let value = rule.terms().eval_one(term, env).unwrap();
    env.vars.insert(var, value);
}

const K: [[f64; 2]; 4] = [[0.6, 0.8], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]];
const V: [[f64; 2]; 4] = [[1.0, -2.0], [0.0, 1.0], [2.0, 2.0], [-1.0, 0.5]];
const Q: [[f64; 2]; 4] = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.6, -0.8]];

/// The outputs and the last weights of a layer over the four tokens.
fn run(
    text: &str,
    gates: impl Fn(usize) -> Vec<(&'static str, f64)>,
) -> (Vec<Vec<f64>>, HashMap<VarId, Tensor>, UpdateRule) {
    let rule = rule_of(&From::Text(text));
    let mut stream = Stream::new(&rule);
    let mut outputs = Vec::new();
    for t in 0..4 {
        let gates = gates(t);
        outputs.push(stream.step(&Token { k: K[t], v: V[t], q: Q[t], gates: &gates }));
    }
    let kept = stream.kept;
    (outputs, kept, rule)
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() < 1e-13, "{a:?} and {b:?}");
    }
}

#[test]
fn linear_attention_as_exact_rationals() {
    let (o, kept, rule) = run("memory: matrix; bias: dot; retention: none; algo: gd(eta = 1);", |_| vec![]);
    close(&kept[&rule.retention[0].carried].data, &[9.0 / 5.0, 7.0 / 5.0, 1.0, 0.5]);
    close(&o.concat(), &[0.6, -1.2, 0.8, -1.6, 4.2, 1.0, -0.04, 0.2]);
}

#[test]
fn the_delta_rule_as_exact_rationals() {
    let eta = [0.5, 1.0, 0.75, 2.0];
    let (o, kept, rule) =
        run("memory: matrix; bias: l2; retention: none; algo: gd;", |t| vec![("algo.eta", eta[t])]);
    let last = [189.0 / 250.0, -426.0 / 125.0, 959.0 / 500.0, 72.0 / 125.0];
    close(&kept[&rule.retention[0].carried].data, &last);
    close(&o.concat(), &[0.3, -0.6, 0.4, -0.8, 541.0 / 250.0, 1171.0 / 500.0, 159.0 / 50.0, 0.69]);
}

#[test]
fn the_gated_delta_rule_as_exact_rationals() {
    let (eta, keep) = ([0.5, 1.0, 0.75, 2.0], [1.0, 0.5, 0.0, 0.75]);
    let text = "memory: matrix; bias: l2; retention: l2; algo: gd(at = retained);";
    let (o, kept, rule) = run(text, |t| vec![("algo.eta", eta[t]), ("retention.alpha", 1.0 - keep[t])]);
    close(&kept[&rule.retention[0].carried].data, &[27.0 / 40.0, -2.9, 27.0 / 40.0, 0.1]);
    close(&o.concat(), &[0.3, -0.6, 0.2, -0.4, 2.1, 2.1, 109.0 / 40.0, 13.0 / 40.0]);
}

#[test]
fn momentum_as_exact_rationals() {
    let alpha = [0.0, 0.25, 1.0, 0.5];
    let text = "memory: matrix; bias: l2; retention: l2; algo: momentum;";
    let gates = |t: usize| vec![("algo.eta", 0.5), ("algo.mu", 0.5), ("retention.alpha", alpha[t])];
    let (_, kept, rule) = run(text, gates);
    let spec::Algo::Step(step) = &rule.layer.algo else { panic!("a step") };
    let last = [879.0 / 2000.0, -157.0 / 1000.0, 1081.0 / 1000.0, 88.0 / 125.0];
    close(&kept[&rule.retention[0].carried].data, &last);
    close(&kept[&step.states[0].old].data, &[879.0 / 4000.0, -0.5, 1081.0 / 2000.0, 0.25]);
}
