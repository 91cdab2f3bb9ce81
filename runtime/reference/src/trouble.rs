//! Why an evaluation stops.

use miras_base::{Diagnostic, diagnostic::code};

/// What an evaluation gives: a value, or why there is none.
pub(crate) type Made<T> = Result<T, Trouble>;

/// Why an evaluation stops.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// An invariant of an earlier room does not hold.
    Bug(String),
    /// A legal run that the reference cannot do.
    Limit(String),
    /// The user's data.
    Data(Box<Diagnostic>),
}

impl Trouble {
    pub fn bug(what: impl Into<String>) -> Trouble {
        Trouble::Bug(what.into())
    }

    pub fn limit(what: impl Into<String>) -> Trouble {
        Trouble::Limit(what.into())
    }

    pub fn diagnostic(self) -> Diagnostic {
        match self {
            Trouble::Bug(what) => Diagnostic::bug(format!("reference: {what}")),
            Trouble::Limit(what) => Diagnostic::new(code::UNSUPPORTED, what)
                .with_help("use smaller sizes or fewer tokens at a time, handing the state on"),
            Trouble::Data(diagnostic) => *diagnostic,
        }
    }
}

impl From<Diagnostic> for Trouble {
    fn from(diagnostic: Diagnostic) -> Self {
        Trouble::Data(Box::new(diagnostic))
    }
}
