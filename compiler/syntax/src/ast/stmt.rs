//! Statements and declarations.

use super::{Expr, Ident, Kind};
use base::Span;
use miras_base as base;

/// One statement, without its semicolon.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The statements of definitions, layers and blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let e = y - v;`
    Let {
        /// The new name.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `loss = sum(e^2) / 2;`, `h = act(h);`: gives the definition one of its parts, or rebinds a name.
    Assign {
        /// What is set.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `local(W, P) = ...;`, `read(x) = { ... };`: a part that is a function.
    Define {
        /// The part.
        name: Ident,
        /// The names of its arguments.
        params: Vec<Ident>,
        /// What it gives.
        value: Expr,
    },
    /// `S' = mu * S - eta * grad(W);`: the value after this token.
    Next {
        /// What is renewed, without its prime.
        name: Ident,
        /// Its new value.
        value: Expr,
    },
    /// `dual A' = (1 - alpha) * A + u;`
    Dual {
        /// The dual, without its prime.
        name: Ident,
        /// Its new value.
        value: Expr,
    },
    /// `weight W[l]: [dv, dk];` and the other declarations of tensors.
    Declare(Declaration),
    /// `history k, v;`: the memory keeps these of every token.
    History {
        /// What is kept.
        names: Vec<Ident>,
    },
    /// `require linear(read), quadratic(loss);`
    Require {
        /// What must hold.
        conditions: Vec<Requirement>,
    },
    /// `for l in 1..=depth { ... }`
    For {
        /// The counter.
        var: Ident,
        /// What it counts through.
        range: Range,
        /// What is repeated.
        body: Vec<Stmt>,
    },
    /// `memory: mlp(2);`, `chunk: 64;`, `solve: newton(8);`
    Clause {
        /// Before the colon.
        key: Ident,
        /// After it.
        value: Expr,
    },
}

/// What a declared tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// `weight`: written by the memory itself at every token.
    Weight,
    /// `slow`: learned by the outer loop, never by the memory.
    Slow,
    /// `state`: carried from token to token.
    State,
    /// `input`: given with every token.
    Input,
    /// `trained`: one constant per head that the outer loop trains.
    Trained,
}

/// `role name[index]: kind [shape] = init`; everything after the name is optional.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// What the tensor is.
    pub role: Role,
    /// Its name.
    pub name: Ident,
    /// `l` in `weight W[l]`.
    pub index: Option<Expr>,
    /// `positive` in `input dt: positive [dv]`.
    pub kind: Option<Kind>,
    /// `[dv, dk]`.
    pub shape: Option<Shape>,
    /// After `=`.
    pub init: Option<Expr>,
}

/// `[dv, dk]`
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// One expression per axis; `[]` has none.
    pub dims: Vec<Expr>,
    /// With the brackets.
    pub span: Span,
}

/// `linear(read)`
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The predicate.
    pub predicate: Ident,
    /// What it is said of; empty too where the parentheses were left out.
    pub subjects: Vec<Ident>,
    /// The whole.
    pub span: Span,
}

/// `from..to`, or `from..=to` where the end is counted too.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The first number.
    pub from: Expr,
    /// The end.
    pub to: Expr,
    /// Whether the end is counted.
    pub inclusive: bool,
    /// The whole.
    pub span: Span,
}

impl Role {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Role::Weight => "weight",
            Role::Slow => "slow",
            Role::State => "state",
            Role::Input => "input",
            Role::Trained => "trained",
        }
    }
}
