//! An algorithm: states, points of gradients and a direction; or a way to weigh a history.

use super::clause::Clause;
use super::memory::{no_part, twice};
use super::state::{Declared, renewal_order};
use super::{AlgoContext, Builder};
use crate::eval::{Eval, Operand, Scope, Tensor, Value, fail_help};
use crate::layer::{Algo, Source, State, Step, Weigh};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast::{self, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId};
use std::collections::BTreeMap;
use std::rc::Rc;

const PARTS: [&str; 5] = ["direction", "repeat", "weigh", "window", "refine"];

/// What the body has given so far.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) direction: Option<(Vec<TermId>, Span)>,
    pub(super) repeat: Option<(u32, Span)>,
    pub(super) weigh: Option<(TermId, Span)>,
    pub(super) window: Option<(u32, Span)>,
    pub(super) refine: Option<(u32, Span)>,
    /// States by the names they are declared under.
    pub(super) states: BTreeMap<String, Declared>,
    /// In the order in which they are renewed.
    pub(super) renewed: Vec<State>,
}

impl Builder<'_> {
    pub(super) fn algorithm(&mut self, clause: &Clause, outer: &Scope) -> Eval<Algo> {
        let before = self.params.len();
        let definition = clause.definition.clone();
        self.check_parameter_names(&definition, &["W", "q", "k", "v"])?;
        let mut scope = self.base_scope(clause.origin);
        self.clause_parameters(clause, outer, &mut scope)?;
        self.bind_token(&mut scope);
        self.enter_algo(&mut scope);
        let mut parts = Parts::default();
        let order = renewal_order(&definition.body, self.weights.len());
        let read = definition
            .body
            .iter()
            .try_for_each(|stmt| self.algo_statement(&mut scope, stmt, &clause.asks(), &order, &mut parts));
        let context = self.algo.take();
        read?;
        let algo = self.finish_algo(clause, parts, context)?;
        if let Algo::Step(step) = &algo
            && step.repeats > 1
        {
            for param in &mut self.params[before..] {
                param.repeated = matches!(param.source, Source::Learned(_) | Source::Input);
            }
        }
        Ok(algo)
    }

    fn enter_algo(&mut self, scope: &mut Scope) {
        let mut retained = Vec::new();
        let mut weights = Vec::new();
        for (i, weight) in self.weights.clone().into_iter().enumerate() {
            let name = format!("retained({})", weight.display);
            retained.push(self.terms.add_var(name, Role::Retained(i as u32), weight.shape, weight.span));
            weights.push(Tensor::plain(self.terms.use_var(weight.var)));
        }
        let weights: Rc<[Tensor]> = Rc::from(weights);
        if !weights.is_empty() {
            scope.bind("W", Value::Each(weights.clone()));
        }
        self.algo = Some(AlgoContext { weights, retained, points: Vec::new() });
    }

    fn finish_algo(&mut self, clause: &Clause, parts: Parts, context: Option<AlgoContext>) -> Eval<Algo> {
        let definition = &clause.definition;
        let span = Some(definition.name.span);
        if let Some(idle) = parts.states.values().find(|s| !s.renewed) {
            let name = idle.tensors.first().map_or("", |s| s.name.split('.').next().unwrap_or(""));
            let help = format!("say what it becomes: `{name}' = ...;`");
            return fail_help(
                code::MISSING_PART,
                idle.span,
                format!("the state `{name}` is never renewed"),
                "declared here",
                help,
            );
        }
        match (parts.direction, parts.weigh) {
            (Some((_, at)), Some((_, other))) => {
                let diagnostic = Diagnostic::new(
                    code::MISPLACED,
                    "an algo steps along a `direction` or weighs a history, not both",
                )
                .at(other, "weighs a history")
                .at(at, "steps")
                .with_help("keep one of the two");
                Err(Box::new(diagnostic))
            }
            (None, None) => {
                let message = format!("the algo `{}` says nothing about the weights", definition.name.text);
                let help = "give `direction = ...;`, e.g. `-eta * grad(W)`, or `weigh = ...;` for a history";
                fail_help(code::MISSING_PART, definition.name.span, message, "this algo", help)
            }
            (Some((direction, _)), None) => {
                if let Some((_, at)) = parts.window.or(parts.refine) {
                    return fail_help(
                        code::MISPLACED,
                        at,
                        "only an algo that weighs a history has this",
                        "has no meaning beside `direction`",
                        "remove it, or answer from the history with `weigh = ...;` in place of `direction`",
                    );
                }
                let (retained, points) = context.map_or_else(Default::default, |c| (c.retained, c.points));
                let repeats = parts.repeat.map_or(1, |(n, _)| n);
                let once = parts.repeat.is_some() && repeats == 1;
                let step = Step { repeats, points, retained, states: parts.renewed, direction, span };
                Ok(Algo::Step(self.settled(step, once)?))
            }
            (None, Some((kernel, _))) => {
                let misplaced = parts.repeat.map(|(_, s)| s).or(parts.states.values().map(|s| s.span).next());
                if let Some(at) = misplaced {
                    return fail_help(
                        code::MISPLACED,
                        at,
                        "an algo that weighs a history takes no steps",
                        "has no meaning beside `weigh`",
                        "remove it; what an algo answers from a history needs no steps",
                    );
                }
                let window = parts.window.map(|(n, _)| n).filter(|n| *n > 0);
                Ok(Algo::Weigh(Weigh {
                    kernel,
                    window,
                    refinements: parts.refine.map_or(0, |(n, _)| n),
                    span,
                }))
            }
        }
    }

    fn algo_statement(
        &mut self,
        scope: &mut Scope,
        stmt: &Stmt,
        asks: &str,
        order: &[(String, usize)],
        parts: &mut Parts,
    ) -> Eval<()> {
        match &stmt.kind {
            StmtKind::Let { name, value } => self.bind_let(scope, name, value),
            StmtKind::Assign { name, value } if name.text == "direction" => {
                let terms = self.direction(scope, value, name.span, &parts.direction)?;
                parts.direction = Some((terms, stmt.span));
                Ok(())
            }
            StmtKind::Assign { name, value } if name.text == "weigh" => {
                let term = self.part(scope, name, value, &Shape::scalar(), parts.weigh)?;
                if self.terms.uses(term, self.value) {
                    let message = "the weight of a past token depends on its key, not on its value";
                    let help = "write it with `q`, the query, and `k`, the key of the past token";
                    return fail_help(code::TYPE, value.span, message, "depends on `v`", help);
                }
                parts.weigh = Some((term, stmt.span));
                Ok(())
            }
            StmtKind::Assign { name, .. } if scope.get(&name.text).is_none() => no_part(name, "algo", &PARTS),
            StmtKind::Assign { .. } | StmtKind::For { .. } => {
                self.statements(scope, std::slice::from_ref(stmt))
            }
            StmtKind::Declare(d) => match d.role {
                ast::Role::Input | ast::Role::Trained => self.declare_given(scope, d, stmt.span, asks),
                ast::Role::State => self.state(scope, d, stmt.span, order, parts),
                ast::Role::Weight | ast::Role::Slow => {
                    let message = format!("an algo declares no `{}`", d.role.word());
                    fail_help(
                        code::MISPLACED,
                        stmt.span,
                        message,
                        "declared here",
                        "weights and slow tensors belong to a memory",
                    )
                }
            },
            StmtKind::Next { name, value } => self.renew(scope, name, value, parts),
            StmtKind::Clause { key, value } => self.algo_clause(scope, key, value, stmt.span, parts),
            StmtKind::Require { .. } => Ok(()),
            StmtKind::Define { name, .. } => no_part(name, "algo", &PARTS),
            StmtKind::Dual { .. } => fail_help(
                code::MISPLACED,
                stmt.span,
                "an algo has no dual",
                "this belongs to a retention",
                "write `state A;` and `A' = ...;` for what an algo carries",
            ),
            StmtKind::History { .. } => fail_help(
                code::MISPLACED,
                stmt.span,
                "an algo keeps no history",
                "this belongs to a memory",
                "move it to the memory, e.g. `memory: cache`",
            ),
        }
    }

    fn algo_clause(
        &mut self,
        scope: &mut Scope,
        key: &ast::Ident,
        value: &ast::Expr,
        span: Span,
        parts: &mut Parts,
    ) -> Eval<()> {
        let slot = match key.text.as_str() {
            "repeat" => &mut parts.repeat,
            "window" => &mut parts.window,
            "refine" => &mut parts.refine,
            _ => return no_part(key, "algo", &PARTS),
        };
        if let Some((_, old)) = *slot {
            return twice(&key.text, span, old);
        }
        let n = match key.text.as_str() {
            "repeat" => self.count(scope, value, "the number of steps per token")?,
            "window" => self.natural(scope, value, "the window", crate::eval::MAX_NAT)?,
            _ => self.natural(scope, value, "the number of retrievals", crate::eval::MAX_REPEATS)?,
        };
        *slot = Some((n, span));
        Ok(())
    }

    /// A whole number from 0.
    fn natural(&mut self, scope: &mut Scope, e: &ast::Expr, what: &str, most: i64) -> Eval<u32> {
        let n = self.whole(scope, e, what)?;
        match u32::try_from(n) {
            Ok(count) if n <= most => Ok(count),
            _ => {
                let message = format!("{what} must be 0 to {most}, not {n}");
                fail_help(code::BAD_ARGUMENT, e.span, message, "out of range", "give a number in that range")
            }
        }
    }

    fn direction(
        &mut self,
        scope: &mut Scope,
        value: &ast::Expr,
        at: Span,
        old: &Option<(Vec<TermId>, Span)>,
    ) -> Eval<Vec<TermId>> {
        if let Some((_, old)) = old {
            return twice("direction", at, *old);
        }
        let operand = self.operand(scope, value)?;
        let tensors = self.per_weight(&operand, "the direction")?;
        let mut terms = Vec::new();
        for (tensor, weight) in tensors.into_iter().zip(self.weights.clone()) {
            terms.push(self.fit(tensor, &weight.shape, value.span, "the direction")?);
        }
        Ok(terms)
    }

    /// One tensor for each weight; a single tensor where there is a single weight.
    pub(super) fn per_weight(&mut self, operand: &Operand, what: &str) -> Eval<Vec<Tensor>> {
        match (&operand.value, self.weights.len()) {
            (Value::Each(list), _) => Ok(list.to_vec()),
            (_, 1) => Ok(vec![self.tensor(operand)?]),
            (_, 0) => {
                let message = format!("the memory has no weights, so {what} has no meaning");
                fail_help(
                    code::REFUSED_PAIR,
                    operand.span,
                    message,
                    "needs weights",
                    "choose a memory with weights, e.g. `memory: matrix`",
                )
            }
            (other, count) => {
                let message = format!("{what} is one tensor, but the memory has {count} weights");
                let label = format!("this is {}", self.describe(other));
                let help =
                    "write it with `grad(W)` and per-weight states, or choose a memory with one weight";
                fail_help(code::TYPE, operand.span, message, label, help)
            }
        }
    }
}
