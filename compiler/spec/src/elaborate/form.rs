//! The form of a retention, from the parts that its body gives.

use super::retention::Parts;
use crate::eval::{Eval, fail_help};
use crate::layer::{Domain, Form};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use miras_term::TermId;

/// The form of a retention, from the parts that it has.
pub(super) fn form(parts: Parts, domain: Option<(Domain, Span)>, definition: &ast::Definition) -> Eval<Form> {
    let Parts { local, global, potential, dual, map, newton } = parts;
    let first = |a: &Option<(TermId, Span)>| a.as_ref().map(|(_, s)| *s);
    let objective = first(&local).or(first(&global));
    let term = |a: Option<(TermId, Span)>| a.map(|(t, _)| t);
    match (dual, map, potential) {
        (Some((vars, next, _)), Some((map, map_at)), None) => {
            let other = objective.or(domain.as_ref().map(|d| d.1)).or(newton.map(|n| n.1));
            only(map_at, other, "a declared map `W' = ...`")?;
            Ok(Form::DeclaredDual { dual: vars, next, map })
        }
        (Some((vars, next, at)), None, Some((potential, _))) => {
            only(at, objective, "a dual")?;
            Ok(Form::Lazy { dual: vars, next, potential, domain: domain.map_or(Domain::All, |d| d.0) })
        }
        (None, Some((next, at)), None) => {
            let other = objective.or(domain.as_ref().map(|d| d.1)).or(newton.map(|n| n.1));
            only(at, other, "a declared map `W' = ...`")?;
            Ok(Form::DeclaredMap { next })
        }
        (_, Some((_, at)), Some((_, other))) => only(at, Some(other), "a declared map `W' = ...`")
            .map(|()| Form::Objective { local: None, global: None, domain: Domain::All }),
        (Some((.., at)), None, None) => {
            let help = "say how the weights follow from it: `potential(W) = ...;` or `W' = ...;`";
            fail_help(code::MISSING_PART, at, "the dual leads to no weights", "this dual", help)
        }
        (None, None, Some((_, at))) => {
            let help = "say what is carried: `dual A' = (1 - alpha) * A + u;`";
            fail_help(code::MISSING_PART, at, "a potential needs a dual", "this potential", help)
        }
        (None, None, None) if objective.is_none() => {
            let message = format!("the retention `{}` says nothing about the weights", definition.name.text);
            let help = "give `local(W, P)` and `global(W)`, a dual, or a map `W' = ...`";
            fail_help(code::MISSING_PART, definition.name.span, message, "this retention", help)
        }
        (None, None, None) => Ok(Form::Objective {
            local: term(local),
            global: term(global),
            domain: domain.map_or(Domain::All, |d| d.0),
        }),
    }
}

fn only(at: Span, other: Option<Span>, what: &str) -> Eval<()> {
    let Some(other) = other else { return Ok(()) };
    let diagnostic = Diagnostic::new(code::MISPLACED, format!("{what} leaves nothing to be solved"))
        .at(other, "has no place beside it")
        .at(at, "given here")
        .with_help("keep one of the two");
    Err(Box::new(diagnostic))
}

/// The terms that a form is made of.
pub(super) fn terms_of(form: &Form) -> Vec<TermId> {
    match form {
        Form::Objective { local, global, domain } => {
            local.iter().chain(global).copied().chain(domain_terms(domain)).collect()
        }
        Form::Lazy { dual: _, next, potential, domain } => {
            [*next, *potential].into_iter().chain(domain_terms(domain)).collect()
        }
        Form::DeclaredDual { dual: _, next, map } => vec![*next, *map],
        Form::DeclaredMap { next } => vec![*next],
    }
}

fn domain_terms(domain: &Domain) -> Vec<TermId> {
    match domain {
        Domain::All => Vec::new(),
        Domain::Simplex { axis: _, mass } => vec![*mass],
        Domain::Ball { radius } => vec![*radius],
        Domain::Interval { low, high } => vec![*low, *high],
    }
}
