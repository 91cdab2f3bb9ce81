//! What a strategy says when it does not apply, and the diagnostic when none does.

use crate::algebra::ring::Halt;
use crate::calculus::reverse::broken;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term::Mismatch;

/// Why a strategy gives no solution.
#[derive(Debug)]
pub(super) enum Fail {
    /// Its condition does not hold; the sentence says which part of it. The next strategy is tried.
    Refused(String),
    /// The retention cannot be derived at all, or Miras contradicts itself.
    Final(Box<Diagnostic>),
}

pub(super) type Tried<T> = Result<T, Fail>;

impl From<Mismatch> for Fail {
    fn from(m: Mismatch) -> Fail {
        Fail::Final(Box::new(broken(m)))
    }
}

impl From<Diagnostic> for Fail {
    fn from(d: Diagnostic) -> Fail {
        Fail::Final(Box::new(d))
    }
}

impl From<Halt> for Fail {
    fn from(h: Halt) -> Fail {
        match h {
            Halt::Work => Fail::Refused("the terms grow too long".into()),
            Halt::Shape(m) => m.into(),
        }
    }
}

/// A refusal.
pub(super) fn refuse<T>(reason: impl Into<String>) -> Tried<T> {
    Err(Fail::Refused(reason.into()))
}

/// One strategy that was tried, and why it does not apply.
pub(super) struct Refusal {
    pub strategy: &'static str,
    pub reason: String,
}

/// No strategy applies: which were tried, what each said, what the user can do; `newton_would`: Newton steps would solve
/// it.
pub(super) fn not_solved(
    layer: &spec::Layer,
    retention: &spec::Retention,
    weight: &str,
    tried: &[Refusal],
    newton_would: bool,
) -> Diagnostic {
    let choice = &layer.choices[2];
    let message = format!("no closed form was found for the retention of `{weight}` (`{}`)", choice.text);
    let mut d = Diagnostic::new(code::NOT_SOLVED, message)
        .at_opt(choice.span, "chosen here")
        .at_opt(retention.span, "this definition is solved for the weights after the step");
    for r in tried {
        d = d.with_note(format!("{}: {}", r.strategy, r.reason));
    }
    if tried.iter().any(|r| r.reason.contains("has no minimum")) {
        return d.with_help(
            "turn a sign: the objective must grow away from its minimum, as `sum((W - P)^2)` does",
        );
    }
    let newton = match newton_would {
        true => "add `solve: newton(8);` to the retention for a fixed number of Newton steps, or ",
        false => "",
    };
    d.with_help(format!("{newton}declare the map itself: `W' = ...;` in terms of `W` and `u`"))
}
