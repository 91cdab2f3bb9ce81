//! A layer's statements sorted by what they are, aliases and settings applied.

use super::setting::{Setting, Target, of_alias};
use super::{Builder, Chosen};
use crate::eval::{Eval, MAX_CHUNK, Scope, fail_help};
use crate::program::{LayerItem, Origin, Program, did_you_mean};
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast;
use std::collections::HashSet;

/// The clauses of a layer: the four choices in their order, then the minor ones.
pub(super) const CHOICES: [(&str, ast::DefinitionKind); 4] = [
    ("memory", ast::DefinitionKind::Memory),
    ("bias", ast::DefinitionKind::Bias),
    ("retention", ast::DefinitionKind::Retention),
    ("algo", ast::DefinitionKind::Algo),
];
const MINOR: [&str; 2] = ["chunk", "read"];
/// The chunk length where a layer names none (docs/mathematics.md).
const DEFAULT_CHUNK: u32 = 64;

/// A clause's value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) value: ast::Expr,
    pub(super) origin: Origin,
    /// Key and value.
    pub(super) span: Span,
    /// Arguments that come from outside and replace those written.
    pub(super) settings: Vec<Setting>,
}

/// A layer's text, sorted.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) origin: Origin,
    pub(super) params: Vec<ast::ParamDef>,
    /// Values for the parameters, later ones first in force.
    pub(super) given: Vec<Setting>,
    /// `let` lines and declarations in the order written.
    pub(super) stmts: Vec<ast::Stmt>,
    pub(super) choices: [Written; 4],
    pub(super) chunk: Option<Written>,
    pub(super) read: Option<Written>,
}

/// Follows aliases to a layer's text and sorts it.
pub(super) fn collect(
    program: &Program,
    chosen: Chosen,
    options: &[Setting],
) -> Result<Body, Vec<Diagnostic>> {
    let name = chosen.name.clone();
    let (full, origin, mut settings) = follow(program, chosen).map_err(|d| vec![*d])?;
    settings.extend(options.iter().cloned());
    let (params, stmts, span) = match &full {
        LayerItem::Full(layer) => (layer.params.clone(), layer.body.stmts.clone(), layer.name.span),
        LayerItem::Anonymous(body) => (Vec::new(), body.stmts.clone(), body.span),
        LayerItem::Alias(alias) => {
            return Err(vec![Diagnostic::bug("an alias was not followed").at(alias.span, "here")]);
        }
    };
    let mut sorted = Sorted::default();
    let mut problems = Vec::new();
    for stmt in stmts {
        sorted.take(stmt, origin).unwrap_or_else(|d| problems.push(*d));
    }
    let mut given = Vec::new();
    for setting in settings {
        sorted.apply(setting, &params, &mut given).unwrap_or_else(|d| problems.push(*d));
    }
    let Sorted { clauses, stmts } = sorted;
    let find = |key: &str| clauses.iter().find(|(k, _)| k == key).map(|(_, w)| w.clone());
    let choices = CHOICES.map(|(key, _)| find(key));
    if let Some(missing) = missing(&choices, span) {
        problems.push(missing);
    }
    match choices {
        [Some(m), Some(b), Some(r), Some(a)] if problems.is_empty() => Ok(Body {
            name,
            span,
            origin,
            params,
            given,
            stmts,
            choices: [m, b, r, a],
            chunk: find("chunk"),
            read: find("read"),
        }),
        _ => Err(problems),
    }
}

/// The text at the end of a chain of aliases and what the chain gives to it, innermost first.
fn follow(program: &Program, chosen: Chosen) -> Eval<(LayerItem, Origin, Vec<Setting>)> {
    let (mut item, mut origin) = (chosen.item, chosen.origin);
    let mut seen = HashSet::new();
    let mut chain: Vec<Vec<Setting>> = Vec::new();
    while let LayerItem::Alias(alias) = &item {
        if !seen.insert((alias.name.text.clone(), origin)) {
            let message = format!("the layer `{}` is made from itself", alias.name.text);
            return fail_help(
                code::RECURSION,
                alias.span,
                message,
                "this alias leads back here",
                "name another layer after `=`",
            );
        }
        chain.push(of_alias(alias, origin));
        let base = &alias.base;
        // `layer yaad = yaad(chunk = 32);` means the library's yaad.
        let own = base.text == alias.name.text && origin == Origin::User;
        let from = if own { Origin::Library } else { origin };
        let found = program.find_layer(&base.text, from);
        (item, origin) = found.ok_or_else(|| program.no_layer(&base.text, Some(base.span)))?;
    }
    Ok((item, origin, chain.into_iter().rev().flatten().collect()))
}

#[derive(Default)]
struct Sorted {
    clauses: Vec<(String, Written)>,
    stmts: Vec<ast::Stmt>,
}

impl Sorted {
    fn take(&mut self, stmt: ast::Stmt, origin: Origin) -> Eval<()> {
        match &stmt.kind {
            ast::StmtKind::Clause { key, value } => self.clause(key, value, stmt.span, origin),
            ast::StmtKind::Let { .. } => {
                self.stmts.push(stmt);
                Ok(())
            }
            ast::StmtKind::Declare(d) if matches!(d.role, ast::Role::Input | ast::Role::Trained) => {
                self.stmts.push(stmt);
                Ok(())
            }
            ast::StmtKind::Declare(d) => {
                let message = format!("a layer declares no `{}`", d.role.word());
                let help = "a layer declares `input` and `trained` tensors; the others belong to a memory or an algo";
                fail_help(code::MISPLACED, stmt.span, message, "declared here", help)
            }
            ast::StmtKind::Assign { name, .. } => {
                let message = format!("`{} = ...` has no meaning in a layer", name.text);
                fail_help(
                    code::MISPLACED,
                    stmt.span,
                    message,
                    "written here",
                    format!("write `{0}: ...` for a clause, `let {0} = ...` for a name", name.text),
                )
            }
            ast::StmtKind::Define { .. }
            | ast::StmtKind::Next { .. }
            | ast::StmtKind::Dual { .. }
            | ast::StmtKind::History { .. }
            | ast::StmtKind::Require { .. }
            | ast::StmtKind::For { .. } => {
                let message = "a layer holds clauses (`memory: ...`), `let`, `input` and `trained` only";
                fail_help(
                    code::MISPLACED,
                    stmt.span,
                    message,
                    "this belongs to a definition",
                    "move it to a definition: `bias name { ... }`, `memory name { ... }`, ...",
                )
            }
        }
    }

    fn clause(&mut self, key: &ast::Ident, value: &ast::Expr, span: Span, origin: Origin) -> Eval<()> {
        let keys = CHOICES.iter().map(|(k, _)| *k).chain(MINOR);
        if !keys.clone().any(|k| k == key.text) {
            let message = format!("a layer has no clause `{}`", key.text);
            let help = did_you_mean(&key.text, keys).unwrap_or_else(|| {
                "its clauses are memory, bias, retention, algo, chunk and read".to_string()
            });
            return fail_help(code::UNKNOWN_NAME, key.span, message, "not a clause", help);
        }
        if let Some((_, old)) = self.clauses.iter().find(|(k, _)| *k == key.text) {
            let diagnostic = Diagnostic::new(code::DUPLICATE, format!("`{}` is given twice", key.text))
                .at(span, "given again here")
                .at(old.span, "first given here")
                .with_help("keep one of the two");
            return Err(Box::new(diagnostic));
        }
        let written = Written { value: value.clone(), origin, span, settings: Vec::new() };
        self.clauses.push((key.text.clone(), written));
        Ok(())
    }

    fn apply(&mut self, setting: Setting, params: &[ast::ParamDef], given: &mut Vec<Setting>) -> Eval<()> {
        match setting.name.clone() {
            Target::Position => given.push(setting),
            Target::Name(name) if params.iter().any(|p| p.name.text == name) => given.push(setting),
            Target::Name(name)
                if CHOICES.iter().any(|(k, _)| *k == name) || MINOR.contains(&name.as_str()) =>
            {
                let written = Written {
                    value: setting.value,
                    origin: setting.origin,
                    span: setting.span,
                    settings: Vec::new(),
                };
                self.clauses.retain(|(k, _)| *k != name);
                self.clauses.push((name, written));
            }
            Target::Name(name) => {
                let own = params.iter().map(|p| p.name.text.as_str());
                let all = own.chain(CHOICES.iter().map(|(k, _)| *k)).chain(MINOR);
                return setting
                    .refuse(format!("the layer has nothing called `{name}`"), did_you_mean(&name, all));
            }
            Target::Argument(clause, param) => {
                let is_choice = CHOICES.iter().any(|(k, _)| *k == clause);
                match self.clauses.iter_mut().find(|(k, _)| *k == clause && is_choice) {
                    Some((_, written)) => written.settings.push(setting),
                    None => {
                        let keys = CHOICES.iter().map(|(k, _)| *k);
                        let message = format!("`{clause}.{param}` belongs to none of the four choices");
                        return setting.refuse(message, did_you_mean(&clause, keys));
                    }
                }
            }
        }
        Ok(())
    }
}

fn missing(choices: &[Option<Written>; 4], span: Span) -> Option<Diagnostic> {
    let absent: Vec<&str> =
        CHOICES.iter().zip(choices).filter(|(_, c)| c.is_none()).map(|((k, _), _)| *k).collect();
    if absent.is_empty() {
        return None;
    }
    let lines: Vec<String> = absent.iter().map(|k| format!("`{k}: ...;`")).collect();
    let message = format!("the layer does not choose its {}", absent.join(", "));
    let help = format!("add {}", lines.join(" and "));
    Some(Diagnostic::new(code::MISSING_CLAUSE, message).at(span, "this layer").with_help(help))
}

impl Builder<'_> {
    pub(super) fn chunk(&mut self, body: &Body, scope: &Scope) -> Eval<u32> {
        let Some(written) = &body.chunk else { return Ok(DEFAULT_CHUNK) };
        let mut scope = scope.clone();
        scope.origin = written.origin;
        let tokens = self.whole(&mut scope, &written.value, "the chunk length")?;
        match u32::try_from(tokens) {
            Ok(n @ 1..) if tokens <= MAX_CHUNK => Ok(n),
            _ => {
                let message = format!("a chunk has 1 to {MAX_CHUNK} tokens, not {tokens}");
                fail_help(
                    code::BAD_ARGUMENT,
                    written.span,
                    message,
                    "out of range",
                    "give a number in that range; 64 is a good choice",
                )
            }
        }
    }

    pub(super) fn read_before(&mut self, body: &Body) -> Eval<bool> {
        let Some(written) = &body.read else { return Ok(false) };
        match &written.value.kind {
            ast::ExprKind::Name(name) if name.text == "after" => Ok(false),
            ast::ExprKind::Name(name) if name.text == "before" => Ok(true),
            _ => {
                let message = "`read` is `after` (the write) or `before`";
                fail_help(
                    code::BAD_ARGUMENT,
                    written.span,
                    message,
                    "neither",
                    "write `read: after;` or `read: before;`",
                )
            }
        }
    }
}
