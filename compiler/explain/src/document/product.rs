//! Products of keeps over tokens, and how they meet weights and what is read from them.

use crate::math::{
    Big, Formula, Math, Scope, Symbol, call, entries, inner, matmul, named, of_vectors, over, scaled, word,
};
use miras_term::{Op, TermId, Terms};

/// Along which axes of a weight a factor varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// It is 1.
    One,
    /// One number.
    Scalar,
    /// One value for each row.
    Rows,
    /// One value for each column.
    Columns,
    /// One value for each entry.
    Entries,
}

/// The factor of a weight without its repetition over the weight's shape, and along which axes it varies.
pub(super) fn factor(terms: &Terms, id: TermId) -> (TermId, Along) {
    let id = match terms.op(id) {
        Op::Spread(inner, _) => *inner,
        _ => id,
    };
    if terms.as_num(id) == Some(1.0) {
        return (id, Along::One);
    }
    let vector = |id: TermId| match terms.op(id) {
        Op::Row(a) | Op::Col(a) => *a,
        _ => id,
    };
    match terms.shape(id).0.as_slice() {
        [] => (id, Along::Scalar),
        [_, one] if one.is_one() => (vector(id), Along::Rows),
        [one, _] if one.is_one() => (vector(id), Along::Columns),
        _ => (id, Along::Entries),
    }
}

/// The keeps of one weight: how their product is called and how it varies.
#[derive(Clone, Debug)]
pub(super) struct Keep {
    /// Index of names where several weights have keeps of their own; else empty.
    pub index: String,
    pub along: Along,
}

impl Keep {
    /// The keeps of the l-th weight: they have names of their own where they run along an axis of one of several.
    pub fn of(l: usize, several: bool, along: Along) -> Keep {
        let own = several && !matches!(along, Along::One | Along::Scalar);
        Keep { index: if own { (l + 1).to_string() } else { String::new() }, along }
    }

    /// Any factor that runs along these axes.
    pub fn any(along: Along) -> Keep {
        Keep { index: String::new(), along }
    }

    /// `P(t, i)`; 1 where nothing is forgotten.
    pub fn product(&self, t: &str, i: &str) -> Math {
        match self.along {
            Along::One => Math::Number(1.0),
            _ if t == i => Math::Number(1.0),
            _ => {
                let name = if self.index.is_empty() { "P".to_string() } else { format!("P[{}]", self.index) };
                call(&name, &[t, i])
            }
        }
    }

    /// The formulas that define the keep of a token and the products of keeps.
    pub fn formulas(&self, scope: &Scope<'_>, keep: TermId, step: &'static str) -> Vec<Formula> {
        if self.along == Along::One {
            return Vec::new();
        }
        let name = |time: &str| {
            Math::Symbol(Symbol {
                stem: "keep".into(),
                index: self.index.clone(),
                time: time.into(),
                primes: 0,
            })
        };
        let body = of_vectors(scope.at(step, step, step).math(keep));
        let product = Math::Over(Big::Product, Box::new(word("i<j<=t")), Box::new(name("j")));
        vec![
            Formula::new(name(step), body).remarked(self.varies()),
            Formula::new(self.product("t", "i"), product),
        ]
    }

    fn varies(&self) -> &'static str {
        match self.along {
            Along::One => "nothing is forgotten",
            Along::Scalar => "one number per token",
            Along::Rows => "one value for each row",
            Along::Columns => "one value for each column",
            Along::Entries => "one value for each entry",
        }
    }

    /// A factor of this kind times a weight.
    pub fn times(&self, factor: Math, weight: Math) -> Math {
        match self.along {
            Along::One => weight,
            Along::Scalar => scaled(factor, weight),
            Along::Rows | Along::Columns | Along::Entries => entries(factor, weight),
        }
    }

    /// `(factor * weight) @ z`, the factor where it costs least.
    pub fn applied(&self, factor: Math, weight: Math, z: Math) -> Math {
        match self.along {
            Along::One => matmul(weight, z),
            _ if factor == Math::Number(1.0) => matmul(weight, z),
            Along::Scalar => scaled(factor, matmul(weight, z)),
            Along::Rows => entries(factor, matmul(weight, z)),
            Along::Columns => matmul(weight, entries(factor, z)),
            Along::Entries => matmul(entries(factor, weight), z),
        }
    }

    /// `(factor * outer(left, right)) @ z`, the factor where it costs least.
    pub fn applied_outer(&self, factor: Math, left: Math, right: Math, z: Math) -> Math {
        let met = |z: Math| inner(right.clone(), z);
        match self.along {
            _ if factor == Math::Number(1.0) => scaled(met(z), left),
            Along::One => scaled(met(z), left),
            Along::Scalar => scaled(scaled(factor, met(z)), left),
            Along::Rows => scaled(met(z), entries(factor, left)),
            Along::Columns => scaled(met(entries(factor, z)), left),
            Along::Entries => entries(left, matmul(factor, entries(right, z))),
        }
    }
}

/// `sum over i up to a token`.
pub(super) fn up_to(range: &str, body: Math) -> Math {
    over(range, body)
}

/// A name at a token.
pub(super) fn at(name: &str, time: &str) -> Math {
    crate::math::at(named(name), time)
}
