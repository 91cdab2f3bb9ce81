//! Parameters bound to values: constants, expressions, or tensors that the data must supply.

use super::clause::Clause;
use super::supplied::{NewParam, lane_of, shape_of};
use super::{Builder, requirement};
use crate::eval::{Eval, MAX_NAT, Operand, Request, Scope, Tensor, Value, fail_help};
use crate::layer::{Kind, Ranged, Source};
use crate::program::{Origin, did_you_mean};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use miras_term::{Env, Op, Shape, TermId};
use std::rc::Rc;

/// What is given for a parameter.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: ast::Expr,
    /// Whose text the value is.
    pub(super) origin: Origin,
    pub(super) span: Span,
}

/// The clause that parameters belong to; a layer's own parameters have none.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) clause: &'static str,
    /// Who asks, in messages.
    pub(super) asks: String,
}

/// What a parameter may be.
enum Wanted {
    Number(Kind),
    Nat,
    Bool,
    Function,
    Word(Rc<[String]>),
}

const KINDS: [&str; 6] = ["real", "positive", "unit", "nat", "bool", "fn"];

impl Builder<'_> {
    /// Binds the parameters of a definition. Arguments are read in `outer`, the scope of the text they
    /// stand in; defaults in a scope of the definition's own, which sees the parameters before them.
    pub(super) fn bind_parameters(
        &mut self,
        owner: Option<&Owner>,
        params: &[ast::ParamDef],
        given: &[Given],
        outer: &mut Scope,
        origin: Origin,
        place: Span,
    ) -> Eval<Vec<(String, Value)>> {
        let mut own = self.base_scope(origin);
        self.bind_token(&mut own);
        let mut bound: Vec<(String, Value)> = Vec::new();
        for param in params {
            let name = &param.name.text;
            if bound.iter().any(|(n, _)| n == name) {
                let message = format!("the parameter `{name}` is declared twice");
                return fail_help(
                    code::DUPLICATE,
                    param.span,
                    message,
                    "declared again here",
                    "rename one of the two",
                );
            }
            let value = match (given.iter().find(|g| g.name == *name), &param.default) {
                (Some(g), _) => {
                    let home = std::mem::replace(&mut outer.origin, g.origin);
                    let value = self.parameter(owner, param, &g.value, g.span, outer);
                    outer.origin = home;
                    value?
                }
                (None, Some(default)) => self.parameter(owner, param, default, place, &mut own)?,
                (None, None) => {
                    let diagnostic = Diagnostic::new(code::BAD_ARGUMENT, format!("`{name}` needs a value"))
                        .at(place, "not given here")
                        .at(param.span, "has no default")
                        .with_help(format!("write `{name} = ...` in the parentheses"));
                    return Err(Box::new(diagnostic));
                }
            };
            own.bind(name.clone(), value.clone());
            bound.push((name.clone(), value));
        }
        Ok(bound)
    }

    /// Binds the parameters of a clause's definition and judges its conditions on them.
    pub(super) fn clause_parameters(
        &mut self,
        clause: &Clause,
        outer: &Scope,
        scope: &mut Scope,
    ) -> Eval<()> {
        let owner = Owner { clause: clause.key, asks: clause.asks() };
        let mut outer = outer.clone();
        let params = &clause.definition.params;
        let bound = self.bind_parameters(
            Some(&owner),
            params,
            &clause.given,
            &mut outer,
            clause.origin,
            clause.span,
        )?;
        let constants: Vec<(String, f64)> = bound
            .iter()
            .filter_map(|(name, value)| match value {
                Value::Size(dim) => Some((name.clone(), dim.as_constant()? as f64)),
                Value::Tensor(t) => Some((name.clone(), self.constant(t.term)?)),
                _ => None,
            })
            .collect();
        requirement::check_bounds(clause, &constants)?;
        let arguments = self.spelled_out(&bound);
        self.arguments.insert(clause.key, arguments);
        for (name, value) in bound {
            scope.bind(name, value);
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        owner: Option<&Owner>,
        param: &ast::ParamDef,
        value: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Eval<Value> {
        match wanted(param)? {
            Wanted::Number(kind) => self.number_parameter(owner, param, kind, value, span, scope),
            Wanted::Nat => self.nat_parameter(param, value, span, scope),
            Wanted::Bool => match self.eval(scope, value)? {
                Value::Bool(b) => Ok(Value::Bool(b)),
                other => self.refuse(param, "`true` or `false`", &other, span),
            },
            Wanted::Function => match self.eval(scope, value)? {
                Value::Function(f) => Ok(Value::Function(f)),
                other => self.refuse(param, "a function", &other, span),
            },
            Wanted::Word(words) => self.word_parameter(param, words, value, span, scope),
        }
    }

    fn refuse<T>(&self, param: &ast::ParamDef, wanted: &str, found: &Value, span: Span) -> Eval<T> {
        let message = format!("`{}` must be {wanted}, found {}", param.name.text, self.describe(found));
        let diagnostic = Diagnostic::new(code::BAD_ARGUMENT, message)
            .at(span, "does not fit")
            .at(param.span, "the parameter")
            .with_help(format!("give it {wanted}"));
        Err(Box::new(diagnostic))
    }

    fn nat_parameter(
        &mut self,
        param: &ast::ParamDef,
        value: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Eval<Value> {
        if let Some(Request::Learned(_) | Request::Trained(_)) = self.request(scope, value)? {
            let message = format!("`{}` must be known when the program is compiled", param.name.text);
            return fail_help(code::NOT_CONSTANT, span, message, "given by the data", "write a whole number");
        }
        let found = self.eval(scope, value)?;
        match found.as_whole() {
            Some(n) if n < 0 => self.refuse(param, "a whole number from 0", &found, span),
            Some(n) if n > MAX_NAT => {
                let message = format!("`{}` = {n} is larger than {MAX_NAT}", param.name.text);
                fail_help(code::UNROLL, span, message, "too large", "make it smaller")
            }
            Some(_) => Ok(found),
            None => self.refuse(param, "a whole number known when the program is compiled", &found, span),
        }
    }

    fn word_parameter(
        &mut self,
        param: &ast::ParamDef,
        words: Rc<[String]>,
        value: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Eval<Value> {
        let name = match &value.kind {
            ast::ExprKind::Name(name) => name.text.clone(),
            _ => String::new(),
        };
        let passed = match scope.get(&name) {
            Some(Value::Word(word, _)) => word.to_string(),
            _ => name,
        };
        if words.contains(&passed) {
            return Ok(Value::Word(Rc::from(passed), words));
        }
        let list = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
        let help =
            did_you_mean(&passed, words.iter().map(String::as_str)).unwrap_or(format!("write one of {list}"));
        let diagnostic =
            Diagnostic::new(code::BAD_ARGUMENT, format!("`{}` must be one of {list}", param.name.text))
                .at(span, "none of these")
                .at(param.span, "the parameter")
                .with_help(help);
        Err(Box::new(diagnostic))
    }

    fn number_parameter(
        &mut self,
        owner: Option<&Owner>,
        param: &ast::ParamDef,
        kind: Kind,
        value: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Eval<Value> {
        let request = match self.request(scope, value)? {
            Some(request) => request,
            None => match self.eval(scope, value)? {
                Value::Request(request) => (*request).clone(),
                found @ (Value::Size(_) | Value::Tensor(_)) => {
                    let operand = Operand { value: found.clone(), span };
                    let term = self.tensor(&operand)?.term;
                    if self.terms.ty(term).truth {
                        return self.refuse(param, "a number", &found, span);
                    }
                    self.check_range(term, kind, &param.name, span)?;
                    self.note_range(owner, param, kind, term, span);
                    return Ok(found);
                }
                other => return self.refuse(param, "a number", &other, span),
            },
        };
        let Some(owner) = owner else { return Ok(Value::Request(Rc::new(request))) };
        let name = param.name.text.as_str();
        let (source, shape, lane) = match request {
            Request::Learned(per) => (Source::Learned(per), shape_of(per), lane_of(per)),
            Request::Trained(init) => {
                if let Some(start) = init {
                    self.check_range(start, kind, &param.name, span)?;
                }
                (Source::Trained(init), Shape::scalar(), None)
            }
        };
        let tensor = format!("{}.{name}", owner.clause);
        let new = NewParam { tensor, name, kind, source, shape, span, asks: &owner.asks };
        let term = self.add_param(new)?;
        Ok(Value::Tensor(Tensor { term, lane }))
    }

    /// Remembers a value that is known only with the sizes and the layer's place, for a run to check.
    fn note_range(
        &mut self,
        owner: Option<&Owner>,
        param: &ast::ParamDef,
        kind: Kind,
        value: TermId,
        span: Span,
    ) {
        if self.constant(value).is_some() || !self.terms.vars_of(&[value]).is_empty() {
            return;
        }
        let name = param.name.text.clone();
        let asked_by = owner.map_or_else(|| "the layer".to_string(), |o| format!("`{}`", o.asks));
        self.ranges.push(Ranged { name, value, kind, span: Some(span), asked_by });
    }

    /// Refuses a constant outside its kind's range; `named` is where the name and its kind stand.
    pub(super) fn check_range(&self, term: TermId, kind: Kind, named: &ast::Ident, span: Span) -> Eval<()> {
        let Some(value) = self.constant(term) else { return Ok(()) };
        let (fits, range) = match kind {
            Kind::Real => (value.is_finite(), "a finite number"),
            Kind::Positive => (value >= 0.0 && value.is_finite(), "in [0, inf)"),
            Kind::Unit => ((0.0..=1.0).contains(&value), "in [0, 1]"),
        };
        if fits {
            return Ok(());
        }
        let diagnostic =
            Diagnostic::new(code::BAD_ARGUMENT, format!("`{}` = {value} is not {range}", named.text))
                .at(span, "out of range")
                .at(named.span, format!("`{}` must be {range}", named.text))
                .with_help(format!("give it a value that is {range}"));
        Err(Box::new(diagnostic))
    }

    /// The number that a scalar without variables is, whatever the sizes and the layer's place.
    pub(super) fn constant(&self, term: TermId) -> Option<f64> {
        let free = self.terms.reachable(&[term]).into_iter().any(|id| {
            matches!(self.terms.op(id), Op::Var(_) | Op::Size(_) | Op::Place(_) | Op::Spread(..) | Op::Eye(_))
        });
        if free || self.terms.shape(term).rank() > 0 {
            return self.terms.as_num(term);
        }
        let value = self.terms.eval_one(term, &Env::default()).ok()?;
        value.data.first().copied()
    }

    /// Refuses a start value that varies by token.
    pub(super) fn check_fixed(&self, term: TermId, span: Span, what: &str) -> Eval<()> {
        for var in self.terms.vars_of(&[term]) {
            let fixed = self
                .params
                .iter()
                .any(|p| p.var == var && matches!(p.source, Source::Trained(_) | Source::Slow(_)));
            if !fixed {
                let name = &self.terms.var(var).name;
                let message = format!("{what} cannot depend on `{name}`, which varies by token");
                return fail_help(
                    code::NOT_CONSTANT,
                    span,
                    message,
                    "varies by token",
                    "use constants and trained parameters",
                );
            }
        }
        Ok(())
    }
}

/// The kind of a declared tensor or parameter.
pub(super) fn number_kind(kind: Option<&ast::Kind>) -> Eval<Kind> {
    match kind {
        None => Ok(Kind::Real),
        Some(kind) => match named_kind(kind) {
            Some(kind) => Ok(kind),
            None => fail_help(
                code::TYPE,
                kind.span(),
                "a tensor holds numbers of a kind",
                "not a kind of number",
                "write `real`, `positive` or `unit`",
            ),
        },
    }
}

fn named_kind(kind: &ast::Kind) -> Option<Kind> {
    match kind {
        ast::Kind::Named(name) => match name.text.as_str() {
            "real" => Some(Kind::Real),
            "positive" => Some(Kind::Positive),
            "unit" => Some(Kind::Unit),
            _ => None,
        },
        ast::Kind::Enum { .. } => None,
    }
}

fn wanted(param: &ast::ParamDef) -> Eval<Wanted> {
    let Some(kind) = &param.kind else { return Ok(Wanted::Number(Kind::Real)) };
    if let Some(kind) = named_kind(kind) {
        return Ok(Wanted::Number(kind));
    }
    match kind {
        ast::Kind::Enum { words, .. } => Ok(Wanted::Word(words.iter().map(|w| w.text.clone()).collect())),
        ast::Kind::Named(name) => match name.text.as_str() {
            "nat" => Ok(Wanted::Nat),
            "bool" => Ok(Wanted::Bool),
            "fn" => Ok(Wanted::Function),
            other => {
                let help = did_you_mean(other, KINDS.into_iter())
                    .unwrap_or_else(|| format!("kinds are {}, and enums `{{one, other}}`", KINDS.join(", ")));
                fail_help(
                    code::UNKNOWN_NAME,
                    name.span,
                    format!("there is no kind called `{other}`"),
                    "not a kind",
                    help,
                )
            }
        },
    }
}
