//! What is given to a layer from outside: arguments of an alias, and options of a run.

use crate::eval::{Eval, fail_help};
use crate::program::Origin;
use base::diagnostic::code;
use base::{Diagnostic, SourceMap, Span};
use miras_base as base;
use miras_syntax::ast;

/// One given value.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: Target,
    pub(crate) value: ast::Expr,
    /// Whose text the value is.
    pub(crate) origin: Origin,
    pub(crate) span: Span,
    /// Whether it is an option of a run, not text of a program.
    pub(crate) option: bool,
}

/// What a setting is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The layer's next parameter.
    Position,
    /// `chunk`, `memory`, or a parameter of the layer.
    Name(String),
    /// `retention.alpha`: a parameter of the definition that a clause chose.
    Argument(String, String),
}

/// Reads the pairs of a run's options.
pub(crate) fn read_overrides(
    sources: &mut SourceMap,
    overrides: &[(String, String)],
) -> Result<Vec<Setting>, Vec<Diagnostic>> {
    let mut settings = Vec::new();
    let mut problems = Vec::new();
    for (name, text) in overrides {
        let id = sources.add(format!("--set {name}"), text.as_str());
        let span = Span::new(id, 0, text.len());
        match (target(name), miras_syntax::parse_expr(id, text)) {
            (Some(name), Ok(value)) => settings.push(Setting { name, value, origin: Origin::User, span, option: true }),
            (None, _) => problems.push(
                Diagnostic::new(code::BAD_OPTION, format!("`{name}` is not the name of a setting"))
                    .with_help("settings are `chunk`, `read`, `memory`, `retention.alpha`, or a parameter of the layer"),
            ),
            (_, Err(found)) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

fn target(name: &str) -> Option<Target> {
    let word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match name.split_once('.') {
        None => word(name).then(|| Target::Name(name.to_string())),
        Some((clause, param)) => {
            (word(clause) && word(param)).then(|| Target::Argument(clause.to_string(), param.to_string()))
        }
    }
}

/// The settings that an alias's arguments are.
pub(super) fn of_alias(alias: &ast::LayerAlias, origin: Origin) -> Vec<Setting> {
    let setting = |arg: &ast::Arg| Setting {
        name: arg.name.as_ref().map_or(Target::Position, |n| Target::Name(n.text.clone())),
        value: arg.value.clone(),
        origin,
        span: arg.span,
        option: false,
    };
    alias.args.iter().map(setting).collect()
}

impl Setting {
    /// The refusal of a setting that nothing takes.
    pub(super) fn refuse<T>(&self, message: String, help: Option<String>) -> Eval<T> {
        let number = if self.option { code::BAD_OPTION } else { code::BAD_ARGUMENT };
        let help = help.unwrap_or_else(|| "remove it".to_string());
        fail_help(number, self.span, message, "given here", help)
    }
}
