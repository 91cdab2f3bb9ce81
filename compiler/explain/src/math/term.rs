//! Terms as formulas.

use super::{Dot, Math, build, name::symbol, named, number};
use miras_base::scalar::{Fn1, Fn2};
use miras_spec::{Layer, Source};
use miras_term::{Axis, Op, Place, Reduce, Role, TermId, VarId};
use std::collections::HashMap;

/// What a formula is written within: the names of intermediate results and the token it speaks of.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    /// The layer whose terms are written.
    pub layer: &'a Layer,
    /// Terms that are written by name.
    pub names: HashMap<TermId, String>,
    /// Variables that are written as others.
    pub stand_for: HashMap<VarId, VarId>,
    /// The token; None: names stand without one, as in a derivation.
    pub time: Option<Time>,
}

/// The tokens that a formula's names belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// Of what comes with the token: k, v, gates, gradients, new states.
    pub token: &'static str,
    /// Of q.
    pub query: &'static str,
    /// Of the weights and duals.
    pub weights: &'static str,
    /// Of the algorithm's states before the step.
    pub states: &'static str,
}

impl<'a> Scope<'a> {
    /// A scope without a token.
    pub(crate) fn new(layer: &'a Layer, names: HashMap<TermId, String>) -> Scope<'a> {
        Scope { layer, names, stand_for: HashMap::new(), time: None }
    }

    /// The same scope at a token.
    pub(crate) fn at(&self, token: &'static str, weights: &'static str, states: &'static str) -> Self {
        let time = Some(Time { token, query: token, weights, states });
        Scope { time, ..self.clone() }
    }

    /// The same scope with another token for q.
    pub(crate) fn asked(mut self, query: &'static str) -> Self {
        self.time = self.time.map(|time| Time { query, ..time });
        self
    }

    /// The same scope where a term is written out although it has a name.
    pub(crate) fn without(&self, id: TermId) -> Self {
        let mut scope = self.clone();
        scope.names.remove(&id);
        scope
    }

    /// The same scope with one more name.
    pub(crate) fn with(&self, id: TermId, name: &str) -> Self {
        let mut scope = self.clone();
        scope.names.insert(id, name.into());
        scope
    }

    /// A variable.
    pub(crate) fn var(&self, id: VarId) -> Math {
        let id = self.stand_for.get(&id).copied().unwrap_or(id);
        let var = self.layer.terms.var(id);
        let math = named(&var.name);
        match (self.time.and_then(|t| self.time_of(id, t)), math) {
            (Some(time), Math::Symbol(s)) => Math::Symbol(s.at(time)),
            (_, math) => math,
        }
    }

    /// Which token a variable belongs to.
    fn time_of(&self, id: VarId, time: Time) -> Option<&'static str> {
        match self.layer.terms.var(id).role {
            Role::Query => Some(time.query),
            Role::Key | Role::Value | Role::Answer | Role::ReadArgument => Some(time.token),
            Role::Weight(_) | Role::Dual(_) | Role::Retained(_) => Some(time.weights),
            Role::NewWeight(_) | Role::NewDual(_) | Role::Update(_) | Role::Gradient { .. } => {
                Some(time.token)
            }
            Role::State(_) => Some(time.states),
            Role::NewState(_) => Some(time.token),
            Role::Parameter(_) => match self.layer.param_of(id)?.source {
                Source::Learned(_) | Source::Input => Some(time.token),
                Source::Trained(_) | Source::Slow(_) => None,
            },
            Role::Bound => None,
        }
    }

    /// A name of an intermediate result; it belongs to the token at hand.
    fn given(&self, text: &str) -> Math {
        let math = named(text);
        match self.time {
            Some(time) => at(math, time.token),
            None => math,
        }
    }

    /// A term as a formula.
    pub(crate) fn math(&self, id: TermId) -> Math {
        match self.names.get(&id) {
            Some(name) => self.given(name),
            None => self.bare(id),
        }
    }

    fn boxed(&self, id: TermId) -> Box<Math> {
        Box::new(self.math(id))
    }

    fn bare(&self, id: TermId) -> Math {
        let terms = &self.layer.terms;
        match terms.op(id) {
            Op::Const(n) => number::form(n.0),
            Op::Size(dim) => Math::Word(dim.formula()),
            Op::Place(place) => Math::Word(place_name(*place).into()),
            Op::Var(v) => self.var(*v),
            Op::Fn1(Fn1::Neg, a) => build::negated(self.math(*a)),
            Op::Fn1(f, a) => Math::Function(*f, self.boxed(*a)),
            Op::Fn2(f, a, b) => self.binary(*f, *a, *b),
            Op::Compare(c, a, b) => Math::Compare(*c, self.boxed(*a), self.boxed(*b)),
            Op::Select(c, a, b) => Math::Cases(self.boxed(*c), self.boxed(*a), self.boxed(*b)),
            Op::MatMul(a, b) => build::matmul(self.math(*a), self.math(*b)),
            Op::Outer(a, b) => build::outer(self.math(*a), self.math(*b)),
            Op::Transpose(a) => Math::Transpose(self.boxed(*a)),
            Op::Row(a) => laid("row", self.math(*a)),
            Op::Col(a) => laid("col", self.math(*a)),
            Op::Flat(a) | Op::Spread(a, _) => self.math(*a),
            Op::Reduce(op, axis, a) => Math::Call(reduction(*op).into(), along(*axis), vec![self.math(*a)]),
            Op::Norm(x, p) => Math::Norm(self.boxed(*x), self.boxed(*p)),
            Op::Softmax(axis, a) => Math::Call("softmax".into(), along(*axis), vec![self.math(*a)]),
            Op::LogSoftmax(axis, a) => Math::Call("logsoftmax".into(), along(*axis), vec![self.math(*a)]),
            Op::LayerNorm(a) => Math::Call("layernorm".into(), "", vec![self.math(*a)]),
            Op::InverseDeviation(a) => Math::Call("inverse_deviation".into(), "", vec![self.math(*a)]),
            Op::Eye(n) => Math::Call("eye".into(), "", vec![Math::Word(n.to_string())]),
            Op::Stop(a) => Math::Call("stop".into(), "", vec![self.math(*a)]),
            Op::Root(root) => {
                let r = terms.root(*root);
                Math::Root(Box::new(self.var(r.unknown)), self.boxed(r.residual))
            }
        }
    }

    fn binary(&self, f: Fn2, a: TermId, b: TermId) -> Math {
        let (x, y) = (self.math(a), self.math(b));
        match f {
            Fn2::Add => build::sum([x, y]),
            Fn2::Sub => build::difference(x, y),
            Fn2::Mul => {
                let scalar = |id| self.layer.terms.shape(id).rank() == 0;
                let dot = if scalar(a) || scalar(b) { Dot::Scalar } else { Dot::Entries };
                build::product(x, y, dot)
            }
            Fn2::Div => match x {
                Math::Neg(x) => build::negated(Math::Fraction(x, Box::new(y))),
                x => Math::Fraction(Box::new(x), Box::new(y)),
            },
            Fn2::Pow => Math::Power(Box::new(x), Box::new(y)),
            Fn2::Min => Math::Call("min".into(), "", vec![x, y]),
            Fn2::Max => Math::Call("max".into(), "", vec![x, y]),
        }
    }
}

/// A name at a token: the name itself, or the arguments of a call.
pub(crate) fn at(math: Math, time: &str) -> Math {
    match math {
        Math::Symbol(s) => Math::Symbol(s.at(time)),
        Math::Call(f, along, arguments) => {
            Math::Call(f, along, arguments.into_iter().map(|a| at(a, time)).collect())
        }
        Math::Word(text) => symbol(&text).map_or(Math::Word(text), |s| Math::Symbol(s.at(time))),
        other => other,
    }
}

/// A vector laid along an axis of a matrix; a sign is taken in front.
fn laid(along: &str, vector: Math) -> Math {
    match vector {
        Math::Neg(a) => build::negated(laid(along, *a)),
        a => Math::Call(along.into(), "", vec![a]),
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Head => "head",
        Place::Heads => "heads",
        Place::Layer => "layer",
        Place::Layers => "layers",
    }
}

fn reduction(op: Reduce) -> &'static str {
    match op {
        Reduce::Sum => "sum",
        Reduce::Max => "largest",
        Reduce::Min => "smallest",
    }
}

fn along(axis: Axis) -> &'static str {
    match axis {
        Axis::All => "",
        Axis::Row => "row",
        Axis::Column => "column",
    }
}
