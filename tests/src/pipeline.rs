//! Programs and runs through the public pipeline.

use base::Diagnostic;
use cli::{Asked, Backend, Finished};
use driver::{Choice, Session};
use miras_base as base;
use miras_cli as cli;
use miras_driver as driver;
use miras_host as host;
use miras_rule as rule;
use miras_spec as spec;

/// A text's only layer, derived.
pub struct Loaded {
    session: Session<'static>,
    /// Its rule.
    pub rule: rule::UpdateRule,
}

/// Errors as diagnostics.
pub type Fallible<T> = Result<T, Vec<Diagnostic>>;

/// Loads a text that uses no other file.
///
/// # Errors
/// The diagnostics of any room.
pub fn load(name: &str, text: &str, choice: &Choice) -> Fallible<Loaded> {
    load_with(name, text, choice, &mut |path| Err(format!("nothing but this text is there, not `{path}`")))
}

/// Loads a text with a way to read what it uses.
///
/// # Errors
/// The diagnostics of any room.
pub fn load_with(name: &str, text: &str, choice: &Choice, read: &mut spec::Reader<'_>) -> Fallible<Loaded> {
    let mut session = Session::new(spec::Library::standard());
    let root = session.add(name, text);
    let rule = session.load(root, read)?.then(|program| session.rule(&program, choice))?;
    Ok(Loaded { session, rule: rule.value })
}

impl Loaded {
    /// Runs it.
    ///
    /// # Errors
    /// The diagnostics of binding, compiling and running.
    pub fn run(&mut self, data: &host::Bundle, asked: &Asked) -> Fallible<Finished> {
        Ok(cli::execute(&mut self.session, self.rule.clone(), data, asked)?.value)
    }
}

/// A forward run on a backend by the default schedule.
pub fn asked(backend: Backend) -> Asked {
    Asked { backend, schedule: None, chunk: None, grad: false, allow_extra: false, structure: None }
}

/// Diagnostics in one line.
pub fn told(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.is_error());
    errors.map(|d| format!("{d} ({})", d.help.as_deref().unwrap_or("no help"))).collect::<Vec<_>>().join("; ")
}

/// The codes of the errors, each once.
pub fn codes(diagnostics: &[Diagnostic]) -> Vec<&'static str> {
    let mut codes: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.0).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}
