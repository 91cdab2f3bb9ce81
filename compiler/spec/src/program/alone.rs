//! Definitions that no layer uses, checked by themselves.
//!
//! What a definition may do depends on its partners, so each is put into trial layers with plain ones (a matrix, a
//! vector or a history for the memory) and with something given for every parameter without a default. It is in
//! order where one trial can be elaborated and its rule derived; else the first trial whose refusal is about its own
//! text is told of.

use super::table::LayerItem;
use super::{Origin, Program, Table};
use crate::elaborate::{self, Builder};
use crate::eval::{Callable, Operand, Tensor, Value};
use crate::layer::Layer;
use base::diagnostic::{Code, code};
use base::{Diagnostic, FileId, SourceMap};
use miras_base as base;
use miras_syntax::ast::{self, DefinitionKind, ExprKind, StmtKind};
use miras_term::{Role, Shape};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The plain partners, under names that no text can write once [`hidden`] has renamed them.
const PARTNERS: &str = "
memory trial_matrix { weight W: [dv, dk] = 0; read(x) = W @ x; }
memory trial_vector { weight W: [dv] = 0; read(x) = W * x; }
memory trial_history { history k, v; }
bias trial { loss = sum((y - v)^2) / 2; }
retention trial { local(W, P) = sum((W - P)^2) / 2; }
algo trial { direction = -grad(W); }
algo trial_history { weigh = exp(dot(q, k)); }
";

/// What is given for numbers without a default, in turn.
const NUMBERS: [&str; 4] = ["learned", "trained", "2", "0.5"];

/// Refusals that may be the trial's fault.
const NOT_ITS_OWN: [Code; 5] =
    [code::REFUSED_PAIR, code::BAD_ARGUMENT, code::GATE_AXIS, code::SIMPLEX_GATE, code::NOT_CONSTANT];

/// Refusals of a derivation that are about a definition by itself.
const ITS_RULE: [Code; 2] = [code::NO_DERIVATIVE, code::NOT_SOLVED];

impl Program {
    /// Checks every definition and function of the user's files that no layer of theirs chooses. `derive` says what is
    /// wrong with a trial layer's rule.
    ///
    /// Gives how many there are, and what is wrong with them.
    pub fn check_alone(
        &self,
        sources: &mut SourceMap,
        derive: &mut dyn FnMut(Layer) -> Vec<Diagnostic>,
    ) -> (usize, Vec<Diagnostic>) {
        let chosen = self.chosen_by_layers();
        let idle =
            self.user.definitions.values().filter(|d| !chosen.contains(&(d.kind, d.name.text.as_str())));
        let idle: Vec<_> = idle.cloned().collect();
        let mut problems = Vec::new();
        for definition in &idle {
            problems.extend(self.tried(definition, sources, derive));
        }
        for function in self.user.functions.values() {
            problems.extend(self.called(function, sources));
        }
        (idle.len() + self.user.functions.len(), problems)
    }

    fn chosen_by_layers(&self) -> BTreeSet<(DefinitionKind, &str)> {
        let bodies = self.user.layers.values().filter_map(|item| match item {
            LayerItem::Full(layer) => Some(&layer.body),
            LayerItem::Anonymous(body) => Some(&**body),
            LayerItem::Alias(_) => None,
        });
        let clauses = bodies.chain(self.anonymous.as_deref()).flat_map(|body| &body.stmts);
        let written = clauses.filter_map(|stmt| match &stmt.kind {
            StmtKind::Clause { key, value } => chosen(&key.text, value),
            _ => None,
        });
        let given = self.user.layers.values().filter_map(|item| match item {
            LayerItem::Alias(alias) => Some(&alias.args),
            LayerItem::Full(_) | LayerItem::Anonymous(_) => None,
        });
        let given = given.flatten().filter_map(|arg| chosen(&arg.name.as_ref()?.text, &arg.value));
        written.chain(given).collect()
    }

    /// The errors of the first telling trial; none where one trial succeeds.
    fn tried(
        &self,
        definition: &ast::Definition,
        sources: &mut SourceMap,
        derive: &mut dyn FnMut(Layer) -> Vec<Diagnostic>,
    ) -> Vec<Diagnostic> {
        let mut told = Vec::new();
        // Which functions a definition can be given is up to it.
        let judged = !definition.params.iter().any(takes_function);
        for number in NUMBERS {
            for memory in ["trial_matrix", "trial_vector", "trial_history"] {
                // A history has no weights that a retention could be solved for.
                if definition.kind == DefinitionKind::Retention && memory == "trial_history" {
                    continue;
                }
                let text = trial(definition, memory, number);
                let file = sources.add(format!("a trial of {}", definition.name.text), text.as_str());
                match self.elaborate_trial(definition, file, &text, sources) {
                    Ok((layer, said)) => {
                        let wrong = if judged { derive(layer) } else { Vec::new() };
                        if !wrong.iter().any(Diagnostic::is_error) {
                            return said;
                        }
                        if told.is_empty() {
                            told = wrong.into_iter().filter_map(|d| derived(d, file, definition)).collect();
                        }
                    }
                    Err(problems) if told.is_empty() => {
                        told = problems.into_iter().filter(|d| is_about(d, file)).collect();
                    }
                    Err(_) => {}
                }
            }
        }
        told
    }

    fn elaborate_trial(
        &self,
        definition: &ast::Definition,
        file: FileId,
        text: &str,
        sources: &SourceMap,
    ) -> Result<(Layer, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (tree, problems) = miras_syntax::parse(file, text);
        let Some(mut body) = tree.anonymous.filter(|_| problems.is_empty()) else { return Err(problems) };
        for stmt in &mut body.stmts {
            match &mut stmt.kind {
                StmtKind::Clause { key, value } if key.text != definition.kind.word() => {
                    if let ExprKind::Name(name) = &mut value.kind {
                        name.text = hidden(&name.text);
                    }
                }
                _ => {}
            }
        }
        let program = self.with_partners();
        let item = LayerItem::Anonymous(Arc::new(body));
        let chosen = elaborate::Chosen { name: definition.name.text.clone(), item, origin: Origin::User };
        elaborate::layer(&program, sources, chosen, &[])
    }

    /// This program with the plain partners beside the user's definitions.
    fn with_partners(&self) -> Program {
        let mut user: Table = self.user.clone();
        let (file, _) = miras_syntax::parse(FileId(0), PARTNERS);
        let items = file.items.into_iter().map(|item| match item {
            ast::Item::Definition(mut d) => {
                d.name.text = hidden(&d.name.text);
                ast::Item::Definition(d)
            }
            other => other,
        });
        user.take(items.collect(), &mut Vec::new());
        Program { user, library: self.library.clone(), roots: Vec::new(), anonymous: None }
    }

    /// The names of a function's body, found out by calling it with numbers.
    fn called(&self, function: &Arc<ast::Function>, sources: &SourceMap) -> Option<Diagnostic> {
        let mut builder = Builder::new(self, sources);
        let span = function.name.span;
        let values = function.params.iter().map(|name| {
            let var = builder.terms.add_var(name.text.clone(), Role::Bound, Shape::scalar(), None);
            let term = builder.terms.use_var(var);
            Operand { value: Value::Tensor(Tensor::plain(term)), span }
        });
        let values = values.collect();
        let result = builder.apply(&Callable::User(function.clone(), Origin::User), values, span);
        let names = [code::UNKNOWN_NAME, code::RECURSION];
        result.err().map(|d| *d).filter(|d| names.contains(&d.code))
    }
}

/// The definition that a clause chooses.
fn chosen<'a>(key: &str, value: &'a ast::Expr) -> Option<(DefinitionKind, &'a str)> {
    let kinds =
        [DefinitionKind::Memory, DefinitionKind::Bias, DefinitionKind::Retention, DefinitionKind::Algo];
    let kind = kinds.into_iter().find(|k| k.word() == key)?;
    match &value.kind {
        ExprKind::Name(name) | ExprKind::Call { callee: name, .. } => Some((kind, &name.text)),
        _ => None,
    }
}

/// Whether an error is about the definition's own text.
fn is_about(problem: &Diagnostic, trial: FileId) -> bool {
    let elsewhere = problem.labels.first().is_some_and(|l| l.span.file != trial);
    elsewhere && !NOT_ITS_OWN.contains(&problem.code)
}

/// A refusal of the derivation as one of the definition: what is said of the trial is left out. None where it may be the
/// trial's fault.
fn derived(mut problem: Diagnostic, trial: FileId, definition: &ast::Definition) -> Option<Diagnostic> {
    if !ITS_RULE.contains(&problem.code) {
        return None;
    }
    problem.labels.retain(|l| l.span.file != trial);
    match problem.labels.as_slice() {
        [] => Some(problem.at(definition.name.span, "this definition")),
        _ => Some(problem),
    }
}

fn takes_function(param: &ast::ParamDef) -> bool {
    matches!(&param.kind, Some(ast::Kind::Named(kind)) if kind.text == "fn")
}

/// A name that no text can write.
fn hidden(name: &str) -> String {
    name.replacen("trial", "plain partner", 1)
}

/// The text of a trial layer.
fn trial(definition: &ast::Definition, memory: &str, number: &str) -> String {
    let algo = if memory == "trial_history" { "trial_history" } else { "trial" };
    let clause = |kind: DefinitionKind, plain: &str| match kind == definition.kind {
        true => format!("{}: {};\n", kind.word(), call(definition, number)),
        false => format!("{}: {plain};\n", kind.word()),
    };
    clause(DefinitionKind::Memory, memory)
        + &clause(DefinitionKind::Bias, "trial")
        + &clause(DefinitionKind::Retention, "trial")
        + &clause(DefinitionKind::Algo, algo)
}

/// The definition with something given for each parameter without a default.
fn call(definition: &ast::Definition, number: &str) -> String {
    let needed = definition.params.iter().filter(|p| p.default.is_none());
    let given = needed.map(|p| {
        let value = match &p.kind {
            Some(ast::Kind::Enum { words, .. }) => words.first().map_or("", |w| &w.text),
            Some(ast::Kind::Named(kind)) if kind.text == "nat" => "2",
            Some(ast::Kind::Named(kind)) if kind.text == "bool" => "true",
            Some(ast::Kind::Named(kind)) if kind.text == "fn" => "exp",
            Some(ast::Kind::Named(_)) | None => number,
        };
        format!("{} = {value}", p.name.text)
    });
    let given: Vec<String> = given.collect();
    if given.is_empty() {
        definition.name.text.clone()
    } else {
        format!("{}({})", definition.name.text, given.join(", "))
    }
}
