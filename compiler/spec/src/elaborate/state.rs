//! States of an algorithm: one tensor, or one like each weight.

use super::Builder;
use super::algo::Parts;
use super::declare::own_name;
use super::memory::twice;
use crate::eval::{Eval, MAX_STATES, Scope, Tensor, Value, fail_help};
use crate::layer::State;
use base::Span;
use base::diagnostic::code;
use miras_base as base;
use miras_syntax::ast::{self, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId, VarId};
use std::rc::Rc;

/// A declared state: one tensor, or one for each weight.
pub(super) struct Declared {
    pub(super) tensors: Vec<NewState>,
    pub(super) each: bool,
    pub(super) span: Span,
    pub(super) renewed: bool,
}

pub(super) struct NewState {
    pub(super) name: String,
    pub(super) old: VarId,
    pub(super) new: VarId,
    pub(super) start: TermId,
    pub(super) shape: Shape,
}

impl Builder<'_> {
    pub(super) fn state(
        &mut self,
        scope: &mut Scope,
        d: &ast::Declaration,
        span: Span,
        order: &[(String, usize)],
        parts: &mut Parts,
    ) -> Eval<()> {
        let name = &d.name.text;
        if let Some(old) = parts.states.get(name) {
            return twice(name, span, old.span);
        }
        own_name(scope, d)?;
        if let Some(extra) = d.index.as_ref().map(|e| e.span).or(d.kind.as_ref().map(ast::Kind::span)) {
            let help =
                "write `state S;` for one like each weight, `state P: [dk, dk];` for one of its own shape";
            return fail_help(
                code::MISPLACED,
                extra,
                "a state has a name and perhaps a shape",
                "has no meaning here",
                help,
            );
        }
        let each = d.shape.is_none();
        let (shapes, starts) =
            if each { self.states_like_weights(scope, d, span)? } else { self.shaped_state(scope, d)? };
        let first = first_slot(order, name);
        if first + shapes.len() > MAX_STATES {
            return fail_help(
                code::UNROLL,
                span,
                format!("an algo has at most {MAX_STATES} state tensors"),
                "more than that here",
                "declare fewer states, or choose a memory with fewer weights",
            );
        }
        let mut tensors = Vec::new();
        for (i, (shape, start)) in shapes.into_iter().zip(starts).enumerate() {
            let (full, label) = if each {
                (format!("{name}.{}", self.weights[i].name), self.weight_label(name.clone(), i))
            } else {
                (name.clone(), name.clone())
            };
            let slot = (first + i) as u32;
            let old = self.terms.add_var(label.clone(), Role::State(slot), shape.clone(), Some(span));
            let new =
                self.terms.add_var(format!("{label}'"), Role::NewState(slot), shape.clone(), Some(span));
            tensors.push(NewState { name: full, old, new, start, shape });
        }
        let values: Vec<Tensor> = tensors.iter().map(|s| Tensor::plain(self.terms.use_var(s.old))).collect();
        scope.bind(name.clone(), bundle(values, each));
        parts.states.insert(name.clone(), Declared { tensors, each, span, renewed: false });
        Ok(())
    }

    fn states_like_weights(
        &mut self,
        scope: &mut Scope,
        d: &ast::Declaration,
        span: Span,
    ) -> Eval<(Vec<Shape>, Vec<TermId>)> {
        let shapes: Vec<Shape> = self.weights.iter().map(|w| w.shape.clone()).collect();
        if shapes.is_empty() {
            return fail_help(
                code::REFUSED_PAIR,
                span,
                "the memory has no weights for this state to be like",
                "needs weights",
                "give the state a shape, `state S: [dk, dk];`, or choose a memory with weights",
            );
        }
        let values: Vec<(Tensor, Span)> = match &d.init {
            None => vec![(Tensor::plain(self.terms.num(0.0)), span); shapes.len()],
            Some(init) => {
                let operand = self.operand(scope, init)?;
                match &operand.value {
                    Value::Each(list) => list.iter().map(|t| (*t, init.span)).collect(),
                    _ => vec![(self.tensor(&operand)?, init.span); shapes.len()],
                }
            }
        };
        let mut starts = Vec::new();
        for ((tensor, at), shape) in values.into_iter().zip(&shapes) {
            let term = self.fit(tensor, shape, at, "the start of a state")?;
            self.check_fixed(term, at, "the start of a state")?;
            starts.push(term);
        }
        Ok((shapes, starts))
    }

    fn shaped_state(&mut self, scope: &mut Scope, d: &ast::Declaration) -> Eval<(Vec<Shape>, Vec<TermId>)> {
        let shape = self.declared_shape(scope, d)?;
        let start = match self.start(scope, d, &shape)? {
            Some(start) => start,
            None => self.terms.fill(0.0, shape.clone()),
        };
        Ok((vec![shape], vec![start]))
    }

    /// `S' = ...;`
    pub(super) fn renew(
        &mut self,
        scope: &mut Scope,
        name: &ast::Ident,
        value: &ast::Expr,
        parts: &mut Parts,
    ) -> Eval<()> {
        let Some(declared) = parts.states.get(&name.text) else {
            let known: Vec<&str> = parts.states.keys().map(String::as_str).collect();
            let help = crate::program::did_you_mean(&name.text, known.into_iter())
                .unwrap_or_else(|| format!("declare it first: `state {};`", name.text));
            return fail_help(
                code::UNKNOWN_NAME,
                name.span,
                format!("there is no state called `{}`", name.text),
                "not declared",
                help,
            );
        };
        if declared.renewed {
            return twice(&format!("{}'", name.text), name.span, declared.span);
        }
        let each = declared.each;
        let operand = self.operand(scope, value)?;
        let what = format!("`{}'`", name.text);
        let tensors = if each { self.per_weight(&operand, &what)? } else { vec![self.tensor(&operand)?] };
        let Some(declared) = parts.states.get_mut(&name.text) else { return Ok(()) };
        declared.renewed = true;
        let mut values = Vec::new();
        for (tensor, state) in tensors.into_iter().zip(&declared.tensors) {
            let next = self.fit(tensor, &state.shape, value.span, &what)?;
            values.push(Tensor::plain(self.terms.use_var(state.new)));
            parts.renewed.push(State {
                name: state.name.clone(),
                old: state.old,
                new: state.new,
                start: state.start,
                next,
                span: Some(declared.span),
            });
        }
        scope.bind(format!("{}'", name.text), bundle(values, each));
        Ok(())
    }
}

fn bundle(values: Vec<Tensor>, each: bool) -> Value {
    match values.as_slice() {
        [one] if !each => Value::Tensor(*one),
        _ => Value::Each(Rc::from(values)),
    }
}

/// The states in the order in which the body renews them, each with its number of tensors.
pub(super) fn renewal_order(body: &[Stmt], weights: usize) -> Vec<(String, usize)> {
    let shaped = |name: &str| {
        let declared = body.iter().find_map(|s| match &s.kind {
            StmtKind::Declare(d) if d.role == ast::Role::State && d.name.text == name => {
                Some(d.shape.is_some())
            }
            _ => None,
        });
        declared.unwrap_or(true)
    };
    let names = body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Next { name, .. } => Some(name.text.clone()),
        _ => None,
    });
    names.map(|name| if shaped(&name) { (name, 1) } else { (name, weights) }).collect()
}

/// The position of a state's first tensor in that order.
fn first_slot(order: &[(String, usize)], name: &str) -> usize {
    order.iter().take_while(|(n, _)| n != name).map(|(_, count)| count).sum()
}
