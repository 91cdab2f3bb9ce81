//! Shapes of terms and how they meet.

use miras_base::Dim;
use std::fmt;

/// The shape of a term: no axes (scalar), one (vector) or two (matrix, rows first).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Shape(pub Vec<Dim>);

/// What a term is: real or truth values in a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Its axes.
    pub shape: Shape,
    /// Whether the entries are truth values (results of comparisons) instead of reals.
    pub truth: bool,
}

/// Two symbolic sizes that a program needs to be equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// One side.
    pub left: Dim,
    /// The other.
    pub right: Dim,
}

/// Why two operands do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Shapes that can never be equal.
    Shapes(Shape, Shape),
    /// A vector met a matrix; `row` or `col` must say how.
    Ranks(Shape, Shape),
    /// An operand has the wrong rank; the text says what was expected.
    Rank(Shape, &'static str),
    /// Truth values where reals are needed (true), or the reverse (false).
    Truth(bool),
}

impl Shape {
    /// No axes.
    pub fn scalar() -> Shape {
        Shape(Vec::new())
    }

    /// One axis.
    pub fn vector(n: Dim) -> Shape {
        Shape(vec![n])
    }

    /// Rows by columns.
    pub fn matrix(rows: Dim, cols: Dim) -> Shape {
        Shape(vec![rows, cols])
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        let axes: Vec<String> = self.0.iter().map(|d| d.to_string()).collect();
        write!(f, "[{}]", axes.join(", "))
    }
}

impl Type {
    /// Reals in a shape.
    pub fn real(shape: Shape) -> Type {
        Type { shape, truth: false }
    }
}

/// How two sizes meet.
pub(crate) enum Meeting {
    /// They are the same size.
    Same,
    /// The left one is 1 and repeated.
    RepeatLeft,
    /// The right one is 1 and repeated.
    RepeatRight,
    /// They must be equal in a run.
    Constrained(Constraint),
    /// They can never be equal.
    Never,
}

/// How the sizes `a` and `b` meet in an element-wise function.
pub(crate) fn meet(a: &Dim, b: &Dim) -> Meeting {
    match () {
        _ if a == b => Meeting::Same,
        _ if a.is_one() => Meeting::RepeatLeft,
        _ if b.is_one() => Meeting::RepeatRight,
        _ if a.never_equals(b) => Meeting::Never,
        _ => Meeting::Constrained(Constraint { left: a.clone(), right: b.clone() }),
    }
}
