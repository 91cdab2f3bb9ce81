//! Diagnostics: what went wrong, where, why, and what to do about it.
//!
//! Three kinds of failure are kept apart ([`Fault`]): the user's program or data, a limit of ours,
//! and a bug of ours. Every code is one row of [`CATALOGUE`].

use crate::source::Span;
use std::fmt;

/// Whose fault a diagnostic reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The user's program or data.
    Program,
    /// Something that is legal but that Miras cannot do.
    Limit,
    /// An error inside Miras.
    Bug,
}

/// How serious a diagnostic is. Errors stop the compilation; warnings and notes do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Information.
    Note,
    /// Legal, but likely not what was meant.
    Warning,
    /// The program or its data cannot be used.
    Error,
}

/// The identity of a diagnostic, e.g. `E0301`; always a row of [`CATALOGUE`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The code.
    pub code: Code,
    /// Whose fault.
    pub fault: Fault,
    /// Default severity.
    pub severity: Severity,
    /// One line that says what the code means.
    pub title: &'static str,
}

macro_rules! catalogue {
    ($($name:ident = $code:literal $fault:ident $severity:ident $title:literal;)*) => {
        /// The codes by name.
        pub mod code {
            use super::Code;
            $(#[doc = $title] pub const $name: Code = Code($code);)*
        }
        /// Every diagnostic that Miras can give, in order of code.
        pub const CATALOGUE: &[Entry] = &[
            $(Entry { code: Code($code), fault: Fault::$fault, severity: Severity::$severity, title: $title },)*
        ];
    };
}

// E00xx text, E01xx names, E02xx types and shapes, E03xx derivation, E04xx schedules and limits,
// E05xx data and files, E06xx devices, E09xx our bugs; W0xxx warnings.
catalogue! {
    SYNTAX = "E0001" Program Error "the text does not follow the grammar";
    NUMBER = "E0002" Program Error "a number cannot be represented";
    NESTING = "E0003" Limit Error "the text is nested too deeply";
    TOO_LONG = "E0004" Limit Error "the text is too long";
    UNKNOWN_NAME = "E0101" Program Error "a name is not defined";
    DUPLICATE = "E0102" Program Error "something is given twice";
    MISSING_CLAUSE = "E0103" Program Error "a layer lacks one of its four choices";
    BAD_ARGUMENT = "E0104" Program Error "an argument does not fit its parameter";
    USE_FILE = "E0105" Program Error "a used file cannot be read";
    RECURSION = "E0106" Program Error "a definition uses itself";
    RESERVED = "E0107" Limit Error "the word is reserved for something that is not there yet";
    WHICH_LAYER = "E0108" Program Error "the file holds several layers and none was chosen";
    MISSING_PART = "E0109" Program Error "a definition lacks a part that it must give";
    MISPLACED = "E0110" Program Error "a statement does not belong where it stands";
    SHAPE = "E0201" Program Error "two shapes do not fit";
    AXIS = "E0202" Program Error "a vector cannot be placed along a matrix";
    TYPE = "E0203" Program Error "an expression has the wrong kind of value";
    GATE_AXIS = "E0204" Program Error "a gate has no axis on a weight it acts on";
    NOT_CONSTANT = "E0205" Program Error "a value must be known when the program is compiled";
    UNROLL = "E0206" Limit Error "a compile-time loop is too long";
    NO_DERIVATIVE = "E0301" Limit Error "a function has no derivative in the table";
    NOT_SOLVED = "E0302" Limit Error "no closed form was found for a retention";
    REFUSED_PAIR = "E0303" Program Error "a definition refuses its partner";
    SIMPLEX_GATE = "E0304" Program Error "alpha varies within a slice of the simplex";
    NOT_DERIVABLE = "E0305" Program Error "the layer has nothing to derive";
    UNSUPPORTED = "E0402" Limit Error "the backend cannot run this construct";
    MISSING_TENSOR = "E0501" Program Error "a tensor is missing";
    TENSOR_SHAPE = "E0502" Program Error "a tensor has the wrong shape";
    NOT_FINITE = "E0503" Program Error "a tensor holds a value that is not finite";
    OUT_OF_DOMAIN = "E0504" Program Error "a tensor holds a value outside its domain";
    UNKNOWN_TENSOR = "E0505" Program Error "a tensor is not an input of the layer";
    TENSOR_TYPE = "E0506" Program Error "a tensor has an element type that cannot be used";
    READ_FILE = "E0507" Program Error "a file cannot be read";
    WRITE_FILE = "E0508" Program Error "a file cannot be written";
    DIM_CONFLICT = "E0509" Program Error "the data breaks an equality of dimensions that the program needs";
    SEGMENTS = "E0510" Program Error "the segments do not cut the sequence";
    STREAM_STATE = "E0511" Program Error "a state cannot be continued this way";
    BAD_OPTION = "E0512" Program Error "an option does not fit the program";
    NO_DEVICE = "E0601" Program Error "no device can be used";
    DEVICE_LIMIT = "E0602" Limit Error "a limit of the device is exceeded";
    DEVICE_LOST = "E0603" Limit Error "the device was lost or ran out of memory";
    BUG = "E0901" Bug Error "Miras contradicts itself";
    SHADOWS = "W0101" Program Note "a definition takes the place of the library's";
    IDLE_CLAUSES = "W0102" Program Warning "the clauses of a used file make no layer";
    PERHAPS_NO_SIZE = "W0201" Program Warning "a size is positive for some dk and dv only";
    INERT_RETENTION = "W0301" Program Warning "a retention term has no effect";
    WEAK_SIGNAL = "W0302" Program Warning "the memory's signal drowns in layernorm's eps";
    UNUSED_GATE = "W0303" Program Warning "a gate never reaches the output";
    UNIT_KEYS = "W0304" Program Warning "an exact chunked delta form wants keys of unit length";
    DECLARED = "W0305" Program Note "a slope or map is declared, not derived";
    DEFAULT_USED = "W0501" Program Note "a value that the data does not give is taken from the program";
    UNUSED_TENSOR = "W0502" Program Note "a tensor of the data has no effect";
    NOT_FINITE_RESULT = "W0503" Program Warning "a result holds a value that is not finite";
}

/// The catalogue's row of a code.
pub fn entry(code: Code) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|e| e.code == code)
}

/// A place in the source with what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What; short, lower case.
    pub text: String,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its row in the catalogue.
    pub code: Code,
    /// How serious.
    pub severity: Severity,
    /// What is wrong, in one sentence, with the names and numbers involved.
    pub message: String,
    /// Places: the cause first, then its counterparts.
    pub labels: Vec<Label>,
    /// What the user can do, as an instruction that can be followed.
    pub help: Option<String>,
    /// Further facts.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic with the catalogue's severity and no place yet.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let severity = entry(code).map_or(Severity::Error, |e| e.severity);
        Diagnostic {
            code,
            severity,
            message: shortened(message.into()),
            labels: Vec::new(),
            help: None,
            notes: Vec::new(),
        }
    }

    /// An error inside Miras; `message` says which invariant failed.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(code::BUG, message)
            .with_help("this is a bug in Miras; please report it with the program that showed it")
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: shortened(text.into()) });
        self
    }

    /// Adds a place where there is one.
    #[must_use]
    pub fn at_opt(self, span: Option<Span>, text: impl Into<String>) -> Self {
        match span {
            Some(span) => self.at(span, text),
            None => self,
        }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shortened(help.into()));
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(shortened(note.into()));
        self
    }

    /// Whether it stops the compilation.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Names of up to so many characters stand in messages as they are.
const LONGEST_NAME: usize = 120;

/// A text whose names are short enough to be read; what is left out of a name is marked by `...`.
fn shortened(text: String) -> String {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    if !text.split(|c| !in_name(c)).any(|name| name.len() > LONGEST_NAME) {
        return text;
    }
    let mut short = String::new();
    let mut length = 0;
    for c in text.chars() {
        length = if in_name(c) { length + 1 } else { 0 };
        match length {
            0..=LONGEST_NAME => short.push(c),
            n if n == LONGEST_NAME + 1 => short += "...",
            _ => {}
        }
    }
    short
}

/// Names in a sentence, of which it shows the first few and the number of the others: `a`, `b` and 7 more.
pub fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 24;
    let names: Vec<String> = names.into_iter().map(|n| format!("`{}`", n.as_ref())).collect();
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_lists_are_cut_short() {
        let long = "a".repeat(100_000);
        let said = Diagnostic::new(code::SYNTAX, format!("`{long}` and `{long}`"));
        assert!(said.message.len() < 300 && said.message.ends_with("...`"), "{}", said.message);
        assert_eq!(shortened("one two".into()), "one two");
        let names: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        assert!(listed(&names).ends_with("`23` and 76 more"), "{}", listed(&names));
        assert_eq!(listed(["a", "b"]), "`a`, `b`");
    }

    #[test]
    fn codes_are_unique_and_sorted_within_their_letter() {
        for pair in CATALOGUE.windows(2) {
            let (a, b) = (pair[0].code.0, pair[1].code.0);
            assert!(a.as_bytes()[0] != b.as_bytes()[0] || a < b, "{a} before {b}");
        }
    }
}
