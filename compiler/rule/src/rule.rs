//! The update rule: what `rule` gives and every later room reads.

use miras_base::Diagnostic;
use miras_spec as spec;
use miras_term::{Shape, TermId, Terms, VarId};

/// What one token of one head does to the memory, in closed form.
///
/// One step, for a layer with `Algo::Step` (lists run over weights):
///
/// 1. W_l is `retention[l].value` of the carried state (identity where the state is the weight).
/// 2. For every point p of the algorithm, in order: bind `points[p].at`, and `gradient` gives the
///    variables of role Gradient. (`spec::Step::retained` variables are `retention[l].retained`.)
/// 3. States: `spec::State::next` in order.
/// 4. u_l = `spec::Step::direction[l]`.
/// 5. carried_l' = `retention[l].advance`, then `retention[l].finish` of that, if there is one.
/// 6. o = read(q; W') with W' again by `value` (before 5 where `Layer::read_before`).
///
/// Where `Layer::repeats` = n > 1, retention acts first with u = 0, then steps 2 to 4 and
/// carried += u are done n times with the n entries of k, v and repeated parameters.
#[derive(Clone, Debug)]
pub struct UpdateRule {
    /// The layer it was derived from; its arena holds all terms here too.
    pub layer: spec::Layer,
    /// dloss/dy as used: derived, or declared. In terms of Answer, Value and parameters; [dv].
    pub slope: Option<TermId>,
    /// The gradients at each point of the algorithm.
    pub gradients: Vec<Gradient>,
    /// Retention in closed form, for each weight.
    pub retention: Vec<Retained>,
    /// For a memory with a history: the answer in closed form.
    pub answer: Option<Answer>,
    /// How the recurrence depends on the weights.
    pub class: Class,
    /// How all this was found.
    pub derivation: Derivation,
    /// Warnings and notes.
    pub warnings: Vec<Diagnostic>,
}

/// The gradient of the bias at one point of the algorithm.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The answer y = read(k) at the point's weights, in terms of `at_vars`, k and parameters.
    pub answer: TermId,
    /// Variables (role Weight) that stand for the point's weights in `answer` and the products. Where
    /// the point is the weights as they are, these are the weights' own variables.
    pub at_vars: Vec<VarId>,
    /// Intermediate results that are worth a name, operands first: `h[1]`, `e`, `delta[2]`.
    pub named: Vec<Named>,
    /// d loss / d W_l for each weight.
    pub by_weight: Vec<OuterSum>,
}

/// A term with a name for formulas.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The term.
    pub term: TermId,
    /// What it is, in words.
    pub meaning: String,
}

/// A gradient as a sum: outer products `left (x) right` plus an element-wise rest.
#[derive(Clone, Debug, Default)]
pub struct OuterSum {
    /// Pairs (delta, h): [rows] and [cols]; the gradient has their outer product.
    pub products: Vec<(TermId, TermId)>,
    /// A term of the weight's shape that is no outer product (a vector weight's gradient, a weight used
    /// entry by entry); None where there is none.
    pub rest: Option<TermId>,
    /// The whole gradient as one term of the weight's shape.
    pub whole: Option<TermId>,
}

/// Retention of one weight in closed form.
///
/// The state carries `carried` (the weight itself, or a dual). `advance` gives the carried value after
/// a step.
#[derive(Clone, Debug)]
pub struct Retained {
    /// What the state tensor `state.memory.<name>` holds: the weight's own variable, or a Dual.
    pub carried: VarId,
    /// u.
    pub update: VarId,
    /// The carried value at the start of a stream from the initial weight, in terms of the weight's
    /// variable. None: the initial tensor itself (it is A_0 where the retention declares a dual).
    pub start: Option<TermId>,
    /// What must hold of initial weights.
    pub initial: InitialDomain,
    /// carried' before `finish`, in terms of `carried`, `update` and parameters.
    pub advance: TermId,
    /// `advance` as keep * carried + write * update + shift, where it has that form: a linear recurrence.
    pub linear: Option<Linear>,
    /// W from the carried value (psi), in terms of `carried` and parameters; None: W is the carried value.
    pub value: Option<TermId>,
    /// A map of the carried value onto itself, in terms of `carried` and parameters, that ends a step
    /// (projection, proximal map).
    pub finish: Option<TermId>,
    /// What retention makes of the weight when u = 0, in terms of the weight's own variable.
    /// None where it cannot be written without the carried value.
    pub retained: Option<TermId>,
    /// How a chunk treats `value` and `finish` while gradients are frozen (docs/mathematics.md).
    pub inside: Inside,
}

/// carried' = keep * carried + write * update + shift, entry by entry.
#[derive(Clone, Debug)]
pub struct Linear {
    /// The factor: a scalar, a row, a column or a matrix term of parameters.
    pub keep: TermId,
    /// What the step is multiplied by, a term of parameters as `keep` is; None: 1.
    pub write: Option<TermId>,
    /// What is added besides u; None: 0.
    pub shift: Option<TermId>,
}

/// What must hold of initial weights (docs/guide.md).
#[derive(Clone, Debug)]
pub enum InitialDomain {
    /// Any finite value.
    Any,
    /// Strictly between these numbers (either may be infinite).
    Open(f64, f64),
    /// Strictly positive, with sums within 1e-4 * mass of the mass along the axes.
    Simplex(miras_term::Axis, TermId),
}

/// What is read inside a chunk while gradients are frozen.
#[derive(Clone, Debug)]
pub enum Inside {
    /// W_t is the carried value.
    Identity,
    /// W_t = value(carried_t), exactly, at every read.
    Mapped,
    /// W_t = soft(carried_t, Gamma_t) with Gamma' = keep * Gamma + threshold; soft at the chunk's end.
    Threshold(TermId),
    /// W_t = carried_t * scale(carried_0), the scale (a scalar term of `carried`) frozen at the chunk's start.
    FrozenScale(TermId),
    /// The carried value inside, `finish` once at the chunk's end.
    ProjectAtEnd,
    /// No dual recurrence: token by token inside the chunk.
    TokenByToken,
}

/// What a stream that stops inside a chunk hands on for a weight besides what it carries and the value of that at
/// the chunk's start: the tensor `state.anchor.<name>.<weight>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remembered {
    /// Gamma, gathered since the chunk began; of the weight's shape.
    Threshold,
    /// W_0, where the chunk's first token enters it; of the weight's shape.
    Start,
    /// The frozen scale, where the chunk's first token enters it; a scalar.
    Scale,
}

impl Remembered {
    /// All of them.
    pub const ALL: [Remembered; 3] = [Remembered::Threshold, Remembered::Start, Remembered::Scale];

    /// Its part of the tensor's name.
    pub fn name(self) -> &'static str {
        match self {
            Remembered::Threshold => "threshold",
            Remembered::Start => "start",
            Remembered::Scale => "scale",
        }
    }

    /// The tensor's name for a weight.
    pub fn tensor(self, weight: &str) -> String {
        format!("state.anchor.{}.{weight}", self.name())
    }

    /// Its shape for a weight of this shape.
    pub fn shape(self, weight: &Shape) -> Shape {
        match self {
            Remembered::Threshold | Remembered::Start => weight.clone(),
            Remembered::Scale => Shape::scalar(),
        }
    }
}

/// The answer of a memory with a history.
#[derive(Clone, Debug)]
pub struct Answer {
    /// log of the kernel, a scalar term of q and k.
    pub log_kernel: TermId,
    /// What is averaged with the normalised kernel weights to give y, a term of v; [dv].
    pub averaged: TermId,
}

/// How the recurrence depends on the weights.
#[derive(Clone, Debug)]
pub struct Class {
    /// Which.
    pub kind: ClassKind,
    /// Why, in a sentence or more: a certificate.
    pub reason: String,
    /// Of [`ClassKind::Delta`]: corrections of rank one per token.
    pub corrections: u64,
}

/// Classes of docs/mathematics.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassKind {
    /// Diagonal keep plus a write that does not depend on the weights.
    Linear,
    /// Affine in the weights, entry by entry or with corrections of rank one.
    Delta,
    /// Linear in the dual with gradients that depend on the weights.
    DualLinear,
    /// Anything else with weights.
    General,
    /// Kernel-weighted history.
    NonParametric,
    /// Exact only token by token.
    TokenByToken,
}

/// The steps from the four choices to the closed form, generated from the objects above.
#[derive(Clone, Debug, Default)]
pub struct Derivation {
    /// In order.
    pub steps: Vec<DerivationStep>,
    /// Notes on printed formulas and other facts worth knowing.
    pub notes: Vec<String>,
}

/// One step of a derivation.
#[derive(Clone, Debug)]
pub struct DerivationStep {
    /// Which of the four choices it comes from: `memory`, `bias`, `retention`, `algo`; or `rule`.
    pub choice: &'static str,
    /// What is done, in a few words.
    pub title: String,
    /// Equations `left = term`; the left side as text.
    pub equations: Vec<Equation>,
    /// Why it holds.
    pub justification: String,
}

/// `left = right`.
#[derive(Clone, Debug)]
pub struct Equation {
    /// Left side as text, e.g. `dloss/dy`.
    pub left: String,
    /// Right side.
    pub right: TermId,
}

impl UpdateRule {
    /// The arena.
    pub fn terms(&self) -> &Terms {
        &self.layer.terms
    }

    /// What a stream remembers of weight `l` inside a chunk with frozen gradients.
    pub fn remembered(&self, l: usize) -> Vec<Remembered> {
        let Some(retained) = self.retention.get(l) else { return Vec::new() };
        let held = self.remembers_start();
        let mut parts = Vec::new();
        match retained.inside {
            Inside::Threshold(_) => parts.push(Remembered::Threshold),
            Inside::FrozenScale(_) if held => parts.push(Remembered::Scale),
            Inside::FrozenScale(_)
            | Inside::Identity
            | Inside::Mapped
            | Inside::ProjectAtEnd
            | Inside::TokenByToken => {}
        }
        if held && retained.value.is_some() {
            parts.push(Remembered::Start);
        }
        parts
    }

    /// Whether the weights that a chunk starts from depend on its first token (a threshold that a token brings
    /// along, say): what is carried does not say then what they were.
    pub fn remembers_start(&self) -> bool {
        let asks = |retained: &Retained| {
            let scale = match retained.inside {
                Inside::FrozenScale(scale) => Some(scale),
                Inside::Identity
                | Inside::Mapped
                | Inside::Threshold(_)
                | Inside::ProjectAtEnd
                | Inside::TokenByToken => None,
            };
            retained.value.into_iter().chain(scale).any(|term| self.asks_token(term))
        };
        self.retention.iter().any(asks)
    }

    /// Whether a term uses anything that each token brings along.
    fn asks_token(&self, term: TermId) -> bool {
        let layer = &self.layer;
        let brought = |p: &&spec::Param| match p.source {
            spec::Source::Learned(_) | spec::Source::Input => true,
            spec::Source::Trained(_) | spec::Source::Slow(_) => false,
        };
        let gates = layer.params.iter().filter(brought).map(|p| p.var);
        let used = layer.terms.vars_of(&[term]);
        gates.chain([layer.query, layer.key, layer.value]).any(|v| used.contains(&v))
    }
}
