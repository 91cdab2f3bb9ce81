//! Short ways to put formulas together.

use super::{Big, Dot, Math, Symbol};

/// `a * b` with a scalar among them.
pub(crate) fn scaled(a: Math, b: Math) -> Math {
    product(a, b, Dot::Scalar)
}

/// `a * b` entry by entry.
pub(crate) fn entries(a: Math, b: Math) -> Math {
    product(a, b, Dot::Entries)
}

/// A product; a factor 1 is left out, a sign is taken in front.
pub(crate) fn product(a: Math, b: Math, dot: Dot) -> Math {
    match (a, b) {
        (Math::Number(1.0), x) | (x, Math::Number(1.0)) => x,
        (Math::Neg(a), Math::Neg(b)) => product(*a, *b, dot),
        (Math::Fraction(one, d), x) | (x, Math::Fraction(one, d)) if *one == Math::Number(1.0) => {
            Math::Fraction(Box::new(x), d)
        }
        (Math::Neg(a), b) => Math::Neg(Box::new(product(*a, b, dot))),
        (a, Math::Neg(b)) => Math::Neg(Box::new(product(a, *b, dot))),
        (a, b) => Math::Times(Box::new(a), Box::new(b), dot),
    }
}

/// `a @ b`
pub(crate) fn matmul(a: Math, b: Math) -> Math {
    Math::MatMul(Box::new(a), Box::new(b))
}

/// `outer(a, b)`; a sign is taken in front.
pub(crate) fn outer(a: Math, b: Math) -> Math {
    match (a, b) {
        (Math::Neg(a), Math::Neg(b)) => outer(*a, *b),
        (Math::Neg(a), b) => Math::Neg(Box::new(outer(*a, b))),
        (a, Math::Neg(b)) => Math::Neg(Box::new(outer(a, *b))),
        (a, b) => Math::Outer(Box::new(a), Box::new(b)),
    }
}

/// `dot(a, b)`; a sign is taken in front.
pub(crate) fn inner(a: Math, b: Math) -> Math {
    match (a, b) {
        (Math::Neg(a), b) => negated(inner(*a, b)),
        (a, Math::Neg(b)) => negated(inner(a, *b)),
        (a, b) => Math::Inner(Box::new(a), Box::new(b)),
    }
}

/// A sum of parts, signs taken from the parts, sums inside opened.
pub(crate) fn sum(parts: impl IntoIterator<Item = Math>) -> Math {
    let mut all: Vec<(bool, Math)> = parts.into_iter().flat_map(|p| p.summands()).collect();
    match (all.len(), all.pop()) {
        (1, Some((false, only))) => only,
        (1, Some((true, only))) => Math::Neg(Box::new(only)),
        (_, Some(last)) => {
            all.push(last);
            Math::Sum(all)
        }
        (_, None) => Math::Number(0.0),
    }
}

/// `-a`
pub(crate) fn negated(a: Math) -> Math {
    match a {
        Math::Neg(inner) => *inner,
        other => Math::Neg(Box::new(other)),
    }
}

/// A sum over tokens; a sign is taken in front.
pub(crate) fn over(below: &str, body: Math) -> Math {
    match body {
        Math::Neg(body) => Math::Neg(Box::new(over(below, *body))),
        body => Math::Over(Big::Sum, Box::new(word(below)), Box::new(body)),
    }
}

/// A word.
pub(crate) fn word(text: &str) -> Math {
    Math::Word(text.into())
}

/// `name(arguments)` of words.
pub(crate) fn call(name: &str, arguments: &[&str]) -> Math {
    Math::Call(name.into(), "", arguments.iter().map(|a| word(a)).collect())
}

/// `a - b`; a sum that is subtracted keeps its parentheses.
pub(crate) fn difference(a: Math, b: Math) -> Math {
    let mut parts = a.summands();
    match b {
        Math::Neg(b) => parts.extend(b.summands()),
        b => parts.push((true, b)),
    }
    Math::Sum(parts)
}

/// The same formula with one token in the place of another.
pub(crate) fn moved(math: Math, from: &str, to: &str) -> Math {
    mapped(math, &|m| match m {
        Math::Symbol(s) => Math::Symbol(Symbol { time: moved_name(&s.time, from, to), ..s }),
        Math::Word(w) => Math::Word(moved_name(&w, from, to)),
        other => other,
    })
}

/// The same formula for vectors: without the laying of vectors along the rows or columns of a matrix.
pub(crate) fn of_vectors(math: Math) -> Math {
    mapped(math, &|m| match m {
        Math::Call(f, along, mut arguments) if (f == "row" || f == "col") && arguments.len() == 1 => {
            arguments.pop().unwrap_or(Math::Call(f, along, arguments))
        }
        other => other,
    })
}

/// The same formula with every part changed, the innermost first.
pub(crate) fn mapped(math: Math, change: &dyn Fn(Math) -> Math) -> Math {
    let go = |m: Box<Math>| Box::new(mapped(*m, change));
    let all = |parts: Vec<Math>| parts.into_iter().map(|p| mapped(p, change)).collect();
    change(match math {
        Math::Number(_) | Math::Symbol(_) | Math::Word(_) => math,
        Math::Neg(a) => Math::Neg(go(a)),
        Math::Sum(parts) => {
            Math::Sum(parts.into_iter().map(|(minus, p)| (minus, mapped(p, change))).collect())
        }
        Math::Times(a, b, dot) => Math::Times(go(a), go(b), dot),
        Math::MatMul(a, b) => Math::MatMul(go(a), go(b)),
        Math::Outer(a, b) => Math::Outer(go(a), go(b)),
        Math::Inner(a, b) => Math::Inner(go(a), go(b)),
        Math::Transpose(a) => Math::Transpose(go(a)),
        Math::Fraction(a, b) => Math::Fraction(go(a), go(b)),
        Math::Power(a, b) => Math::Power(go(a), go(b)),
        Math::Function(f, a) => Math::Function(f, go(a)),
        Math::Call(f, along, parts) => Math::Call(f, along, all(parts)),
        Math::Cases(c, a, b) => Math::Cases(go(c), go(a), go(b)),
        Math::Compare(c, a, b) => Math::Compare(c, go(a), go(b)),
        Math::Norm(a, b) => Math::Norm(go(a), go(b)),
        Math::Over(big, below, body) => Math::Over(big, go(below), go(body)),
        Math::Root(a, b) => Math::Root(go(a), go(b)),
        Math::Slope(a, b) => Math::Slope(go(a), go(b)),
        Math::Cotangent(a) => Math::Cotangent(go(a)),
        Math::Prefixed(text, a) => Math::Prefixed(text, go(a)),
        Math::Marked(a) => Math::Marked(go(a)),
    })
}

/// A token in the words of a range: `i<=t` to `i<=C`.
fn moved_name(text: &str, from: &str, to: &str) -> String {
    let parts: Vec<&str> = text.split("<=").collect();
    parts.iter().map(|p| if *p == from { to } else { p }).collect::<Vec<_>>().join("<=")
}
