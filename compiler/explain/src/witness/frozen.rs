//! Chunks with frozen gradients, evaluated as printed, against what follows from the frozen gradients.

use super::eval::{World, key};
use super::{Random, env, near, per_token, rules, words};
use crate::document::{Document, Written};
use crate::math::{Formula, Math};
use miras_rule::{Inside, UpdateRule};
use miras_schedule::Request;
use miras_spec::{Algo, Step};
use miras_term::{Env, Tensor, VarId};

const TOKENS: i64 = 4;

/// What retention and the algorithm make of the gradients at the starting weights, and what is read from that, is what
/// the printed formulas give.
#[test]
fn frozen_chunks_give_what_follows_from_the_frozen_gradients() {
    let mut seen = 0;
    for (layer, rule) in rules() {
        let plan = miras_schedule::plan(rule.clone(), Request::Default).expect("a plan");
        let document = Document::new(&plan, &Written::default());
        let Algo::Step(step) = &rule.layer.algo else { continue };
        if document.schedule.exact != Some(false) {
            continue;
        }
        let formulas = document.chunk.steps.iter().flat_map(|s| s.formulas.clone()).collect();
        let mut chunk = Chunk::begin(&layer, &rule, step, formulas);
        for t in 1..=TOKENS {
            chunk.token(t);
            chunk.gradients();
            chunk.advance();
            let answer = chunk.answer();
            chunk.compare(t, &answer);
        }
        seen += 1;
    }
    assert!(seen >= 7, "{seen}");
}

/// A chunk twice: the terms of the rule in `env`, the printed formulas in `world`.
struct Chunk<'a> {
    layer: &'a str,
    rule: &'a UpdateRule,
    step: &'a Step,
    formulas: Vec<Formula>,
    world: World,
    env: Env,
    random: Random,
    /// The carried values and states at the start.
    start: Env,
    /// The weights at the start.
    frozen: Vec<(VarId, Tensor)>,
}

impl<'a> Chunk<'a> {
    fn begin(layer: &'a str, rule: &'a UpdateRule, step: &'a Step, formulas: Vec<Formula>) -> Chunk<'a> {
        let (terms, mut random, mut env) = (rule.terms(), Random(11), env());
        let mut world = World { values: words(), functions: formulas.clone(), ..World::default() };
        let fixed = rule.layer.params.iter().filter(|p| !per_token(&p.source)).map(|p| p.var);
        let carried = rule.retention.iter().map(|r| r.carried);
        let states = step.states.iter().map(|s| s.old);
        for var in fixed.chain(carried).chain(states) {
            let value = random.tensor(rule, var, &env);
            let name = &terms.var(var).name;
            world.values.insert(name.clone(), value.clone());
            world.values.insert(key(name, 0), value.clone());
            env.vars.insert(var, value);
        }
        let start = env.clone();
        let mut frozen = Vec::new();
        for (r, w) in rule.retention.iter().zip(&rule.layer.memory.weights) {
            let own = || start.vars[&r.carried].clone();
            let value = r.value.map_or_else(own, |v| terms.eval_one(v, &start).expect("a weight"));
            world.values.insert(key(&w.display, 0), value.clone());
            frozen.push((w.var, value));
        }
        Chunk { layer, rule, step, formulas, world, env, random, start, frozen }
    }

    /// Draws what comes with a token.
    fn token(&mut self, t: i64) {
        let layer = &self.rule.layer;
        let own = layer.params.iter().filter(|p| per_token(&p.source)).map(|p| p.var);
        for var in own.chain([layer.query, layer.key, layer.value]) {
            let value = self.random.tensor(self.rule, var, &self.env);
            self.world.values.insert(key(&self.rule.terms().var(var).name, t), value.clone());
            self.env.vars.insert(var, value);
        }
        for letter in ["i", "t"] {
            self.world.tokens.insert(letter.into(), t);
        }
    }

    /// The gradients at the starting weights.
    fn gradients(&mut self) {
        let mut at_start = self.env.clone();
        at_start.vars.extend(self.frozen.iter().cloned());
        for (g, p) in self.rule.gradients.iter().zip(&self.step.points) {
            at_start.vars.extend(g.at_vars.iter().zip(&self.frozen).map(|(at, (_, w))| (*at, w.clone())));
            for (sum, var) in g.by_weight.iter().zip(&p.gradients) {
                let whole = sum.whole.expect("a gradient");
                self.env.vars.insert(*var, self.rule.terms().eval_one(whole, &at_start).expect("a value"));
            }
        }
    }

    /// The algorithm's states, the steps and the carried values.
    fn advance(&mut self) {
        let terms = self.rule.terms();
        for s in &self.step.states {
            let value = terms.eval_one(s.next, &self.env).expect("a value");
            self.env.vars.insert(s.new, value);
        }
        let mut after = Vec::new();
        for (r, direction) in self.rule.retention.iter().zip(&self.step.direction) {
            let u = terms.eval_one(*direction, &self.env).expect("a value");
            self.env.vars.insert(r.update, u);
            after.push((r.carried, terms.eval_one(r.advance, &self.env).expect("a value")));
        }
        after.extend(self.step.states.iter().map(|s| (s.old, self.env.vars[&s.new].clone())));
        self.env.vars.extend(after);
    }

    /// What q reads from the weights inside the chunk.
    fn answer(&self) -> Tensor {
        let (terms, memory) = (self.rule.terms(), &self.rule.layer.memory);
        let mut reading = self.env.clone();
        for (r, w) in self.rule.retention.iter().zip(&memory.weights) {
            let value = match (&r.inside, r.value) {
                (Inside::Identity, _) => self.env.vars[&r.carried].clone(),
                (Inside::Mapped, Some(v)) => terms.eval_one(v, &self.env).expect("a value"),
                (Inside::FrozenScale(s), _) => {
                    let s = terms.eval_one(*s, &self.start).expect("a scale").data[0];
                    let of = &self.env.vars[&r.carried];
                    Tensor { shape: of.shape.clone(), data: of.data.iter().map(|x| x * s).collect() }
                }
                (inside, _) => panic!("{}: {inside:?} is in no layer of the library", self.layer),
            };
            reading.vars.insert(w.var, value);
        }
        reading.vars.insert(memory.argument, self.env.vars[&self.rule.layer.query].clone());
        terms.eval_one(memory.read.expect("a read"), &reading).expect("a value")
    }

    /// The printed formulas of a token, in their order.
    fn compare(&mut self, t: i64, answer: &Tensor) {
        let mut answered = false;
        for f in &self.formulas {
            let at_end = matches!(&f.left, Math::Symbol(s) if s.time == "C");
            let of_tokens = matches!(&f.left, Math::Call(n, ..) if !n.ends_with('\''));
            if at_end || of_tokens {
                continue;
            }
            let (value, name) = (self.world.eval(&f.right), self.world.key_of(&f.left));
            let told = format!("{}: {}", self.layer, f.text());
            let own = |v: VarId| key(&self.rule.terms().var(v).name, t) == name;
            if let Some(r) = self.rule.retention.iter().find(|r| own(r.carried)) {
                near(&value, &self.env.vars[&r.carried], &told);
            }
            if name == key("o", t) {
                near(&value, answer, &told);
                answered = true;
            }
            self.world.values.insert(name, value);
        }
        assert!(answered, "{}: no formula says what a token reads", self.layer);
    }
}
