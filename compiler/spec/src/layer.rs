//! The elaborated layer: what `spec` gives and every later room reads.

use miras_base::{Dim, Span};
use miras_term::{Axis, Constraint, Shape, TermId, Terms, VarId};

/// One memory layer (docs/mathematics.md) with everything resolved.
///
/// Variables of [`Layer::terms`] with the roles Query, Key, Value (shapes [dk], [dk], [dv]) are
/// `query`, `key`, `value`. Per-weight lists are in the order of [`Memory::weights`].
#[derive(Clone, Debug)]
pub struct Layer {
    /// Name in the file, or `anonymous`.
    pub name: String,
    /// Place of its definition.
    pub span: Option<Span>,
    /// The arena of all terms below.
    pub terms: Terms,
    /// q_t.
    pub query: VarId,
    /// k_t.
    pub key: VarId,
    /// v_t.
    pub value: VarId,
    /// Everything but q, k, v and weights that the data supplies.
    pub params: Vec<Param>,
    /// Values given for parameters that are numbers only with the sizes and the layer's place, for a run to check.
    pub ranges: Vec<Ranged>,
    /// First choice.
    pub memory: Memory,
    /// Second choice.
    pub bias: Bias,
    /// Third choice, once for each weight; empty for a memory without weights.
    pub retention: Vec<Retention>,
    /// Fourth choice.
    pub algo: Algo,
    /// The four clauses as the user wrote them, for messages and explanations.
    pub choices: [Choice; 4],
    /// Read W_{t-1} instead of W_t.
    pub read_before: bool,
    /// Chunk length C of the chunked schedule.
    pub chunk: u32,
    /// Equalities of sizes that a run must satisfy, with the places where they arose.
    pub constraints: Vec<Required>,
}

/// A clause as written.
#[derive(Clone, Debug)]
pub struct Choice {
    /// `memory`, `bias`, `retention` or `algo`.
    pub clause: &'static str,
    /// Name of the definition it chose.
    pub definition: String,
    /// The clause's value as text, e.g. `huber(delta = learned)`.
    pub text: String,
    /// Place of the clause.
    pub span: Option<Span>,
    /// Place of the definition.
    pub definition_span: Option<Span>,
    /// The comment lines that stand directly above the definition: what it is and where it comes from.
    pub about: Vec<String>,
    /// The values of all its parameters as text, defaults among them.
    pub arguments: Vec<(String, String)>,
    /// The definition's text without its name, comments and spacing.
    pub body: String,
}

impl Choice {
    /// The choice with all its arguments, e.g. `mlp(depth = 2, expand = 4, act = gelu)`.
    pub fn spelled_out(&self) -> String {
        let arguments: Vec<String> = self.arguments.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        match arguments.as_slice() {
            [] => self.definition.clone(),
            all => format!("{}({})", self.definition, all.join(", ")),
        }
    }
}

/// An equality of sizes and where the program needs it.
#[derive(Clone, Debug)]
pub struct Required {
    /// The two sizes.
    pub constraint: Constraint,
    /// Place and role of either side.
    pub places: [(Option<Span>, String); 2],
}

/// What values a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any real number.
    Real,
    /// [0, inf).
    Positive,
    /// [0, 1].
    Unit,
}

/// How finely a learned parameter varies, within one token and head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    /// One number.
    Token,
    /// [dv], on the model axis.
    Channel,
    /// [dk].
    Key,
    /// [dv], on the value axis.
    Value,
    /// [dv, dk].
    Entry,
}

impl Per {
    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Per::Token => "token",
            Per::Channel => "channel",
            Per::Key => "key",
            Per::Value => "value",
            Per::Entry => "entry",
        }
    }
}

/// Where a parameter's values come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// One value per token and head, [B, H, T, ...]: a gate.
    Learned(Per),
    /// The same, declared by `input`.
    Input,
    /// One value per head, [H, ...]: `trained`. The term is a value to start training from, if given.
    Trained(Option<TermId>),
    /// One value per head, [H, ...]: a `slow` tensor of the memory, optional in the data. The term is
    /// its value where the data has none.
    Slow(Option<TermId>),
}

/// A parameter that the data supplies.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name of the tensor: `retention.alpha`, `input.dt`, `trained.A`, `memory.gain`.
    pub tensor: String,
    /// Its variable; the shape is that of one token and head.
    pub var: VarId,
    /// Values it may take.
    pub kind: Kind,
    /// Where they come from.
    pub source: Source,
    /// Whether it has `Algo::repeats` entries per token (k, v, and what the algorithm uses).
    pub repeated: bool,
    /// Place of the request.
    pub span: Option<Span>,
    /// Who asked for it, e.g. `retention: l2(alpha = learned)`.
    pub asked_by: String,
}

/// A value given for a parameter, such as `1 - 2^(-5 - head)`, that must lie in the parameter's kind.
#[derive(Clone, Debug)]
pub struct Ranged {
    /// The parameter's name.
    pub name: String,
    /// The value: without variables, a function of the sizes and of the place (head, layer) alone.
    pub value: TermId,
    /// Values it may take.
    pub kind: Kind,
    /// Place of the value.
    pub span: Option<Span>,
    /// What it is given in, e.g. "`retention: l2(alpha = head)`".
    pub asked_by: String,
}

/// The memory M(x; W).
#[derive(Clone, Debug)]
pub struct Memory {
    /// The weights, W[1] first.
    pub weights: Vec<Weight>,
    /// x, [dk]; used in `read` only.
    pub argument: VarId,
    /// M(x; W) in terms of the argument, the weights' variables and slow parameters; [dv].
    /// None for a memory that keeps a history and has no weights.
    pub read: Option<TermId>,
    /// Whether it keeps all past keys and values (a cache).
    pub history: bool,
}

/// One weight tensor.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Suffix of tensor names: `W`, `W1`, `U`; the tensors are `memory.<name>`, `state.memory.<name>`.
    pub name: String,
    /// Name in formulas: `W`, `W[1]`.
    pub display: String,
    /// Its variable (role Weight): the value before the step.
    pub var: VarId,
    /// [rows, cols], or [n] for a vector.
    pub shape: Shape,
    /// Value to start from where the data gives none; None: the data must give one.
    pub start: Option<TermId>,
    /// Place of its declaration.
    pub span: Option<Span>,
}

/// The attentional bias loss(y, v).
#[derive(Clone, Debug)]
pub struct Bias {
    /// y, [dv]; used in `loss` and `slope` only.
    pub answer: VarId,
    /// The loss, a scalar of `answer`, `value` and parameters.
    pub loss: TermId,
    /// A declared dloss/dy, [dv], in place of the derivative.
    pub slope: Option<TermId>,
    /// Place of the declared slope.
    pub slope_span: Option<Span>,
}

/// Retention of one weight.
#[derive(Clone, Debug)]
pub struct Retention {
    /// W', the unknown (role NewWeight), of the weight's shape.
    pub new_weight: VarId,
    /// u (role Update), of the weight's shape.
    pub update: VarId,
    /// What the definition says.
    pub form: Form,
    /// `solve: newton(n)`.
    pub newton: Option<u32>,
    /// Place of the definition.
    pub span: Option<Span>,
}

/// The ways to write a retention.
#[derive(Clone, Debug)]
pub enum Form {
    /// W' = argmin -<u, W'> + local(W', W) + global(W') over the domain.
    Objective {
        /// local(W', P), a scalar in `new_weight` and the weight's variable (which is P). None: 0.
        local: Option<TermId>,
        /// global(W'), a scalar in `new_weight`. None: 0.
        global: Option<TermId>,
        /// Where W' lives.
        domain: Domain,
    },
    /// Lazy: A' by its recurrence, then W' = argmin potential(W') - <A', W'> over the domain.
    Lazy {
        /// A (role Dual) and A' (role NewDual).
        dual: [VarId; 2],
        /// A' in terms of A, u and parameters.
        next: TermId,
        /// The potential, a scalar in `new_weight`.
        potential: TermId,
        /// Where W' lives.
        domain: Domain,
    },
    /// A declared map from the dual: A' by its recurrence, W' a given function of A'.
    DeclaredDual {
        /// A (role Dual) and A' (role NewDual).
        dual: [VarId; 2],
        /// A' in terms of A, u and parameters.
        next: TermId,
        /// W' in terms of A' and parameters.
        map: TermId,
    },
    /// A declared map: W' a given function of W (the weight's variable), u and parameters.
    DeclaredMap {
        /// W'.
        next: TermId,
    },
}

/// Where a weight lives.
#[derive(Clone, Debug)]
pub enum Domain {
    /// All real tensors of the shape.
    All,
    /// Entries >= 0 that sum to `mass` along the axes (each row, each column, or altogether).
    Simplex {
        /// Slices.
        axis: Axis,
        /// Their sum, a scalar term.
        mass: TermId,
    },
    /// Frobenius norm at most `radius`.
    Ball {
        /// A scalar term.
        radius: TermId,
    },
    /// Entries between the ends.
    Interval {
        /// Lower end, a scalar term.
        low: TermId,
        /// Upper end, a scalar term.
        high: TermId,
    },
}

/// The memory algorithm.
#[derive(Clone, Debug)]
pub enum Algo {
    /// One or more steps along a direction.
    Step(Step),
    /// No weights: the answer minimises the kernel-weighted bias over the history.
    Weigh(Weigh),
}

/// A direction computed from gradients and a state of its own.
#[derive(Clone, Debug)]
pub struct Step {
    /// Steps per token (`multi`); k, v and the parameters of the algorithm have this many entries per
    /// token. Retention acts once, before the first step, where it is larger than 1.
    pub repeats: u32,
    /// The points at which gradients are taken. `gradients[p][l]` is a variable (role Gradient) that
    /// stands for d loss / d W_l at the weights `points[p]`.
    pub points: Vec<Point>,
    /// Variables (role Retained), one for each weight, that stand for what retention makes of the
    /// weight when u = 0; used in points and directions.
    pub retained: Vec<VarId>,
    /// State of the algorithm.
    pub states: Vec<State>,
    /// u for each weight, in terms of gradients, weights, states (old: role State, new: role
    /// NewState), k, v, q and parameters.
    pub direction: Vec<TermId>,
    /// Place of the definition.
    pub span: Option<Span>,
}

/// A point in weight space at which the gradient of the bias is taken.
#[derive(Clone, Debug)]
pub struct Point {
    /// Value of each weight.
    pub at: Vec<TermId>,
    /// Variables that stand for the gradient by each weight.
    pub gradients: Vec<VarId>,
}

/// One state tensor of an algorithm.
#[derive(Clone, Debug)]
pub struct State {
    /// Suffix of tensor names: `S.W1` (one for each weight) or `P`; the tensor is `state.algo.<name>`.
    pub name: String,
    /// Its value before the step (role State).
    pub old: VarId,
    /// Its value after the step (role NewState).
    pub new: VarId,
    /// Value to start from.
    pub start: TermId,
    /// Its value after the step as a term; it may use `new` variables of states before it.
    pub next: TermId,
    /// Place of its declaration.
    pub span: Option<Span>,
}

/// The non-parametric answer: o_t = argmin_y sum_i weight(q_t, k_i) loss(y, v_i) over i <= t.
#[derive(Clone, Debug)]
pub struct Weigh {
    /// Weight of a past token, a positive scalar term in `query` and `key` (k_i).
    pub kernel: TermId,
    /// Only the last `window` tokens take part.
    pub window: Option<u32>,
    /// Retrieval steps before the answer: q <- sum_i w_i k_i / sum_i w_i, this many times.
    pub refinements: u32,
    /// Place of the definition.
    pub span: Option<Span>,
}

impl Layer {
    /// How often the algorithm steps per token: entries of k and v for each token.
    pub fn repeats(&self) -> u32 {
        match &self.algo {
            Algo::Step(step) => step.repeats,
            Algo::Weigh(_) => 1,
        }
    }

    /// The parameter of a variable, if it is one.
    pub fn param_of(&self, var: VarId) -> Option<&Param> {
        self.params.iter().find(|p| p.var == var)
    }

    /// Sizes that only the data fixes, in the order of their names.
    pub fn free_dims() -> [Dim; 2] {
        [Dim::dk(), Dim::dv()]
    }
}
