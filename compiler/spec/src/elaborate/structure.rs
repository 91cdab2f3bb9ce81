//! Structure of terms: in which variables they are polynomials, and of what degree.
//!
//! `require` asks about structure, never about names. A condition such as "the loss is half the squared
//! distance" is decided in two steps: the term is a polynomial of a degree by its form, and a polynomial
//! of a known degree is told from another by its values at points in general position.

use crate::layer::Kind;
use base::scalar::{Fn1, Fn2};
use base::{Dim, DimEnv};
use miras_base as base;
use miras_term::{Env, Op, Reduce, Role, TermId, Terms, VarId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Points at which polynomials are compared.
const POINTS: u64 = 6;
/// Relative difference up to which values count as equal.
const SAME: f64 = 1e-9;

/// The degree of a term as a polynomial in some variables, by its form; None where it is none.
pub(super) fn degree(terms: &Terms, of: TermId, by: &[VarId]) -> Option<u32> {
    let mut degrees: HashMap<TermId, Option<u32>> = HashMap::new();
    for id in terms.reachable(&[of]) {
        let d = one(terms, id, by, &degrees);
        degrees.insert(id, d);
    }
    degrees.get(&of).copied().flatten()
}

fn one(terms: &Terms, id: TermId, by: &[VarId], known: &HashMap<TermId, Option<u32>>) -> Option<u32> {
    let of = |t: &TermId| known.get(t).copied().flatten();
    let free = || terms.operands(id).iter().all(|t| of(t) == Some(0)).then_some(0);
    match terms.op(id) {
        Op::Var(v) => Some(if by.contains(v) { 1 } else { 0 }),
        Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Eye(_) => Some(0),
        Op::Fn1(Fn1::Neg, a)
        | Op::Transpose(a)
        | Op::Row(a)
        | Op::Col(a)
        | Op::Flat(a)
        | Op::Spread(a, _)
        | Op::Stop(a)
        | Op::Reduce(Reduce::Sum, _, a) => of(a),
        Op::Fn2(Fn2::Pow, a, b) if euclidean(terms, *a).is_some() => {
            let inner = euclidean(terms, *a)?;
            power(terms, of(&inner)?, *b).filter(|_| terms.as_num(*b).is_some_and(|n| n % 2.0 == 0.0))
        }
        Op::Fn2(f, a, b) => two(terms, *f, of(a)?, (*b, of(b)?)),
        Op::MatMul(a, b) | Op::Outer(a, b) => of(a)?.checked_add(of(b)?),
        Op::Select(c, a, b) if of(c) == Some(0) => Some(of(a)?.max(of(b)?)),
        Op::Select(..)
        | Op::Compare(..)
        | Op::Fn1(..)
        | Op::Norm(..)
        | Op::Reduce(..)
        | Op::Softmax(..)
        | Op::LogSoftmax(..)
        | Op::LayerNorm(_)
        | Op::InverseDeviation(_)
        | Op::Root(_) => free(),
    }
}

/// x where a term is the Euclidean norm of x, whose even powers are polynomials though it is none.
fn euclidean(terms: &Terms, id: TermId) -> Option<TermId> {
    match terms.op(id) {
        Op::Norm(x, p) if terms.as_num(*p) == Some(2.0) => Some(*x),
        _ => None,
    }
}

fn two(terms: &Terms, f: Fn2, da: u32, (b, db): (TermId, u32)) -> Option<u32> {
    match f {
        Fn2::Add | Fn2::Sub => Some(da.max(db)),
        Fn2::Mul => da.checked_add(db),
        Fn2::Div if db == 0 => Some(da),
        Fn2::Pow if da == 0 && db == 0 => Some(0),
        Fn2::Pow if db == 0 => power(terms, da, b),
        Fn2::Min | Fn2::Max if da == 0 && db == 0 => Some(0),
        Fn2::Div | Fn2::Pow | Fn2::Min | Fn2::Max => None,
    }
}

/// The degree of a^n for a whole n that is not large.
fn power(terms: &Terms, degree: u32, exponent: TermId) -> Option<u32> {
    let n = terms.as_num(exponent)?;
    if n < 0.0 || n.fract() != 0.0 || n > 16.0 {
        return None;
    }
    degree.checked_mul(n as u32)
}

/// Whether two terms of one shape have equal values at points in general position, with all variables free.
pub(super) fn same_values(terms: &Terms, a: TermId, b: TermId, kinds: &dyn Fn(VarId) -> Kind) -> bool {
    let fits = |dk, dv| {
        (0..POINTS).map(|seed| same_at(terms, a, b, kinds, dk, dv, seed)).collect::<Option<Vec<bool>>>()
    };
    // Different sizes tell dk from dv; where the program needs them equal they are.
    let verdicts = fits(3, 2).or_else(|| fits(3, 3));
    verdicts.is_some_and(|v| v.into_iter().all(|same| same))
}

fn same_at(
    terms: &Terms,
    a: TermId,
    b: TermId,
    kinds: &dyn Fn(VarId) -> Kind,
    dk: u64,
    dv: u64,
    seed: u64,
) -> Option<bool> {
    let dims = DimEnv::from([(Arc::from("dk"), dk), (Arc::from("dv"), dv)]);
    let mut env = Env { dims, head: 1, heads: 3, layer: 1, layers: 4, vars: HashMap::new() };
    let mut source = Numbers { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1) };
    let used: HashSet<VarId> = terms.vars_of(&[a, b]).into_iter().collect();
    for (var, info) in terms.vars().filter(|(v, _)| used.contains(v)) {
        if info.role == Role::Bound {
            continue;
        }
        let shape = terms.sizes(&info.shape, &env).ok()?;
        let count = shape.iter().product();
        let data = (0..count).map(|_| source.next(kinds(var))).collect();
        env.vars.insert(var, miras_term::Tensor { shape, data });
    }
    let values = terms.eval(&[a, b], &env).ok()?;
    let (x, y) = (&values[0].data, &values[1].data);
    if values[0].shape != values[1].shape {
        return None;
    }
    let scale = x.iter().chain(y).fold(1.0_f64, |m, v| m.max(v.abs()));
    Some(x.iter().zip(y).all(|(x, y)| (x - y).abs() <= SAME * scale))
}

/// Numbers in general position, the same on every run.
struct Numbers {
    state: u64,
}

impl Numbers {
    fn next(&mut self, kind: Kind) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        match kind {
            Kind::Unit => unit,
            Kind::Positive => 0.25 + 2.0 * unit,
            Kind::Real => 4.0 * unit - 2.0,
        }
    }
}

/// The size of an axis where structure is compared: any vector weight is laid out as its shape says.
pub(super) fn is_matrix_dv_dk(shape: &miras_term::Shape) -> bool {
    shape.0.as_slice() == [Dim::dv(), Dim::dk()]
}
