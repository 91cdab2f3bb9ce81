//! The abstract syntax tree: what was written, with its places, and nothing concluded from it.
//!
//! Plain data. Every node carries the [`Span`] it was read from. One closed statement type serves all
//! definition bodies, layers and blocks; which statement is legal where is decided by a later room.
//! Parentheses and comments are not kept (the formatter works on tokens), except that the comment lines
//! directly above an item become its `doc`.

use base::Span;
use miras_base as base;

/// A name with its place. Layer names may hold dots (`bias_lp1.5`), all others are
/// `[A-Za-z_][A-Za-z0-9_]*`. A prime is never part of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The letters.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// One file: `use` lines, definitions and layers in the order written, and the layer made by top-level
/// clauses and declarations, if there are any.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The files that this one uses.
    pub uses: Vec<Use>,
    /// Definitions, functions and named layers.
    pub items: Vec<Item>,
    /// The anonymous layer.
    pub anonymous: Option<LayerBody>,
    /// The whole text.
    pub span: Span,
}

/// `use "other.miras";`
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The path between the quotes, as written.
    pub path: String,
    /// The path with its quotes.
    pub path_span: Span,
    /// The whole line.
    pub span: Span,
}

/// What stands at the top level of a file and has a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `bias`, `retention`, `memory` or `algo`.
    Definition(Definition),
    /// `fn f(w) = e;`
    Function(Function),
    /// `layer name { ... }`
    Layer(Layer),
    /// `layer name = base(...);`
    Alias(LayerAlias),
}

/// Which of the four choices a definition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DefinitionKind {
    /// `bias`
    Bias,
    /// `retention`
    Retention,
    /// `memory`
    Memory,
    /// `algo`
    Algo,
}

/// `bias huber(delta: positive = learned) { ... }` and its three siblings.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Which choice.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: Ident,
    /// Its parameters; empty too where the parentheses were left out.
    pub params: Vec<ParamDef>,
    /// `on simplex(row, mass)`; only a retention can have one.
    pub domain: Option<Domain>,
    /// The statements between the braces.
    pub body: Vec<Stmt>,
    /// The comment lines directly above, without their slashes.
    pub doc: Vec<String>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// `on ball(radius)`: where the weights may lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// `simplex`, `ball`, `interval`, ...
    pub name: Ident,
    /// What stands in the parentheses.
    pub args: Vec<Arg>,
    /// The whole, from `on`.
    pub span: Span,
}

/// A parameter of a definition: `delta: positive = learned`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamDef {
    /// Its name.
    pub name: Ident,
    /// What it may be.
    pub kind: Option<Kind>,
    /// Its value where none is given.
    pub default: Option<Expr>,
    /// The whole.
    pub span: Span,
}

/// What a parameter or a declared tensor may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A named kind: `positive`, `unit`, `nat`, `fn`, ...
    Named(Ident),
    /// One word out of several: `{previous, retained}`.
    Enum {
        /// The words.
        words: Vec<Ident>,
        /// With the braces.
        span: Span,
    },
}

impl Kind {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Kind::Named(name) => name.span,
            Kind::Enum { span, .. } => *span,
        }
    }
}

/// `fn f(w) = e;`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Ident,
    /// The names of its arguments.
    pub params: Vec<Ident>,
    /// What it gives.
    pub body: Expr,
    /// The comment lines directly above, without their slashes.
    pub doc: Vec<String>,
    /// The whole.
    pub span: Span,
}

/// `layer name(params) { ... }`
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name; may hold dots.
    pub name: Ident,
    /// Its parameters; empty too where the parentheses were left out.
    pub params: Vec<ParamDef>,
    /// Its clauses and declarations.
    pub body: LayerBody,
    /// The comment lines directly above, without their slashes.
    pub doc: Vec<String>,
    /// The whole.
    pub span: Span,
}

/// The clauses and declarations of a layer, in the order written.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerBody {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// From the first to the last of them, or the braces.
    pub span: Span,
}

/// `layer mine = yaad(chunk = 32);`
#[derive(Clone, Debug, PartialEq)]
pub struct LayerAlias {
    /// The new name; may hold dots.
    pub name: Ident,
    /// The layer it is made from; may hold dots.
    pub base: Ident,
    /// What is given to it; empty too where the parentheses were left out.
    pub args: Vec<Arg>,
    /// The comment lines directly above, without their slashes.
    pub doc: Vec<String>,
    /// The whole.
    pub span: Span,
}

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

/// An argument: `alpha = 1 - keep`, or only a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Its name, if given.
    pub name: Option<Ident>,
    /// Its value.
    pub value: Expr,
    /// The whole.
    pub span: Span,
}

/// An expression. No tree that [`crate::parse`] gives is deeper than [`crate::MAX_DEPTH`].
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `0.5`; always finite, never negative.
    Number {
        /// The nearest float64.
        value: f64,
        /// As written.
        text: String,
    },
    /// `alpha`
    Name(Ident),
    /// `S'`; the text has no prime.
    Primed(Ident),
    /// `huber(delta = learned)`
    Call {
        /// What is called.
        callee: Ident,
        /// With what.
        args: Vec<Arg>,
    },
    /// `W[l]`
    Index {
        /// Into what.
        base: Box<Expr>,
        /// Where.
        index: Box<Expr>,
    },
    /// `input.kappa`
    Member {
        /// Of what.
        base: Box<Expr>,
        /// Which.
        field: Ident,
    },
    /// `-x`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it is applied to.
        operand: Box<Expr>,
    },
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// Left of it.
        left: Box<Expr>,
        /// Right of it.
        right: Box<Expr>,
    },
    /// `if c then a else b`
    If {
        /// The condition.
        cond: Box<Expr>,
        /// The value where it holds.
        then: Box<Expr>,
        /// The value where it does not.
        otherwise: Box<Expr>,
    },
    /// `{ let h = x; h + 1 }`
    Block {
        /// What is done first.
        stmts: Vec<Stmt>,
        /// The value.
        result: Box<Expr>,
    },
}

/// Operators before one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-`
    Neg,
}

/// Operators between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`, entry by entry
    Mul,
    /// `/`, entry by entry
    Div,
    /// `@`, the matrix product
    MatMul,
    /// `^`, entry by entry
    Pow,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl BinaryOp {
    /// As written in a program.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::MatMul => "@",
            BinaryOp::Pow => "^",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
        }
    }
}

impl DefinitionKind {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            DefinitionKind::Bias => "bias",
            DefinitionKind::Retention => "retention",
            DefinitionKind::Memory => "memory",
            DefinitionKind::Algo => "algo",
        }
    }
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
