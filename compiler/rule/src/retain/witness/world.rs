//! A layer with a retention written in the language, its solution, and random data for both.

use crate::algebra::Bounds;
use crate::algebra::Dice;
use crate::calculus::gradient;
use crate::rule::{DerivationStep, Retained};
use miras_base::{Diagnostic, DimEnv, SourceMap};
use miras_spec as spec;
use miras_term::{Axis, Env, Tensor, TermId, VarId};
use std::sync::Arc;

/// Rows and columns of the weight.
pub(super) const ROWS: usize = 3;
pub(super) const COLS: usize = 4;

pub(super) struct World {
    pub layer: spec::Layer,
    pub solved: Retained,
    pub told: Vec<DerivationStep>,
}

/// A layer of a matrix memory whose retention is `clause`, with `definitions` before it.
pub(super) fn layer(definitions: &str, clause: &str) -> spec::Layer {
    layer_of(definitions, "matrix", clause)
}

/// The same with another memory.
pub(super) fn layer_of(definitions: &str, memory: &str, clause: &str) -> spec::Layer {
    let text =
        format!("{definitions}\nmemory: {memory}; bias: l2; retention: {clause}; algo: gd(eta = learned);\n");
    let mut sources = SourceMap::default();
    let root = sources.add("test.miras", text);
    let mut reader = |_: &str| Err("no files here".to_string());
    let (program, problems) =
        spec::Program::load(&mut sources, root, &spec::Library::standard(), &mut reader);
    assert!(!problems.iter().any(Diagnostic::is_error), "{problems:?}");
    match program.elaborate(&mut sources, None, &[]) {
        Ok((layer, _)) => layer,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// The solution of a retention.
pub(super) fn solve(definitions: &str, clause: &str) -> World {
    let mut layer = layer(definitions, clause);
    match super::super::solve(&mut layer, 0) {
        Ok((solved, told)) => World { layer, solved, told },
        Err(d) => panic!("{d}\n{:#?}", d.notes),
    }
}

/// The refusal of a retention.
pub(super) fn refusal(definitions: &str, clause: &str) -> Diagnostic {
    let mut layer = layer(definitions, clause);
    match super::super::solve(&mut layer, 0) {
        Ok((solved, _)) => {
            panic!("solved: {}", miras_term::print(&layer.terms, solved.advance, &Default::default()))
        }
        Err(d) => d,
    }
}

impl World {
    pub fn text(&self, t: TermId) -> String {
        miras_term::print(&self.layer.terms, t, &Default::default())
    }

    pub fn retention(&self) -> &spec::Retention {
        &self.layer.retention[0]
    }

    pub fn weight(&self) -> VarId {
        self.layer.memory.weights[0].var
    }

    /// Parameters at random, weights within bounds, u of some size.
    pub fn env(&self, dice: &mut Dice, weights: Bounds) -> Env {
        let dims = DimEnv::from([(Arc::from("dv"), ROWS as u64), (Arc::from("dk"), COLS as u64)]);
        let mut env = Env { dims, heads: 4, layers: 2, ..Env::default() };
        for p in &self.layer.params {
            let bounds = match p.kind {
                spec::Kind::Real => Bounds::REALS,
                spec::Kind::Positive => Bounds::open(0.05, 1.5),
                spec::Kind::Unit => Bounds::UNIT,
            };
            let shape = self.layer.terms.sizes(&self.layer.terms.var(p.var).shape, &env).unwrap();
            env.vars.insert(p.var, random(dice, shape, bounds));
        }
        env.vars.insert(self.weight(), random(dice, vec![ROWS, COLS], weights));
        let update = random(dice, vec![ROWS, COLS], Bounds::open(-1.0, 1.0));
        env.vars.insert(self.retention().update, update);
        env
    }

    /// One step from the weights in `env`: the weights after it.
    pub fn step(&self, env: &Env) -> Tensor {
        let mut env = env.clone();
        let t = &self.layer.terms;
        if let Some(start) = self.solved.start {
            let start = t.eval_one(start, &env).unwrap();
            env.vars.insert(self.solved.carried, start);
        }
        let next = self.carried_after(&env);
        env.vars.insert(self.solved.carried, next.clone());
        match self.solved.value {
            Some(value) => t.eval_one(value, &env).unwrap(),
            None => next,
        }
    }

    /// What is carried after a step from what is carried in `env`.
    pub fn carried_after(&self, env: &Env) -> Tensor {
        let mut env = env.clone();
        let next = self.layer.terms.eval_one(self.solved.advance, &env).unwrap();
        match self.solved.finish {
            Some(finish) => {
                env.vars.insert(self.solved.carried, next);
                self.layer.terms.eval_one(finish, &env).unwrap()
            }
            None => next,
        }
    }

    /// The derivative of the objective as the definition states it, at weights `after`.
    pub fn slope(&mut self, env: &Env, after: &Tensor) -> Tensor {
        let objective = self.objective();
        let new_weight = self.retention().new_weight;
        let slope = gradient(&mut self.layer.terms, objective, &[new_weight]).unwrap()[0];
        self.at(slope, env, after)
    }

    /// The objective itself, at weights `after`.
    pub fn value(&mut self, env: &Env, after: &Tensor) -> f64 {
        let objective = self.objective();
        self.at(objective, env, after).data[0]
    }

    fn at(&self, term: TermId, env: &Env, after: &Tensor) -> Tensor {
        let mut env = env.clone();
        env.vars.insert(self.retention().new_weight, after.clone());
        self.layer.terms.eval_one(term, &env).unwrap()
    }

    /// As the definition states it: -<u, W'> + local + global, or potential - <A', W'>.
    fn objective(&mut self) -> TermId {
        let retention = self.retention().clone();
        let (drive, parts) = match retention.form {
            spec::Form::Objective { local, global, .. } => {
                (retention.update, local.into_iter().chain(global).collect())
            }
            spec::Form::Lazy { dual, potential, .. } => (dual[1], vec![potential]),
            spec::Form::DeclaredDual { .. } | spec::Form::DeclaredMap { .. } => panic!("no objective"),
        };
        let t = &mut self.layer.terms;
        let (w, u) = (t.use_var(retention.new_weight), t.use_var(drive));
        let inner = t.dot(w, u).unwrap();
        let mut objective = t.neg(inner).unwrap();
        for part in parts {
            objective = t.add(objective, part).unwrap();
        }
        objective
    }
}

pub(super) fn random(dice: &mut Dice, shape: Vec<usize>, bounds: Bounds) -> Tensor {
    let n = shape.iter().product();
    Tensor { data: (0..n).map(|_| dice.within(bounds)).collect(), shape }
}

/// Scales the slices of a matrix to a sum.
pub(super) fn normalised(mut w: Tensor, axis: Axis, mass: f64) -> Tensor {
    for slice in slices(axis) {
        let sum: f64 = slice.iter().map(|i| w.data[*i]).sum();
        for i in slice {
            w.data[i] *= mass / sum;
        }
    }
    w
}

/// Indices of the entries of each slice of the weight.
pub(super) fn slices(axis: Axis) -> Vec<Vec<usize>> {
    match axis {
        Axis::All => vec![(0..ROWS * COLS).collect()],
        Axis::Row => (0..ROWS).map(|i| (0..COLS).map(|j| i * COLS + j).collect()).collect(),
        Axis::Column => (0..COLS).map(|j| (0..ROWS).map(|i| i * COLS + j).collect()).collect(),
    }
}

pub(super) fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b}");
}
