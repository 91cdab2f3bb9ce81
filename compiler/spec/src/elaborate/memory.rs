//! A memory: its weights, its slow tensors and its read, or its history.

use super::Builder;
use super::clause::Clause;
use super::declare::own_name;
use crate::eval::{Eval, Family, MAX_WEIGHTS, Scope, Tensor, Value, fail_help};
use crate::layer::{Memory, Source, Weight};
use crate::program::did_you_mean;
use base::diagnostic::code;
use base::{Diagnostic, Dim, Span};
use miras_base as base;
use miras_syntax::ast::{self, Declaration, Stmt, StmtKind};
use miras_term::{Role, Shape, TermId};
use std::rc::Rc;

/// What the body has given so far.
struct Parts {
    argument: miras_term::VarId,
    read: Option<(TermId, Span)>,
    history: Option<Span>,
    asks: String,
}

impl Builder<'_> {
    pub(super) fn memory(&mut self, clause: &Clause, outer: &Scope) -> Eval<Memory> {
        let definition = clause.definition.clone();
        let mut scope = self.base_scope(clause.origin);
        let before = self.params.len();
        self.clause_parameters(clause, outer, &mut scope)?;
        self.refuse_gates(before)?;
        let argument = self.terms.add_var("x", Role::ReadArgument, Shape::vector(Dim::dk()), None);
        let mut parts = Parts { argument, read: None, history: None, asks: clause.asks() };
        self.memory_body(&mut scope, &definition.body, &mut parts)?;
        if parts.history.is_none() && parts.read.is_none() {
            let message = format!("the memory `{}` has no `read`", definition.name.text);
            let help = "say what it answers: `read(x) = ...;`, or what it keeps: `history k, v;`";
            return fail_help(code::MISSING_PART, definition.name.span, message, "this memory", help);
        }
        if let (Some(at), Some((_, read_at))) = (parts.history, parts.read) {
            return both(at, read_at, "a `read`");
        }
        if let (Some(at), Some(weight)) = (parts.history, self.weights.first()) {
            return both(at, weight.span.unwrap_or(at), "a weight");
        }
        if self.weights.is_empty() && parts.history.is_none() {
            let message = format!("the memory `{}` has no weights, so it cannot learn", definition.name.text);
            return fail_help(
                code::MISSING_PART,
                definition.name.span,
                message,
                "this memory",
                "declare `weight W: [dv, dk];`",
            );
        }
        Ok(Memory {
            weights: self.weights.clone(),
            argument,
            read: parts.read.map(|(term, _)| term),
            history: parts.history.is_some(),
        })
    }

    /// A memory's parameters are constants or trained: its weights alone change from token to token.
    fn refuse_gates(&self, before: usize) -> Eval<()> {
        for param in &self.params[before..] {
            if let (Source::Learned(_), Some(span)) = (param.source, param.span) {
                let message = format!("`{}` is a memory's parameter and cannot vary by token", param.tensor);
                return fail_help(
                    code::BAD_ARGUMENT,
                    span,
                    message,
                    "given with every token",
                    "give it a constant or `trained`",
                );
            }
        }
        Ok(())
    }

    fn memory_body(&mut self, scope: &mut Scope, body: &[Stmt], parts: &mut Parts) -> Eval<()> {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Let { name, value } => self.bind_let(scope, name, value)?,
                StmtKind::Assign { .. } => self.statements(scope, std::slice::from_ref(stmt))?,
                StmtKind::For { var, range, body } => {
                    outside_loops(body)?;
                    let mut kept = Vec::new();
                    self.unroll(scope, var, range, |me, scope| {
                        me.memory_body(scope, body, parts)?;
                        kept = declared(scope, &me.weights);
                        Ok(())
                    })?;
                    for (name, value) in kept {
                        scope.bind(name, value);
                    }
                }
                StmtKind::Declare(d) => self.memory_declaration(scope, d, stmt.span, parts)?,
                StmtKind::Define { name, params, value } if name.text == "read" => {
                    self.read(scope, params, value, name.span, parts)?
                }
                StmtKind::History { names } => self.history(names, stmt.span, parts)?,
                StmtKind::Require { .. } => {}
                StmtKind::Define { name, .. } => return no_part(name, "memory", &["read"]),
                StmtKind::Clause { key, .. } => return no_part(key, "memory", &["read"]),
                StmtKind::Next { .. } | StmtKind::Dual { .. } => {
                    let message = "a memory's weights are renewed by the algo and the retention";
                    return fail_help(
                        code::MISPLACED,
                        stmt.span,
                        message,
                        "this belongs to an algo or a retention",
                        "move it to the algo (`state S; S' = ...;`) or the retention (`W' = ...;`)",
                    );
                }
            }
        }
        Ok(())
    }

    fn memory_declaration(
        &mut self,
        scope: &mut Scope,
        d: &Declaration,
        span: Span,
        parts: &mut Parts,
    ) -> Eval<()> {
        match d.role {
            ast::Role::Weight => self.weight(scope, d, span),
            ast::Role::Slow => {
                own_name(scope, d)?;
                let asks = parts.asks.clone();
                self.declare_slow(scope, d, span, &asks)
            }
            ast::Role::State | ast::Role::Input | ast::Role::Trained => {
                let message = format!("a memory declares no `{}`", d.role.word());
                let help = "a memory has `weight`s, which it learns, and `slow` tensors, which the outer loop learns";
                fail_help(code::MISPLACED, span, message, "declared here", help)
            }
        }
    }

    fn weight(&mut self, scope: &mut Scope, d: &Declaration, span: Span) -> Eval<()> {
        if self.weights.len() == MAX_WEIGHTS {
            let message = format!("a memory has at most {MAX_WEIGHTS} weights");
            return fail_help(code::UNROLL, span, message, "one more here", "make it shallower");
        }
        if let Some(kind) = &d.kind {
            let message = "a weight takes any value that its retention allows";
            return fail_help(
                code::MISPLACED,
                kind.span(),
                message,
                "a kind",
                "remove it; a retention's domain limits weights",
            );
        }
        let index = match &d.index {
            Some(e) => Some(self.whole(scope, e, "the index of a weight")?),
            None => None,
        };
        let (name, display) = match index {
            Some(i) => (format!("{}{i}", d.name.text), format!("{}[{i}]", d.name.text)),
            None => (d.name.text.clone(), d.name.text.clone()),
        };
        if d.shape.is_none() {
            let message = format!("the weight `{display}` needs a shape");
            return fail_help(code::TYPE, span, message, "no shape", "write e.g. `weight W: [dv, dk];`");
        }
        let shape = self.declared_shape(scope, d)?;
        if shape.rank() == 0 {
            let message = "a weight is a vector or a matrix";
            return fail_help(code::TYPE, span, message, "a scalar", "write `[1]` for a single number");
        }
        self.check_fresh(&name, span)?;
        let start = self.start(scope, d, &shape)?;
        let role = Role::Weight(self.weights.len() as u32);
        let var = self.terms.add_var(display.clone(), role, shape.clone(), Some(span));
        self.weights.push(Weight { name, display, var, shape, start, span: Some(span) });
        let tensor = Tensor::plain(self.terms.use_var(var));
        let value = match index {
            None => Value::Tensor(tensor),
            Some(_) => Value::Family(Rc::new(self.family(&d.name.text))),
        };
        scope.bind(d.name.text.clone(), value);
        Ok(())
    }

    /// All weights declared so far as `name[..]`.
    fn family(&mut self, name: &str) -> Family {
        let indexed = self.weights.iter().filter_map(|w| {
            let index = w.display.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((index.parse::<i64>().ok()?, w.var))
        });
        let found: Vec<(i64, miras_term::VarId)> = indexed.collect();
        let items = found.into_iter().map(|(i, var)| (i, Tensor::plain(self.terms.use_var(var))));
        Family { name: name.to_string(), items: items.collect() }
    }

    /// Refuses a second tensor `memory.<name>`.
    fn check_fresh(&self, name: &str, span: Span) -> Eval<()> {
        let weight = self.weights.iter().find(|w| w.name == name).map(|w| w.span);
        let slow = self.params.iter().find(|p| p.tensor == format!("memory.{name}")).map(|p| p.span);
        let Some(old) = weight.or(slow) else { return Ok(()) };
        let diagnostic =
            Diagnostic::new(code::DUPLICATE, format!("the tensor `memory.{name}` is declared twice"))
                .at(span, "declared again here")
                .at_opt(old, "first declared here")
                .with_help("rename one of the two");
        Err(Box::new(diagnostic))
    }

    fn read(
        &mut self,
        scope: &mut Scope,
        params: &[ast::Ident],
        value: &ast::Expr,
        at: Span,
        parts: &mut Parts,
    ) -> Eval<()> {
        if let Some((_, old)) = parts.read {
            return twice("read", at, old);
        }
        let [x] = params else {
            return fail_help(
                code::TYPE,
                at,
                "`read` takes one vector",
                "this part",
                "write `read(x) = ...;`",
            );
        };
        let mark = scope.mark();
        let argument = self.terms.use_var(parts.argument);
        scope.bind(x.text.clone(), Value::Tensor(Tensor::plain(argument)));
        let answer = self.operand(scope, value);
        scope.release(mark);
        let answer = answer?;
        let tensor = self.tensor(&answer)?;
        let found = self.terms.shape(tensor.term).clone();
        if found.rank() != 1 {
            let message = format!("`read` must give a vector [dv], found {}", self.describe(&answer.value));
            return fail_help(
                code::SHAPE,
                value.span,
                message,
                format!("this is {found}"),
                "a memory answers with a value",
            );
        }
        let term = self.fit(tensor, &Shape::vector(Dim::dv()), value.span, "`read`")?;
        self.check_read(term, parts.argument, value.span)?;
        parts.read = Some((term, at));
        Ok(())
    }

    /// `read` answers for any vector, so nothing in it belongs to one token but its argument and the weights.
    fn check_read(&self, read: TermId, argument: miras_term::VarId, at: Span) -> Eval<()> {
        let weights: Vec<_> = self.weights.iter().map(|w| w.var).collect();
        for var in self.terms.vars_of(&[read]) {
            let fixed = self
                .params
                .iter()
                .any(|p| p.var == var && !matches!(p.source, Source::Learned(_) | Source::Input));
            if var != argument && !weights.contains(&var) && !fixed {
                let message =
                    format!("`read` cannot depend on `{}`, which varies by token", self.terms.var(var).name);
                let help =
                    "give the memory constants and trained values; `read` is used for keys and for queries";
                return fail_help(code::BAD_ARGUMENT, at, message, "varies by token", help);
            }
        }
        Ok(())
    }

    fn history(&mut self, names: &[ast::Ident], span: Span, parts: &mut Parts) -> Eval<()> {
        let words: Vec<&str> = names.iter().map(|n| n.text.as_str()).collect();
        if words != ["k", "v"] {
            let message = "a history keeps the keys and the values";
            return fail_help(code::TYPE, span, message, "keeps something else", "write `history k, v;`");
        }
        if let Some(old) = parts.history {
            return twice("history", span, old);
        }
        parts.history = Some(span);
        Ok(())
    }
}

/// Refuses what speaks of the whole definition inside a loop.
fn outside_loops(body: &[Stmt]) -> Eval<()> {
    let misplaced = |s: &&Stmt| matches!(s.kind, StmtKind::Require { .. } | StmtKind::History { .. });
    let Some(stmt) = body.iter().find(misplaced) else { return Ok(()) };
    let (message, help) = ("this speaks of the whole memory", "move it out of the loop");
    fail_help(code::MISPLACED, stmt.span, message, "inside a `for`", help)
}

/// The weights' names as they stand at the end of a round of a loop, to outlive it.
fn declared(scope: &Scope, weights: &[Weight]) -> Vec<(String, Value)> {
    let mut names: Vec<&str> =
        weights.iter().map(|w| w.display.split('[').next().unwrap_or(&w.display)).collect();
    names.dedup();
    names.into_iter().filter_map(|n| Some((n.to_string(), scope.get(n)?.clone()))).collect()
}

/// The refusal of a part that a definition of this kind does not have.
pub(super) fn no_part<T>(name: &ast::Ident, kind: &str, parts: &[&str]) -> Eval<T> {
    let list = parts.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ");
    let help = did_you_mean(&name.text, parts.iter().copied()).unwrap_or(format!("its parts are {list}"));
    let article = if kind == "algo" { "an" } else { "a" };
    fail_help(
        code::UNKNOWN_NAME,
        name.span,
        format!("{article} {kind} has no part `{}`", name.text),
        "not a part",
        help,
    )
}

/// The refusal of a part that is given twice.
pub(super) fn twice<T>(name: &str, at: Span, old: Span) -> Eval<T> {
    let diagnostic = Diagnostic::new(code::DUPLICATE, format!("`{name}` is given twice"))
        .at(at, "given again here")
        .at(old, "first given here")
        .with_help("keep one of the two");
    Err(Box::new(diagnostic))
}

fn both<T>(history: Span, other: Span, what: &str) -> Eval<T> {
    let diagnostic =
        Diagnostic::new(code::MISPLACED, format!("a memory that keeps a history has no place for {what}"))
            .at(history, "keeps a history")
            .at(other, "declared here")
            .with_help("remove one of the two; an algo answers from the history");
    Err(Box::new(diagnostic))
}
