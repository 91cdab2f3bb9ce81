//! A retention: read once for each weight of the memory.

use super::Builder;
use super::clause::Clause;
use super::form::form;
use super::memory::{no_part, twice};
use super::simplex;
use crate::eval::{Eval, MAX_REPEATS, Scope, Tensor, Value, fail_help};
use crate::layer::{Domain, Form, Retention};
use base::diagnostic::code;
use base::{Dim, Span};
use miras_base as base;
use miras_syntax::ast::{self, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId, Terms, VarId};

const PARTS: [&str; 6] = ["local", "global", "potential", "dual", "W'", "solve"];

/// A layer's retention; for a memory without weights what it would be on a weight [dv, dk].
pub(super) struct Built {
    pub(super) weights: Vec<Retention>,
    pub(super) probe: Option<Probe>,
}

/// A retention of a weight that no memory has, to ask about its structure.
pub(super) struct Probe {
    pub(super) terms: Terms,
    pub(super) weight: VarId,
    pub(super) retention: Retention,
}

/// One weight as a retention sees it.
pub(super) struct Subject {
    pub(super) index: u32,
    pub(super) label: String,
    pub(super) var: VarId,
    pub(super) shape: Shape,
    pub(super) new_weight: VarId,
    pub(super) update: VarId,
}

/// What the body has given so far.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) local: Option<(TermId, Span)>,
    pub(super) global: Option<(TermId, Span)>,
    pub(super) potential: Option<(TermId, Span)>,
    pub(super) dual: Option<([VarId; 2], TermId, Span)>,
    pub(super) map: Option<(TermId, Span)>,
    pub(super) newton: Option<(u32, Span)>,
}

impl Builder<'_> {
    pub(super) fn retention(&mut self, clause: &Clause, outer: &Scope) -> Eval<Built> {
        let definition = clause.definition.clone();
        self.check_parameter_names(&definition, &["W", "u"])?;
        let mut scope = self.base_scope(clause.origin);
        self.clause_parameters(clause, outer, &mut scope)?;
        for stmt in &definition.body {
            if let StmtKind::Declare(d) = &stmt.kind {
                self.retention_declaration(&mut scope, d, stmt.span, &clause.asks())?;
            }
        }
        let mut weights = Vec::new();
        for (index, weight) in self.weights.clone().into_iter().enumerate() {
            let label = self.weight_label(String::new(), index);
            let subject =
                self.subject(index as u32, label, weight.display, weight.var, weight.shape, weight.span);
            let retained =
                self.retain_one(&scope, clause, &subject).map_err(|d| self.for_weight(d, index))?;
            weights.push(retained);
        }
        let probe = self.probe(&scope, clause, &weights)?;
        Ok(Built { weights, probe })
    }

    fn retention_declaration(
        &mut self,
        scope: &mut Scope,
        d: &ast::Declaration,
        span: Span,
        asks: &str,
    ) -> Eval<()> {
        if matches!(d.role, ast::Role::Input | ast::Role::Trained) {
            return self.declare_given(scope, d, span, asks);
        }
        let message = format!("a retention declares no `{}`", d.role.word());
        let help = "what a retention carries besides the weights is its dual: `dual A' = ...;`";
        fail_help(code::MISPLACED, span, message, "declared here", help)
    }

    fn subject(
        &mut self,
        index: u32,
        label: String,
        display: String,
        var: VarId,
        shape: Shape,
        span: Option<Span>,
    ) -> Subject {
        let new_weight =
            self.terms.add_var(format!("{display}'"), Role::NewWeight(index), shape.clone(), span);
        let update = self.terms.add_var(format!("u{label}"), Role::Update(index), shape.clone(), span);
        Subject { index, label, var, shape, new_weight, update }
    }

    /// The retention of a matrix [dv, dk], in an arena of its own where the memory has no weight.
    fn probe(&mut self, scope: &Scope, clause: &Clause, weights: &[Retention]) -> Eval<Option<Probe>> {
        if !weights.is_empty() {
            return Ok(None);
        }
        let (terms, constraints) = (self.terms.clone(), self.constraints.clone());
        let shape = Shape::matrix(Dim::dv(), Dim::dk());
        let var = self.terms.add_var("W", Role::Weight(0), shape.clone(), None);
        let subject = self.subject(0, String::new(), "W".into(), var, shape, None);
        let retention = self.retain_one(scope, clause, &subject);
        let terms = std::mem::replace(&mut self.terms, terms);
        self.constraints = constraints;
        self.budget.shrink(self.terms.len());
        Ok(Some(Probe { terms, weight: var, retention: retention? }))
    }

    fn retain_one(&mut self, scope: &Scope, clause: &Clause, subject: &Subject) -> Eval<Retention> {
        let mut scope = scope.clone();
        for (name, var) in [("W", subject.var), ("u", subject.update)] {
            let term = self.terms.use_var(var);
            scope.bind(name, Value::Tensor(Tensor::plain(term)));
        }
        let definition = clause.definition.clone();
        let mut parts = Parts::default();
        for stmt in &definition.body {
            self.retention_statement(&mut scope, stmt, subject, &mut parts)?;
        }
        let domain = self.domain(&mut scope, &definition, subject)?;
        let newton = parts.newton.map(|(n, _)| n);
        let form = form(parts, domain, &definition)?;
        if let Form::Objective { local, global, domain: Domain::Simplex { axis, .. } } = &form {
            let objective: Vec<TermId> = local.iter().chain(global).copied().collect();
            let weights = [subject.var, subject.new_weight];
            simplex::check_gates(&self.terms, &objective, &weights, *axis, &subject.shape, clause)?;
        }
        Ok(Retention {
            new_weight: subject.new_weight,
            update: subject.update,
            form,
            newton,
            span: Some(definition.name.span),
        })
    }

    fn retention_statement(
        &mut self,
        scope: &mut Scope,
        stmt: &Stmt,
        s: &Subject,
        parts: &mut Parts,
    ) -> Eval<()> {
        match &stmt.kind {
            StmtKind::Let { name, value } => self.bind_let(scope, name, value),
            StmtKind::Assign { name, .. } if scope.get(&name.text).is_none() => {
                no_part(name, "retention", &PARTS)
            }
            StmtKind::Assign { .. } | StmtKind::For { .. } => {
                self.statements(scope, std::slice::from_ref(stmt))
            }
            StmtKind::Define { name, params, value } => match name.text.as_str() {
                "local" => {
                    parts.local =
                        Some((self.objective(scope, name, params, s, value, parts.local)?, stmt.span));
                    Ok(())
                }
                "global" => {
                    parts.global =
                        Some((self.objective(scope, name, params, s, value, parts.global)?, stmt.span));
                    Ok(())
                }
                "potential" => {
                    parts.potential =
                        Some((self.objective(scope, name, params, s, value, parts.potential)?, stmt.span));
                    Ok(())
                }
                _ => no_part(name, "retention", &PARTS),
            },
            StmtKind::Dual { name, value } => self.dual(scope, name, value, stmt.span, s, parts),
            StmtKind::Next { name, value } if name.text == "W" => {
                let term = self.part(scope, name, value, &s.shape, parts.map)?;
                parts.map = Some((term, stmt.span));
                Ok(())
            }
            StmtKind::Next { name, .. } => {
                let message = format!("a retention renews no `{}`", name.text);
                let help = format!(
                    "write `W' = ...;` for the weights, `dual {}' = ...;` for what is carried in their place",
                    name.text
                );
                fail_help(code::UNKNOWN_NAME, name.span, message, "not a part", help)
            }
            StmtKind::Clause { key, value } if key.text == "solve" => {
                self.solve(scope, value, stmt.span, parts)
            }
            StmtKind::Clause { key, .. } => no_part(key, "retention", &PARTS),
            StmtKind::Require { .. } | StmtKind::Declare(_) => Ok(()),
            StmtKind::History { .. } => {
                let message = "a retention keeps no history";
                fail_help(
                    code::MISPLACED,
                    stmt.span,
                    message,
                    "this belongs to a memory",
                    "move it to the memory, e.g. `memory: cache`",
                )
            }
        }
    }

    /// `local(W, P) = ...` and its siblings: one number made from the unknown weights.
    fn objective(
        &mut self,
        scope: &mut Scope,
        name: &ast::Ident,
        params: &[ast::Ident],
        s: &Subject,
        value: &ast::Expr,
        old: Option<(TermId, Span)>,
    ) -> Eval<TermId> {
        let vars = if name.text == "local" { vec![s.new_weight, s.var] } else { vec![s.new_weight] };
        if params.len() != vars.len() {
            let shape = if vars.len() == 2 { "(W, P)" } else { "(W)" };
            let message = format!("`{}` takes {} arguments, found {}", name.text, vars.len(), params.len());
            return fail_help(
                code::TYPE,
                name.span,
                message,
                "this part",
                format!("write `{}{shape} = ...;`", name.text),
            );
        }
        let mark = scope.mark();
        for (param, var) in params.iter().zip(&vars) {
            let term = self.terms.use_var(*var);
            scope.bind(param.text.clone(), Value::Tensor(Tensor::plain(term)));
        }
        self.objective = vec![s.new_weight, s.var];
        let term = self.part(scope, name, value, &Shape::scalar(), old);
        self.objective.clear();
        scope.release(mark);
        term
    }

    fn dual(
        &mut self,
        scope: &mut Scope,
        name: &ast::Ident,
        value: &ast::Expr,
        span: Span,
        s: &Subject,
        parts: &mut Parts,
    ) -> Eval<()> {
        if let Some((_, _, old)) = parts.dual {
            return twice("dual", span, old);
        }
        let label = format!("{}{}", name.text, s.label);
        let old = self.terms.add_var(label.clone(), Role::Dual(s.index), s.shape.clone(), Some(span));
        let new =
            self.terms.add_var(format!("{label}'"), Role::NewDual(s.index), s.shape.clone(), Some(span));
        let (a, a_new) = (self.terms.use_var(old), self.terms.use_var(new));
        scope.bind(name.text.clone(), Value::Tensor(Tensor::plain(a)));
        let next = self.part(scope, name, value, &s.shape, None)?;
        scope.bind(format!("{}'", name.text), Value::Tensor(Tensor::plain(a_new)));
        parts.dual = Some(([old, new], next, span));
        Ok(())
    }

    /// `solve: newton(n);`
    fn solve(&mut self, scope: &mut Scope, value: &ast::Expr, span: Span, parts: &mut Parts) -> Eval<()> {
        if let Some((_, old)) = parts.newton {
            return twice("solve", span, old);
        }
        let steps = match &value.kind {
            ast::ExprKind::Call { callee, args } if callee.text == "newton" && args.len() == 1 => {
                &args[0].value
            }
            _ => {
                let message = "the way to solve is `newton(n)`, n steps";
                return fail_help(
                    code::BAD_ARGUMENT,
                    value.span,
                    message,
                    "something else",
                    "write `solve: newton(8);`",
                );
            }
        };
        let n = self.count(scope, steps, "the number of Newton steps")?;
        parts.newton = Some((n, span));
        Ok(())
    }

    /// A small whole number from 1.
    pub(super) fn count(&mut self, scope: &mut Scope, e: &ast::Expr, what: &str) -> Eval<u32> {
        let n = self.whole(scope, e, what)?;
        match u32::try_from(n) {
            Ok(count @ 1..) if n <= MAX_REPEATS => Ok(count),
            _ => {
                let message = format!("{what} must be 1 to {MAX_REPEATS}, not {n}");
                fail_help(code::BAD_ARGUMENT, e.span, message, "out of range", "give a number in that range")
            }
        }
    }
}
