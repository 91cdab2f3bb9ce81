//! What a clause means however it is spelled: its definition, and a value for every parameter.

use super::Builder;
use crate::eval::Value;
use crate::layer::{Per, Source};
use base::Span;
use miras_base as base;
use miras_syntax::{ast, print};
use miras_term::{Op, TermId};

impl Builder<'_> {
    /// The values of parameters as text, defaults among them.
    pub(super) fn spelled_out(&self, bound: &[(String, Value)]) -> Vec<(String, String)> {
        bound.iter().map(|(name, value)| (name.clone(), self.spelled(value))).collect()
    }

    fn spelled(&self, value: &Value) -> String {
        match value {
            Value::Size(dim) => dim.formula(),
            Value::Tensor(t) => self.supplied_as(t.term).unwrap_or_else(|| self.formula_of(t.term)),
            Value::Bool(b) => b.to_string(),
            Value::Word(word, _) => word.to_string(),
            Value::Function(f) => f.name().to_string(),
            Value::Each(_) | Value::Family(_) | Value::Request(_) => self.describe(value),
        }
    }

    /// `learned(per = channel)`, where a term is a parameter that the data gives.
    fn supplied_as(&self, term: TermId) -> Option<String> {
        let Op::Var(var) = self.terms.op(term) else { return None };
        let param = self.params.iter().find(|p| p.var == *var)?;
        Some(match param.source {
            Source::Learned(Per::Token) => "learned".into(),
            Source::Learned(per) => format!("learned(per = {})", per.word()),
            Source::Trained(Some(start)) => format!("trained(init = {})", self.formula_of(start)),
            Source::Trained(None) => "trained".into(),
            Source::Input | Source::Slow(_) => param.tensor.clone(),
        })
    }

    fn formula_of(&self, term: TermId) -> String {
        miras_term::print(&self.terms, term, &Default::default())
    }
}

/// A definition's text without its name, comments and spacing: equal for two that say the same.
pub(super) fn body(definition: &ast::Definition) -> String {
    let mut bare = definition.clone();
    bare.name.text.clear();
    bare.doc.clear();
    let span = Span { start: 0, end: 0, ..definition.span };
    let file =
        ast::File { uses: Vec::new(), items: vec![ast::Item::Definition(bare)], anonymous: None, span };
    print::file(&file)
}
