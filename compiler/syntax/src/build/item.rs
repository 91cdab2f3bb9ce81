//! Definitions, functions, layers and `use` lines.

use super::{Builder, Parts, Top, unexpected};
use crate::ast;
use crate::grammar::Rule;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use pest::iterators::Pair;

impl Builder<'_> {
    pub(super) fn top(&mut self, pair: Pair<'_, Rule>) -> Result<Top, Diagnostic> {
        self.too_deep = false;
        Ok(match pair.as_rule() {
            Rule::use_line => Top::Use(self.use_line(pair)?),
            Rule::definition => Top::Item(ast::Item::Definition(self.definition(pair)?)),
            Rule::function => Top::Item(ast::Item::Function(self.function(pair)?)),
            Rule::layer => Top::Item(ast::Item::Layer(self.layer(pair)?)),
            Rule::alias => Top::Item(ast::Item::Alias(self.alias(pair)?)),
            _ => Top::Stmt(self.stmt(pair)?),
        })
    }

    fn use_line(&self, pair: Pair<'_, Rule>) -> Result<ast::Use, Diagnostic> {
        let span = self.span(&pair);
        let quoted = Parts::of(pair).next()?;
        let path = quoted.as_str().trim_matches('"').to_string();
        Ok(ast::Use { path, path_span: self.span(&quoted), span })
    }

    fn definition(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Definition, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let kind = definition_kind(&parts.next()?)?;
        let name = self.ident(&parts.next()?);
        let params = self.params(parts.take(Rule::params))?;
        let domain = parts.take(Rule::domain).map(|d| self.domain(d)).transpose()?;
        if let Some(domain) = domain.as_ref().filter(|_| kind != ast::DefinitionKind::Retention) {
            self.misplaced_domain(kind, domain);
        }
        let mut body = Vec::new();
        while let Ok(part) = parts.next() {
            body.push(self.stmt(part)?);
        }
        Ok(ast::Definition { kind, name, params, domain, body, doc: self.doc(span), span })
    }

    fn misplaced_domain(&mut self, kind: ast::DefinitionKind, domain: &ast::Domain) {
        let problem = Diagnostic::new(code::SYNTAX, format!("a {} has no domain", kind.word()))
            .at(domain.span, "only a retention says where the weights may lie")
            .with_help("remove it, or make the definition a `retention`");
        self.problems.push(problem);
    }

    fn domain(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Domain, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let name = self.ident(&parts.next()?);
        Ok(ast::Domain { name, args: self.args(parts.take(Rule::args))?, span })
    }

    fn function(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Function, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let name = self.ident(&parts.next()?);
        let params = self.names(parts.next()?);
        Ok(ast::Function { name, params, body: self.expr(parts.next()?)?, doc: self.doc(span), span })
    }

    fn layer(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Layer, Diagnostic> {
        let span = self.span(&pair);
        let braces =
            pair.clone().into_inner().filter(|p| matches!(p.as_rule(), Rule::open_brace | Rule::close_brace));
        let body_span = braces.map(|p| self.span(&p)).reduce(|a, b| a.to(b)).unwrap_or(span);
        let mut parts = Parts::of(pair);
        let name = self.ident(&parts.next()?);
        let params = self.params(parts.take(Rule::params))?;
        let mut stmts = Vec::new();
        while let Ok(part) = parts.next() {
            stmts.push(self.stmt(part)?);
        }
        let body = ast::LayerBody { stmts, span: body_span };
        Ok(ast::Layer { name, params, body, doc: self.doc(span), span })
    }

    fn alias(&mut self, pair: Pair<'_, Rule>) -> Result<ast::LayerAlias, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let name = self.ident(&parts.next()?);
        let base = self.ident(&parts.next()?);
        Ok(ast::LayerAlias {
            name,
            base,
            args: self.args(parts.take(Rule::args))?,
            doc: self.doc(span),
            span,
        })
    }

    fn params(&mut self, pair: Option<Pair<'_, Rule>>) -> Result<Vec<ast::ParamDef>, Diagnostic> {
        let Some(pair) = pair else {
            return Ok(Vec::new());
        };
        Parts::of(pair).all(Rule::param).into_iter().map(|p| self.param(p)).collect()
    }

    fn param(&mut self, pair: Pair<'_, Rule>) -> Result<ast::ParamDef, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let name = self.ident(&parts.next()?);
        let kind = parts.take(Rule::kind).map(|k| self.kind(k)).transpose()?;
        let default = parts.take(Rule::expr).map(|e| self.expr(e)).transpose()?;
        Ok(ast::ParamDef { name, kind, default, span })
    }

    pub(super) fn kind(&self, pair: Pair<'_, Rule>) -> Result<ast::Kind, Diagnostic> {
        let inner = Parts::of(pair).next()?;
        match inner.as_rule() {
            Rule::name => Ok(ast::Kind::Named(self.ident(&inner))),
            Rule::words => {
                let span = self.span(&inner);
                Ok(ast::Kind::Enum { words: self.names(inner), span })
            }
            _ => Err(unexpected(&inner)),
        }
    }

    /// All names directly inside a pair.
    pub(super) fn names(&self, pair: Pair<'_, Rule>) -> Vec<ast::Ident> {
        Parts::of(pair).all(Rule::name).iter().map(|n| self.ident(n)).collect()
    }
}

fn definition_kind(pair: &Pair<'_, Rule>) -> Result<ast::DefinitionKind, Diagnostic> {
    use ast::DefinitionKind::{Algo, Bias, Memory, Retention};
    let kinds = [Bias, Retention, Memory, Algo];
    kinds.into_iter().find(|k| k.word() == pair.as_str()).ok_or_else(|| unexpected(pair))
}
