//! Names: a stem, an index, a time, primes.

use super::Math;

/// A name in a formula, such as `W[1]`, `alpha`, `S'`, `theta_{t-1}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The name itself.
    pub stem: String,
    /// Its index, e.g. `1`; may be empty.
    pub index: String,
    /// The token it belongs to, e.g. `t-1`; may be empty.
    pub time: String,
    /// Number of primes.
    pub primes: usize,
}

impl Symbol {
    /// The same name at a token.
    #[must_use]
    pub(crate) fn at(mut self, time: &str) -> Symbol {
        self.time = time.into();
        self
    }
}

/// A name as it stands in a rule, with words before it, as a call, or as a difference.
pub(crate) fn named(text: &str) -> Math {
    if let Some(by) = text.strip_prefix("dloss/d") {
        return Math::Slope(Box::new(Math::Word("loss".into())), Box::new(named(by)));
    }
    if let Some((a, b)) = text.split_once(" - ") {
        return Math::Sum(vec![(false, named(a)), (true, named(b))]);
    }
    if let Some((before, last)) = text.rsplit_once(' ') {
        return match symbol(last) {
            Some(_) | None if before.is_empty() => named(last),
            Some(s) => Math::Prefixed(before.into(), Box::new(Math::Symbol(s))),
            None => Math::Word(text.into()),
        };
    }
    if let Some((function, rest)) = text.split_once('(')
        && let Some(argument) = rest.strip_suffix(')')
        && !function.is_empty()
    {
        return Math::Call(function.into(), "", vec![named(argument)]);
    }
    symbol(text).map_or_else(|| Math::Word(text.into()), Math::Symbol)
}

/// A name that consists of a stem, an index in brackets, a number behind a point, and primes.
pub(crate) fn symbol(text: &str) -> Option<Symbol> {
    let body = text.trim_end_matches('\'');
    let primes = text.len() - body.len();
    let (body, copy) = match body.rsplit_once('.') {
        Some((body, n)) if !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()) => (body, n),
        _ => (body, ""),
    };
    let (stem, index) = match body.split_once('[') {
        Some((stem, rest)) => (stem, rest.strip_suffix(']')?),
        None => (body, ""),
    };
    let plain = |s: &str| s.chars().all(|c| c.is_alphanumeric() || c == '_');
    if stem.is_empty() || !plain(stem) || !plain(index) {
        return None;
    }
    let index = match (index, copy) {
        (index, "") => index.to_string(),
        ("", copy) => copy.to_string(),
        (index, copy) => format!("{index}.{copy}"),
    };
    Some(Symbol { stem: stem.into(), index, time: String::new(), primes })
}

/// Greek letters by their names, with their signs.
pub(super) const GREEK: &[(&str, char)] = &[
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("epsilon", 'ε'),
    ("zeta", 'ζ'),
    ("eta", 'η'),
    ("theta", 'θ'),
    ("iota", 'ι'),
    ("kappa", 'κ'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("nu", 'ν'),
    ("xi", 'ξ'),
    ("pi", 'π'),
    ("rho", 'ρ'),
    ("sigma", 'σ'),
    ("tau", 'τ'),
    ("phi", 'φ'),
    ("chi", 'χ'),
    ("psi", 'ψ'),
    ("omega", 'ω'),
    ("Gamma", 'Γ'),
    ("Delta", 'Δ'),
    ("Theta", 'Θ'),
    ("Lambda", 'Λ'),
    ("Phi", 'Φ'),
    ("Psi", 'Ψ'),
    ("Omega", 'Ω'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let plain = |stem: &str, index: &str, primes| Symbol {
            stem: stem.into(),
            index: index.into(),
            time: String::new(),
            primes,
        };
        assert_eq!(symbol("W[1]'"), Some(plain("W", "1", 1)));
        assert_eq!(symbol("delta[2].3"), Some(plain("delta", "2.3", 0)));
        assert_eq!(symbol("my_gain"), Some(plain("my_gain", "", 0)));
        assert_eq!(symbol("W[1"), None);
        assert_eq!(
            named("then W'"),
            Math::Prefixed("then".into(), Box::new(Math::Symbol(plain("W", "", 1))))
        );
        assert!(matches!(named("gelu'(z[1])"), Math::Call(f, "", _) if f == "gelu'"));
        assert!(matches!(named("u - zeta"), Math::Sum(_)));
    }
}
