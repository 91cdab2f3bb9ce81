//! Formulas mean what the terms mean that they were made from, and the chunk's form gives the recurrence.

mod eval;
mod frozen;

use crate::document::{Document, Written};
use crate::math::Math;
use eval::{World, key};
use miras_base::SourceMap;
use miras_rule::UpdateRule;
use miras_schedule::Request;
use miras_spec::{Library, Program, Source};

use miras_term::{Env, Op, Role, Tensor, VarId};
use std::collections::HashMap;

/// Sizes of the memory; different where the layer allows it.
const SIZES: [u64; 2] = [3, 3];

/// Numbers between 0.1 and 0.9.
struct Random(u64);

impl Random {
    fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.1 + 0.8 * ((self.0 >> 33) as f64 / (1u64 << 31) as f64)
    }

    fn tensor(&mut self, rule: &UpdateRule, var: VarId, env: &Env) -> Tensor {
        let terms = rule.terms();
        let shape = terms.sizes(&terms.var(var).shape, env).expect("sizes");
        let data = (0..shape.iter().product()).map(|_| self.number()).collect();
        Tensor { shape, data }
    }
}

fn program() -> (Program, SourceMap) {
    let mut sources = SourceMap::new();
    let (program, _) = Program::of_library(&mut sources, &Library::standard());
    (program, sources)
}

fn rules() -> Vec<(String, UpdateRule)> {
    let (program, mut sources) = program();
    let names = program.library_layers().into_iter().map(|l| l.name);
    names
        .map(|name| {
            let (layer, _) = program.elaborate(&mut sources, Some(&name), &[]).expect("a layer");
            let rule = miras_rule::derive(layer).expect("a rule");
            (name, rule)
        })
        .collect()
}

fn env() -> Env {
    let dims = [("dk".into(), SIZES[0]), ("dv".into(), SIZES[1])].into();
    Env { dims, head: 1, heads: 2, layer: 0, layers: 1, vars: HashMap::new() }
}

/// Places and sizes by their words.
fn words() -> HashMap<String, Tensor> {
    let [dk, dv] = SIZES.map(|n| n as f64);
    let all = [("dk", dk), ("dv", dv), ("head", 1.0), ("heads", 2.0), ("layer", 0.0), ("layers", 1.0)];
    all.map(|(name, x)| (name.to_string(), Tensor::scalar(x))).into()
}

fn near(a: &Tensor, b: &Tensor, what: &str) {
    let largest = b.data.iter().fold(1e-12f64, |m, x| m.max(x.abs()));
    let count = a.data.len() == b.data.len() || a.data.len() == 1;
    let off = b.data.iter().enumerate().map(|(n, y)| (a.data[n.min(a.data.len() - 1)] - y).abs());
    assert!(count && off.fold(0.0, f64::max) <= 1e-9 * largest, "{what}: {a:?} against {b:?}");
}

/// Every printed equation of every derivation has the value of its term.
#[test]
fn formulas_have_the_values_of_their_terms() {
    let mut random = Random(1);
    let mut seen = 0;
    for (layer, rule) in rules() {
        let (terms, mut env) = (rule.terms(), env());
        let mut world = World { values: words(), ..World::default() };
        for (id, var) in terms.vars() {
            let value = random.tensor(&rule, id, &env);
            if !matches!(var.role, Role::Bound) || !world.values.contains_key(&var.name) {
                world.values.insert(var.name.clone(), value.clone());
            }
            env.vars.insert(id, world.values[&var.name].clone());
        }
        for named in rule.gradients.iter().flat_map(|g| &g.named) {
            world.values.insert(named.name.clone(), terms.eval_one(named.term, &env).expect("a value"));
        }
        // The answer in a loss and the answer to the key have one name.
        if let Some(answer) = world.values.get(&terms.var(rule.layer.bias.answer).name) {
            env.vars.insert(rule.layer.bias.answer, answer.clone());
        }
        let scope = crate::document::scope(&rule);
        for equation in rule.derivation.steps.iter().flat_map(|s| &s.equations) {
            let root =
                terms.reachable(&[equation.right]).into_iter().any(|id| matches!(terms.op(id), Op::Root(_)));
            if root {
                continue;
            }
            let math = scope.without(equation.right).math(equation.right);
            let shown = match scope.names.contains_key(&equation.right) {
                // A name stands for itself; what it is named for is evaluated.
                true => {
                    World { values: without(&world.values, &scope.names[&equation.right]), ..world.clone() }
                }
                false => world.clone(),
            };
            let value = terms.eval_one(equation.right, &env).expect("a value");
            near(&shown.eval(&math), &value, &format!("{layer}: {} = {}", equation.left, math.text()));
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

fn without(values: &HashMap<String, Tensor>, name: &str) -> HashMap<String, Tensor> {
    let mut values = values.clone();
    values.remove(name);
    values
}

/// The exact chunk forms, evaluated as printed, give the recurrence of the closed form, token by token.
#[test]
fn exact_chunks_give_the_recurrence() {
    const TOKENS: i64 = 5;
    let mut seen = 0;
    for (layer, rule) in rules() {
        let plan = miras_schedule::plan(rule.clone(), Request::Default).expect("a plan");
        let document = Document::new(&plan, &Written::default());
        let formulas: Vec<_> = document.chunk.steps.iter().flat_map(|s| s.formulas.clone()).collect();
        let exact = document.schedule.exact == Some(true) && rule.layer.memory.weights.len() == 1;
        if !exact || formulas.is_empty() || rule.layer.repeats() > 1 {
            continue;
        }
        let (terms, mut random) = (rule.terms(), Random(7));
        let mut env = env();
        let along_columns = formulas.iter().any(|f| f.remark == "one value for each column");
        let mut world =
            World { values: words(), functions: formulas.clone(), along_columns, ..World::default() };
        let weight = &rule.layer.memory.weights[0];
        env.vars.insert(weight.var, random.tensor(&rule, weight.var, &env));
        world.values.insert(key("W", 0), env.vars[&weight.var].clone());
        let fixed: Vec<VarId> =
            rule.layer.params.iter().filter(|p| !per_token(&p.source)).map(|p| p.var).collect();
        for var in &fixed {
            env.vars.insert(*var, random.tensor(&rule, *var, &env));
            world.values.insert(terms.var(*var).name.clone(), env.vars[var].clone());
        }
        for t in 1..=TOKENS {
            let own = rule.layer.params.iter().filter(|p| per_token(&p.source)).map(|p| p.var);
            for var in own.chain([rule.layer.query, rule.layer.key, rule.layer.value]) {
                env.vars.insert(var, random.tensor(&rule, var, &env));
                world.values.insert(key(&terms.var(var).name, t), env.vars[&var].clone());
            }
            world.tokens.insert("t".into(), t);
            world.tokens.insert("C".into(), t);
            let next = rule.derivation.steps.last().expect("steps").equations[0].right;
            let after = terms.eval_one(next, &env).expect("a value");
            env.vars.insert(weight.var, after.clone());
            let asked = env.vars[&rule.layer.query].clone();
            env.vars.insert(rule.layer.memory.argument, asked);
            let answer = terms.eval_one(rule.layer.memory.read.expect("a read"), &env).expect("a value");
            for f in &formulas {
                let Math::Symbol(s) = &f.left else { continue };
                let value = world.eval(&f.right);
                match s.stem.as_str() {
                    "W" => near(&value, &after, &format!("{layer}: {}", f.text())),
                    "o" => near(&value, &answer, &format!("{layer}: {}", f.text())),
                    _ => drop(world.values.insert(world.key_of(&f.left), value)),
                }
            }
        }
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

/// Whether a parameter has a value for each token.
fn per_token(source: &Source) -> bool {
    match source {
        Source::Learned(_) | Source::Input => true,
        Source::Trained(_) | Source::Slow(_) => false,
    }
}
