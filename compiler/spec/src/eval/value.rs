//! What expressions evaluate to, and the names they see.

use crate::layer::Per;
use crate::program::Origin;
use base::Dim;
use miras_base as base;
use miras_syntax::ast;
use miras_term::TermId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::builtin::Builtin;

/// A term, and for a value made from one gate the axis that the gate varies along: it says where a vector
/// lies beside a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) term: TermId,
    pub(crate) lane: Option<Per>,
}

impl Tensor {
    /// A term that comes from no gate.
    pub(crate) fn plain(term: TermId) -> Tensor {
        Tensor { term, lane: None }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A whole number or a size: a polynomial over dk and dv, known when the program is compiled.
    Size(Dim),
    /// A scalar, vector or matrix of reals or truth values.
    Tensor(Tensor),
    /// One tensor for each weight of the memory, in their order.
    Each(Rc<[Tensor]>),
    /// A truth value known when the program is compiled.
    Bool(bool),
    /// One of an enum's words.
    Word(Rc<str>, Rc<[String]>),
    /// A function.
    Function(Callable),
    /// Weights `W[l]` by their index.
    Family(Rc<Family>),
    /// `learned` or `trained`, not yet bound to a clause's parameter.
    Request(Rc<Request>),
}

impl Value {
    /// The whole number that this is, if it is one.
    pub(crate) fn as_whole(&self) -> Option<i64> {
        match self {
            Value::Size(dim) => dim.as_constant(),
            Value::Tensor(_)
            | Value::Each(_)
            | Value::Bool(_)
            | Value::Word(..)
            | Value::Function(_)
            | Value::Family(_)
            | Value::Request(_) => None,
        }
    }
}

/// What can be called.
#[derive(Clone, Debug)]
pub(crate) enum Callable {
    /// A function of the language.
    Builtin(Builtin),
    /// A function of a text.
    User(Arc<ast::Function>, Origin),
}

impl Callable {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Callable::Builtin(f) => f.name(),
            Callable::User(f, _) => &f.name.text,
        }
    }
}

/// Weights declared with an index.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) items: BTreeMap<i64, Tensor>,
}

/// A value that the data must supply.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// `learned(per = ...)`
    Learned(Per),
    /// `trained(init = ...)`
    Trained(Option<TermId>),
}

/// Names in force, innermost last.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    names: Vec<(String, Value)>,
    /// Whose text is being read.
    pub(crate) origin: Origin,
}

impl Scope {
    /// No names.
    pub(crate) fn new(origin: Origin) -> Scope {
        Scope { names: Vec::new(), origin }
    }

    /// Adds a name, hiding an earlier one.
    pub(crate) fn bind(&mut self, name: impl Into<String>, value: Value) {
        self.names.push((name.into(), value));
    }

    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Gives a bound name a new value; false where it is not bound.
    pub(crate) fn rebind(&mut self, name: &str, value: Value) -> bool {
        match self.names.iter_mut().rev().find(|(n, _)| n == name) {
            Some(slot) => {
                slot.1 = value;
                true
            }
            None => false,
        }
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(n, _)| n.as_str()).filter(|n| !n.contains('.'))
    }

    /// The present extent, for [`Scope::release`].
    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    /// Forgets the names bound since `mark`.
    pub(crate) fn release(&mut self, mark: usize) {
        self.names.truncate(mark);
    }
}
