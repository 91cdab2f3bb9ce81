//! An algorithm: states, points of gradients and a direction; or a way to weigh a history.

use super::clause::Clause;
use super::memory::{no_part, twice};
use super::{AlgoContext, Builder};
use crate::eval::{Eval, MAX_STATES, Operand, Scope, Tensor, Value, fail, fail_help};
use crate::layer::{Algo, Source, State, Step, Weigh};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast::{self, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId, VarId};
use std::collections::BTreeMap;
use std::rc::Rc;

const PARTS: [&str; 5] = ["direction", "repeat", "weigh", "window", "refine"];

/// What the body has given so far.
#[derive(Default)]
struct Parts {
    direction: Option<(Vec<TermId>, Span)>,
    repeat: Option<(u32, Span)>,
    weigh: Option<(TermId, Span)>,
    window: Option<(u32, Span)>,
    refine: Option<(u32, Span)>,
    /// States by the names they are declared under.
    states: BTreeMap<String, Declared>,
    /// In the order in which they are renewed.
    renewed: Vec<State>,
}

/// A declared state: one tensor, or one for each weight.
struct Declared {
    tensors: Vec<NewState>,
    each: bool,
    span: Span,
    renewed: bool,
}

struct NewState {
    name: String,
    old: VarId,
    new: VarId,
    start: TermId,
    shape: Shape,
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
                    return fail(
                        code::MISPLACED,
                        at,
                        "only an algo that weighs a history has this",
                        "has no meaning beside `direction`",
                    );
                }
                let (retained, points) = context.map_or_else(Default::default, |c| (c.retained, c.points));
                let repeats = parts.repeat.map_or(1, |(n, _)| n);
                Ok(Algo::Step(Step { repeats, points, retained, states: parts.renewed, direction, span }))
            }
            (None, Some((kernel, _))) => {
                let misplaced = parts.repeat.map(|(_, s)| s).or(parts.states.values().map(|s| s.span).next());
                if let Some(at) = misplaced {
                    return fail(
                        code::MISPLACED,
                        at,
                        "an algo that weighs a history takes no steps",
                        "has no meaning beside `weigh`",
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
            StmtKind::Dual { .. } => {
                fail(code::MISPLACED, stmt.span, "an algo has no dual", "this belongs to a retention")
            }
            StmtKind::History { .. } => {
                fail(code::MISPLACED, stmt.span, "an algo keeps no history", "this belongs to a memory")
            }
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
    fn per_weight(&mut self, operand: &Operand, what: &str) -> Eval<Vec<Tensor>> {
        match (&operand.value, self.weights.len()) {
            (Value::Each(list), _) => Ok(list.to_vec()),
            (_, 1) => Ok(vec![self.tensor(operand)?]),
            (_, 0) => {
                let message = format!("the memory has no weights, so {what} has no meaning");
                fail(code::REFUSED_PAIR, operand.span, message, "needs weights")
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

    fn state(
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
            return fail(
                code::UNROLL,
                span,
                format!("an algo has at most {MAX_STATES} state tensors"),
                "more than that here",
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
            return fail(
                code::REFUSED_PAIR,
                span,
                "the memory has no weights for this state to be like",
                "needs weights",
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
    fn renew(
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
fn renewal_order(body: &[Stmt], weights: usize) -> Vec<(String, usize)> {
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
