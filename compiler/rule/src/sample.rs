//! Layers built by hand for this room's tests, without the language.

use miras_base::Dim;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_spec::{
    Algo, Bias, Choice, Domain, Form, Kind, Layer, Memory, Param, Per, Point, Retention, Source, State, Step,
    Weight,
};
use miras_term::{Axis, Role, Shape, TermId, Terms, VarId};

/// A layer under construction; retention is l2 with alpha per token, algo is one gradient step.
pub(crate) struct Sample {
    pub layer: Layer,
}

/// The memories of the samples.
pub(crate) enum Kept {
    /// W x.
    Matrix,
    /// x + gain * layernorm(W[2] gelu(W[1] x)) + shift.
    Mlp,
    /// w * x.
    Vector,
}

impl Sample {
    /// A memory with the l2 bias.
    pub fn new(kept: Kept) -> Sample {
        let mut t = Terms::new();
        let (dk, dv) = (Dim::dk(), Dim::dv());
        let key_shape = Shape::vector(dk);
        let value_shape = Shape::vector(dv);
        let query = t.add_var("q", Role::Query, key_shape.clone(), None);
        let key = t.add_var("k", Role::Key, key_shape.clone(), None);
        let value = t.add_var("v", Role::Value, value_shape.clone(), None);
        let answer = t.add_var("y", Role::Answer, value_shape, None);
        let argument = t.add_var("x", Role::ReadArgument, key_shape, None);
        let empty = Memory { weights: Vec::new(), argument, read: None, history: false };
        let zero = t.num(0.0);
        let choices = ["memory", "bias", "retention", "algo"].map(choice);
        let mut layer = Layer {
            name: "sample".into(),
            span: None,
            terms: t,
            query,
            key,
            value,
            params: Vec::new(),
            ranges: Vec::new(),
            memory: empty,
            bias: Bias { answer, loss: zero, slope: None, slope_span: None },
            retention: Vec::new(),
            algo: Algo::Step(step()),
            choices,
            read_before: false,
            chunk: 64,
            constraints: Vec::new(),
        };
        remember(&mut layer, &kept);
        let mut sample = Sample { layer };
        sample.loss(|t, e| {
            let two = t.num(2.0);
            let square = t.fn2(Fn2::Pow, e, two).unwrap();
            let sum = t.sum(square).unwrap();
            t.div(sum, two).unwrap()
        });
        let alpha = sample.gate("retention.alpha", Kind::Unit, Per::Token);
        sample.retain_l2(alpha);
        let eta = sample.gate("algo.eta", Kind::Positive, Per::Token);
        sample.descend(eta);
        sample
    }

    /// A learned parameter as a term that fits a [dv, dk] weight (value: rows; key: columns; a channel is [dv] as it is).
    pub fn gate(&mut self, tensor: &str, kind: Kind, per: Per) -> TermId {
        let shape = match per {
            Per::Token => Shape::scalar(),
            Per::Channel | Per::Value => Shape::vector(Dim::dv()),
            Per::Key => Shape::vector(Dim::dk()),
            Per::Entry => Shape::matrix(Dim::dv(), Dim::dk()),
        };
        let name = tensor.rsplit('.').next().unwrap_or(tensor);
        let role = Role::Parameter(self.layer.params.len() as u32);
        let var = self.layer.terms.add_var(name, role, shape, None);
        self.layer.params.push(Param {
            tensor: tensor.into(),
            var,
            kind,
            source: Source::Learned(per),
            repeated: false,
            span: None,
            asked_by: "a test".into(),
        });
        let term = self.layer.terms.use_var(var);
        match per {
            Per::Token | Per::Entry | Per::Channel => term,
            Per::Value => self.layer.terms.col(term).unwrap(),
            Per::Key => self.layer.terms.row(term).unwrap(),
        }
    }

    /// The bias, a scalar of e = y - v.
    pub fn loss(&mut self, f: impl FnOnce(&mut Terms, TermId) -> TermId) {
        let t = &mut self.layer.terms;
        let (y, v) = (t.use_var(self.layer.bias.answer), t.use_var(self.layer.value));
        let e = t.sub(y, v).unwrap();
        self.layer.bias.loss = f(t, e);
    }

    /// Huber's loss, coordinate by coordinate.
    pub fn huber(&mut self, per: Per) {
        let delta = self.gate("bias.delta", Kind::Positive, per);
        self.loss(|t, e| {
            let magnitude = t.fn1(Fn1::Abs, e).unwrap();
            let small = t.compare(Cmp::Le, magnitude, delta).unwrap();
            let two = t.num(2.0);
            let square = t.fn2(Fn2::Pow, e, two).unwrap();
            let inside = t.div(square, two).unwrap();
            let half = t.div(delta, two).unwrap();
            let beyond = t.sub(magnitude, half).unwrap();
            let outside = t.mul(delta, beyond).unwrap();
            let each = t.select(small, inside, outside).unwrap();
            t.sum(each).unwrap()
        });
    }

    /// local = (1 - alpha) |W - P|^2 / 2, global = alpha |W|^2 / 2, where an alpha is a scalar or has the
    /// weight's shape.
    pub fn retain_l2(&mut self, alpha: TermId) {
        self.layer.retention.clear();
        for l in 0..self.layer.memory.weights.len() {
            let (new_weight, update) = self.unknowns(l);
            let t = &mut self.layer.terms;
            let (w, p) = (t.use_var(new_weight), t.use_var(self.layer.memory.weights[l].var));
            let (one, two) = (t.num(1.0), t.num(2.0));
            let keep = t.sub(one, alpha).unwrap();
            let difference = t.sub(w, p).unwrap();
            let mut half = |factor: TermId, x: TermId| {
                let square = t.fn2(Fn2::Pow, x, two).unwrap();
                let weighted = t.mul(factor, square).unwrap();
                let sum = t.sum(weighted).unwrap();
                t.div(sum, two).unwrap()
            };
            let (local, global) = (half(keep, difference), half(alpha, w));
            self.push(l, new_weight, update, Some(local), Some(global), Domain::All);
        }
    }

    /// local = (1 - alpha) sum W log(W/P), global = alpha sum W log W on rows that sum to a mass.
    pub fn retain_entropy(&mut self, alpha: TermId, mass: f64) {
        self.layer.retention.clear();
        for l in 0..self.layer.memory.weights.len() {
            let (new_weight, update) = self.unknowns(l);
            let t = &mut self.layer.terms;
            let (w, p) = (t.use_var(new_weight), t.use_var(self.layer.memory.weights[l].var));
            let one = t.num(1.0);
            let keep = t.sub(one, alpha).unwrap();
            let ratio = t.div(w, p).unwrap();
            let mut entropy = |factor: TermId, x: TermId| {
                let log = t.fn1(Fn1::Log, x).unwrap();
                let product = t.mul(w, log).unwrap();
                let sum = t.sum(product).unwrap();
                t.mul(factor, sum).unwrap()
            };
            let (local, global) = (entropy(keep, ratio), entropy(alpha, w));
            let mass = self.layer.terms.num(mass);
            self.push(
                l,
                new_weight,
                update,
                Some(local),
                Some(global),
                Domain::Simplex { axis: Axis::Row, mass },
            );
        }
    }

    /// u = -eta g at the weights as they are.
    pub fn descend(&mut self, eta: TermId) {
        let weights: Vec<VarId> = self.layer.memory.weights.iter().map(|w| w.var).collect();
        let at = weights.iter().map(|w| self.layer.terms.use_var(*w)).collect();
        self.descend_at(eta, at);
    }

    /// u = -eta g at what retention makes of the weights.
    pub fn descend_retained(&mut self, eta: TermId) {
        let retained = self.retained();
        let at = retained.iter().map(|w| self.layer.terms.use_var(*w)).collect();
        self.descend_at(eta, at);
    }

    /// S' = mu S - eta g; u = S'.
    pub fn momentum(&mut self, eta: TermId, mu: TermId) {
        self.descend(eta);
        let Algo::Step(step) = &mut self.layer.algo else { return };
        let t = &mut self.layer.terms;
        for l in 0..step.direction.len() {
            let n = step.states.len() as u32;
            let shape = self.layer.memory.weights[l].shape.clone();
            let old = t.add_var("S", Role::State(n), shape.clone(), None);
            let new = t.add_var("S'", Role::NewState(n), shape.clone(), None);
            let s = t.use_var(old);
            let kept = t.mul(mu, s).unwrap();
            let next = t.add(kept, step.direction[l]).unwrap();
            let start = t.fill(0.0, shape);
            let name = format!("S.{}", self.layer.memory.weights[l].name);
            step.states.push(State { name, old, new, start, next, span: None });
            step.direction[l] = t.use_var(new);
        }
    }

    fn descend_at(&mut self, eta: TermId, at: Vec<TermId>) {
        let retained = self.retained();
        let t = &mut self.layer.terms;
        let (mut gradients, mut direction) = (Vec::new(), Vec::new());
        for (l, weight) in self.layer.memory.weights.iter().enumerate() {
            let role = Role::Gradient { point: 0, weight: l as u32 };
            let g = t.add_var(format!("grad({})", weight.display), role, weight.shape.clone(), None);
            gradients.push(g);
            let (g, minus) = (t.use_var(g), t.neg(eta).unwrap());
            direction.push(t.mul(minus, g).unwrap());
        }
        let points = vec![Point { at, gradients }];
        self.layer.algo =
            Algo::Step(Step { repeats: 1, points, retained, states: Vec::new(), direction, span: None });
    }

    /// Replaces the direction of the only weight.
    pub fn direct(&mut self, f: impl FnOnce(&mut Terms, VarId) -> TermId) {
        let weight = self.layer.memory.weights[0].var;
        let direction = f(&mut self.layer.terms, weight);
        if let Algo::Step(step) = &mut self.layer.algo {
            step.direction = vec![direction];
            step.points.clear();
        }
    }

    fn retained(&mut self) -> Vec<VarId> {
        if let Algo::Step(step) = &self.layer.algo
            && !step.retained.is_empty()
        {
            return step.retained.clone();
        }
        let t = &mut self.layer.terms;
        let weights = self.layer.memory.weights.iter().enumerate();
        weights.map(|(l, w)| t.add_var("R", Role::Retained(l as u32), w.shape.clone(), None)).collect()
    }

    fn unknowns(&mut self, l: usize) -> (VarId, VarId) {
        let shape = self.layer.memory.weights[l].shape.clone();
        let display = self.layer.memory.weights[l].display.clone();
        let t = &mut self.layer.terms;
        let new = t.add_var(format!("{display}'"), Role::NewWeight(l as u32), shape.clone(), None);
        let update = t.add_var(format!("u({display})"), Role::Update(l as u32), shape, None);
        (new, update)
    }

    fn push(
        &mut self,
        _weight: usize,
        new_weight: VarId,
        update: VarId,
        local: Option<TermId>,
        global: Option<TermId>,
        domain: Domain,
    ) {
        let form = Form::Objective { local, global, domain };
        self.layer.retention.push(Retention { new_weight, update, form, newton: None, span: None });
    }
}

fn step() -> Step {
    Step {
        repeats: 1,
        points: Vec::new(),
        retained: Vec::new(),
        states: Vec::new(),
        direction: Vec::new(),
        span: None,
    }
}

fn choice(clause: &'static str) -> Choice {
    Choice {
        clause,
        definition: "a test".into(),
        text: "a test".into(),
        span: None,
        definition_span: None,
        about: Vec::new(),
        arguments: Vec::new(),
        body: String::new(),
    }
}

fn weight(layer: &mut Layer, l: u32, name: &str, display: &str, shape: Shape) -> TermId {
    let var = layer.terms.add_var(display, Role::Weight(l), shape.clone(), None);
    layer.memory.weights.push(Weight {
        name: name.into(),
        display: display.into(),
        var,
        shape,
        start: None,
        span: None,
    });
    layer.terms.use_var(var)
}

fn remember(layer: &mut Layer, kept: &Kept) {
    let (dk, dv) = (Dim::dk(), Dim::dv());
    let x = layer.terms.use_var(layer.memory.argument);
    let read = match kept {
        Kept::Matrix => {
            let w = weight(layer, 0, "W", "W", Shape::matrix(dv, dk));
            layer.terms.matmul(w, x).unwrap()
        }
        Kept::Vector => {
            let w = weight(layer, 0, "W", "W", Shape::vector(dk));
            layer.terms.mul(w, x).unwrap()
        }
        Kept::Mlp => {
            let hidden = Dim::constant(2).mul(&dk).unwrap();
            let w1 = weight(layer, 0, "W1", "W[1]", Shape::matrix(hidden.clone(), dk));
            let w2 = weight(layer, 1, "W2", "W[2]", Shape::matrix(dv, hidden));
            let t = &mut layer.terms;
            let z1 = t.matmul(w1, x).unwrap();
            let h = t.fn1(Fn1::Gelu, z1).unwrap();
            let z2 = t.matmul(w2, h).unwrap();
            let normal = t.layer_norm(z2).unwrap();
            t.add(x, normal).unwrap()
        }
    };
    layer.memory.read = Some(read);
}
