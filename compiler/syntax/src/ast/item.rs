//! Files and what stands at their top level.

use super::{Arg, Expr, Ident, Stmt};
use base::Span;
use miras_base as base;

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
