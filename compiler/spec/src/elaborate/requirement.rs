//! `require`: what a definition needs of its partners, judged by structure.

use super::clause::Clause;
use super::retention::Probe;
use super::structure::{degree, is_matrix_dv_dk, same_values};
use crate::eval::{Eval, fail_help};
use crate::layer::{Domain, Form, Kind, Layer, Retention};
use crate::program::did_you_mean;
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast::{Requirement, StmtKind};
use miras_term::{Mismatch, TermId, Terms, VarId};

/// A condition, what it may be said of, and what it means.
struct Predicate {
    name: &'static str,
    subject: Subject,
    holds: for<'a, 'b> fn(&'a mut Judge<'b>) -> Result<bool, Mismatch>,
    meaning: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Read,
    Loss,
    Memory,
    Retention,
}

const PREDICATES: &[Predicate] = &[
    Predicate {
        name: "linear",
        subject: Subject::Read,
        holds: |judge| judge.linear_read(),
        meaning: "a memory that answers `W @ x` with one weight `W: [dv, dk]`",
    },
    Predicate {
        name: "single",
        subject: Subject::Read,
        holds: |judge| judge.single_weight(),
        meaning: "a memory with a single weight",
    },
    Predicate {
        name: "quadratic",
        subject: Subject::Loss,
        holds: |judge| judge.quadratic_loss(),
        meaning: "a bias whose loss is half the squared distance, `sum((y - v)^2) / 2`",
    },
    Predicate {
        name: "cache",
        subject: Subject::Memory,
        holds: |judge| judge.keeps_history(),
        meaning: "a memory that keeps a history (`history k, v;`)",
    },
    Predicate {
        name: "unretained",
        subject: Subject::Retention,
        holds: |judge| judge.unretained(),
        meaning: "a retention that forgets nothing, `local(W, P) = sum((W - P)^2) / 2`",
    },
];

/// A condition on a number: its name, whether it holds, what it means.
type Bound = (&'static str, fn(f64) -> bool, &'static str);

/// Conditions on a definition's own parameters, for constants.
const BOUNDS: &[Bound] = &[
    ("nonzero", |x| x != 0.0, "not be 0"),
    ("below_one", |x| x < 1.0, "be less than 1"),
    ("above_one", |x| x > 1.0, "be more than 1"),
];

/// Checks every `require` of the four definitions.
pub(super) fn check(
    layer: &Layer,
    clauses: &[Clause; 4],
    probe: Option<&Probe>,
) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    for clause in clauses {
        for stmt in &clause.definition.body {
            let StmtKind::Require { conditions } = &stmt.kind else { continue };
            for condition in conditions {
                let checked = one(layer, clauses, clause, condition, probe);
                checked.unwrap_or_else(|d| problems.push(*d));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn one(
    layer: &Layer,
    clauses: &[Clause; 4],
    clause: &Clause,
    condition: &Requirement,
    probe: Option<&Probe>,
) -> Eval<()> {
    let name = condition.predicate.text.as_str();
    if BOUNDS.iter().any(|(n, ..)| *n == name) {
        return Ok(()); // judged when the parameters were bound
    }
    let Some(predicate) = PREDICATES.iter().find(|p| p.name == name) else {
        let names = PREDICATES.iter().map(|p| p.name).chain(BOUNDS.iter().map(|(n, ..)| *n));
        let list = names.clone().collect::<Vec<_>>().join(", ");
        let help = did_you_mean(name, names).unwrap_or(format!("conditions are {list}"));
        let message = format!("there is no condition called `{name}`");
        return fail_help(code::UNKNOWN_NAME, condition.predicate.span, message, "not a condition", help);
    };
    let word = match predicate.subject {
        Subject::Read => "read",
        Subject::Loss => "loss",
        Subject::Memory => "memory",
        Subject::Retention => "retention",
    };
    if condition.subjects.iter().any(|s| s.text != word) || condition.subjects.len() > 1 {
        let message = format!("`{name}` is a condition on the {word}");
        return fail_help(
            code::TYPE,
            condition.span,
            message,
            "said of something else",
            format!("write `{name}({word})`"),
        );
    }
    let mut judge = Judge { layer, terms: layer.terms.clone(), probe };
    match (predicate.holds)(&mut judge) {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(refuse(clauses, clause, condition.span, predicate)),
    }
}

fn refuse(clauses: &[Clause; 4], clause: &Clause, at: Span, predicate: &Predicate) -> Box<Diagnostic> {
    let partner = match predicate.subject {
        Subject::Read | Subject::Memory => &clauses[0],
        Subject::Loss => &clauses[1],
        Subject::Retention => &clauses[2],
    };
    let (own, other) = (&clause.definition.name.text, &partner.definition.name.text);
    let message = format!("the {} `{own}` cannot be used with the {} `{other}`", clause.key, partner.key);
    Box::new(
        Diagnostic::new(code::REFUSED_PAIR, message)
            .at(partner.span, "this partner is refused")
            .at(at, format!("`{own}` requires this"))
            .with_help(format!("choose {}, or another {}", predicate.meaning, clause.key)),
    )
}

/// Checks the conditions on a definition's own parameters where these are constants.
pub(super) fn check_bounds(clause: &Clause, constants: &[(String, f64)]) -> Eval<()> {
    for stmt in &clause.definition.body {
        let StmtKind::Require { conditions } = &stmt.kind else { continue };
        for condition in conditions {
            let known = BOUNDS.iter().find(|(n, ..)| *n == condition.predicate.text);
            if let Some((_, holds, meaning)) = known {
                bound(clause, constants, condition, *holds, meaning)?;
            }
        }
    }
    Ok(())
}

fn bound(
    clause: &Clause,
    constants: &[(String, f64)],
    condition: &Requirement,
    holds: fn(f64) -> bool,
    meaning: &str,
) -> Eval<()> {
    for subject in &condition.subjects {
        if !clause.definition.params.iter().any(|p| p.name.text == subject.text) {
            let names = clause.definition.params.iter().map(|p| p.name.text.as_str());
            let help = did_you_mean(&subject.text, names)
                .unwrap_or("name a parameter of this definition".to_string());
            let message = format!("`{}` is not a parameter", subject.text);
            return fail_help(code::UNKNOWN_NAME, subject.span, message, "not a parameter", help);
        }
        let value = constants.iter().find(|(n, _)| *n == subject.text).map(|(_, x)| *x);
        if let Some(value) = value
            && !holds(value)
        {
            let message = match value {
                0.0 => format!("`{}` must {meaning}", subject.text),
                _ => format!("`{}` = {value} must {meaning}", subject.text),
            };
            let diagnostic = Diagnostic::new(code::BAD_ARGUMENT, message)
                .at(clause.span, "given here")
                .at(condition.span, "required here")
                .with_help(format!("give `{}` a value that meets this", subject.text));
            return Err(Box::new(diagnostic));
        }
    }
    Ok(())
}

/// Answers questions about a layer; works on a copy of its arena.
struct Judge<'a> {
    layer: &'a Layer,
    terms: Terms,
    probe: Option<&'a Probe>,
}

impl Judge<'_> {
    fn kind(&self, var: VarId) -> Kind {
        self.layer.param_of(var).map_or(Kind::Real, |p| p.kind)
    }

    fn same(&self, a: TermId, b: TermId) -> bool {
        same_values(&self.terms, a, b, &|var| self.kind(var))
    }

    fn single_weight(&mut self) -> Result<bool, Mismatch> {
        Ok(self.layer.memory.weights.len() == 1)
    }

    fn keeps_history(&mut self) -> Result<bool, Mismatch> {
        Ok(self.layer.memory.history)
    }

    fn linear_read(&mut self) -> Result<bool, Mismatch> {
        let memory = &self.layer.memory;
        let ([weight], Some(read)) = (memory.weights.as_slice(), memory.read) else { return Ok(false) };
        let bilinear = degree(&self.terms, read, &[weight.var]) == Some(1)
            && degree(&self.terms, read, &[memory.argument]) == Some(1);
        if !bilinear || !is_matrix_dv_dk(&weight.shape) {
            return Ok(false);
        }
        let (w, x) = (self.terms.use_var(weight.var), self.terms.use_var(memory.argument));
        let plain = self.terms.matmul(w, x)?;
        Ok(self.same(read, plain))
    }

    fn quadratic_loss(&mut self) -> Result<bool, Mismatch> {
        let bias = &self.layer.bias;
        let (y, v) = (self.terms.use_var(bias.answer), self.terms.use_var(self.layer.value));
        let error = self.terms.sub(y, v)?;
        if let Some(slope) = bias.slope {
            return Ok(degree(&self.terms, slope, &[bias.answer]) == Some(1) && self.same(slope, error));
        }
        if degree(&self.terms, bias.loss, &[bias.answer]) != Some(2) {
            return Ok(false);
        }
        // Up to a part without y: loss(y) - loss(v) = sum((y - v)^2) / 2.
        let replace = std::collections::HashMap::from([(bias.answer, v)]);
        let least = self.terms.substitute_one(bias.loss, &replace)?;
        let rise = self.terms.sub(bias.loss, least)?;
        let half = self.half_square(error)?;
        Ok(self.same(rise, half))
    }

    fn unretained(&mut self) -> Result<bool, Mismatch> {
        if let Some(probe) = self.probe {
            self.terms = probe.terms.clone();
            return self.forgets_nothing(&probe.retention, probe.weight);
        }
        let layer = self.layer;
        for (retention, weight) in layer.retention.iter().zip(&layer.memory.weights) {
            if !self.forgets_nothing(retention, weight.var)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn forgets_nothing(&mut self, retention: &Retention, weight: VarId) -> Result<bool, Mismatch> {
        let (w, new) = (self.terms.use_var(weight), self.terms.use_var(retention.new_weight));
        match &retention.form {
            Form::Objective { local: Some(local), global: None, domain: Domain::All } => {
                let step = self.terms.sub(new, w)?;
                let half = self.half_square(step)?;
                Ok(degree(&self.terms, *local, &[retention.new_weight, weight]) == Some(2)
                    && self.same(*local, half))
            }
            Form::DeclaredMap { next } => {
                let u = self.terms.use_var(retention.update);
                let sum = self.terms.add(w, u)?;
                Ok(degree(&self.terms, *next, &[weight, retention.update]) == Some(1)
                    && self.same(*next, sum))
            }
            Form::Objective { .. } | Form::Lazy { .. } | Form::DeclaredDual { .. } => Ok(false),
        }
    }

    fn half_square(&mut self, x: TermId) -> Result<TermId, Mismatch> {
        let two = self.terms.num(2.0);
        let square = self.terms.fn2(base::scalar::Fn2::Pow, x, two)?;
        let sum = self.terms.sum(square)?;
        self.terms.div(sum, two)
    }
}
