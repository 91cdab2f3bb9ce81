//! Retention solved from its definition (docs/mathematics.md).
//!
//! The weights after the step minimise `-<u, W'> + local(W', W) + global(W')` over a domain (or
//! `potential(W') - <A', W'>` for an accumulated dual A'). The derivative of the objective is read as a sum
//! of products, and a short ordered list of strategies is tried on it; each is a file with its condition,
//! and says why where it does not hold. No strategy knows any definition by name.

mod affine;
mod declared;
mod domain;
mod entropy;
mod evidence;
mod invert;
mod invert_rows;
mod lazy;
mod link;
mod multiplier;
mod newton;
mod power_norm;
mod problem;
mod project;
mod proximal;
mod radial;
mod refuse;
mod summands;
mod tell;

#[cfg(test)]
mod witness;

use crate::rule::{DerivationStep, Retained};
use miras_base::Diagnostic;
use miras_spec as spec;
use problem::Problem;
use refuse::{Fail, Refusal, Tried, not_solved};

/// What a strategy gives: the map, and how it was found.
type Solved = (Retained, Vec<DerivationStep>);

/// One way to solve an objective.
struct Strategy {
    /// What it looks for, in words; refusals begin with it.
    name: &'static str,
    solve: fn(&mut Problem<'_>) -> Tried<Solved>,
}

const QUADRATIC: Strategy = Strategy { name: "quadratic terms", solve: affine::solve };
const PROXIMAL: Strategy = Strategy { name: "quadratic terms with absolute values", solve: proximal::solve };
const RADIAL: Strategy = Strategy { name: "quadratic terms with a norm", solve: radial::solve };
const NORM: Strategy = Strategy { name: "a power of a norm", solve: power_norm::solve };
const LINK: Strategy = Strategy { name: "separable terms with an invertible slope", solve: link::solve };
const ENTROPY: Strategy = Strategy { name: "entropy on a simplex", solve: entropy::solve };
const MULTIPLIER: Strategy = Strategy { name: "separable terms on a simplex", solve: multiplier::solve };
const BALL: Strategy = Strategy { name: "quadratic terms in a ball", solve: project::ball };
const INTERVAL: Strategy = Strategy { name: "quadratic terms in an interval", solve: project::interval };
const NEWTON: Strategy = Strategy { name: "Newton steps", solve: newton::solve };
const APART: Strategy = Strategy { name: "Newton steps", solve: newton::not_apart };

/// The strategies for an objective over a domain, in the order in which they are tried.
fn strategies(domain: &spec::Domain, newton: bool) -> &'static [Strategy] {
    match (domain, newton) {
        (spec::Domain::All | spec::Domain::Interval { .. }, true) => &[NEWTON],
        (spec::Domain::All, false) => &[QUADRATIC, PROXIMAL, RADIAL, NORM, LINK],
        (spec::Domain::Simplex { .. }, false) => &[ENTROPY, MULTIPLIER],
        (spec::Domain::Simplex { .. }, true) => &[ENTROPY, MULTIPLIER, APART],
        (spec::Domain::Ball { .. }, false) => &[BALL],
        (spec::Domain::Ball { .. }, true) => &[BALL, APART],
        (spec::Domain::Interval { .. }, false) => &[INTERVAL, LINK],
    }
}

/// The retention of weight `index` of a layer in closed form, and the steps of its derivation. New terms
/// and variables (a dual, an unknown) are added to the layer's arena.
///
/// # Errors
/// E0302 where no strategy applies (the notes say why each does not), E0301 where the objective has a
/// function without a derivative, E0304 where what is kept varies within a slice of a simplex.
pub fn solve(layer: &mut spec::Layer, index: usize) -> Result<(Retained, Vec<DerivationStep>), Diagnostic> {
    let (Some(retention), Some(weight)) = (layer.retention.get(index), layer.memory.weights.get(index))
    else {
        return Err(Diagnostic::bug("a retention without its weight"));
    };
    let (retention, display) = (retention.clone(), weight.display.clone());
    attempt(layer, index, &retention).map_err(|failed| match failed {
        Unsolved::Tried(tried) => {
            let newton = retention.newton.is_none() && newton_would(layer, index, &retention);
            not_solved(layer, &retention, &display, &tried, newton)
        }
        Unsolved::Final(d) => *d,
    })
}

/// Whether `solve: newton(8);` would solve a retention.
fn newton_would(layer: &spec::Layer, index: usize, retention: &spec::Retention) -> bool {
    let mut layer = layer.clone();
    let retention = spec::Retention { newton: Some(8), ..retention.clone() };
    layer.retention[index] = retention.clone();
    attempt(&mut layer, index, &retention).is_ok()
}

fn attempt(layer: &mut spec::Layer, index: usize, retention: &spec::Retention) -> Result<Solved, Unsolved> {
    match &retention.form {
        spec::Form::Objective { local, global, domain } => {
            let objective: Vec<_> = local.iter().chain(global).copied().collect();
            by_strategies(layer, index, &objective, domain)
        }
        spec::Form::Lazy { dual, next, potential, domain } => {
            lazy::solve(layer, index, *dual, *next, *potential, domain)
        }
        spec::Form::DeclaredDual { dual, next, map } => one(declared::dual(layer, index, *dual, *next, *map)),
        spec::Form::DeclaredMap { next } => one(declared::map(layer, index, *next)),
    }
}

/// Why there is no solution.
enum Unsolved {
    Tried(Vec<Refusal>),
    Final(Box<Diagnostic>),
}

fn one<T>(solved: Tried<T>) -> Result<T, Unsolved> {
    solved.map_err(|failed| match failed {
        Fail::Refused(reason) => Unsolved::Tried(vec![Refusal { strategy: "the definition", reason }]),
        Fail::Final(d) => Unsolved::Final(d),
    })
}

fn by_strategies(
    layer: &mut spec::Layer,
    index: usize,
    objective: &[miras_term::TermId],
    domain: &spec::Domain,
) -> Result<Solved, Unsolved> {
    let newton = layer.retention[index].newton.is_some();
    let update = layer.retention[index].update;
    let mut tried = Vec::new();
    for strategy in strategies(domain, newton) {
        let attempt = Problem::new(layer, index, objective, update, domain.clone())
            .and_then(|mut problem| (strategy.solve)(&mut problem));
        match attempt {
            Ok(solved) => return Ok(solved),
            Err(Fail::Refused(reason)) => tried.push(Refusal { strategy: strategy.name, reason }),
            Err(Fail::Final(d)) => return Err(Unsolved::Final(d)),
        }
    }
    Err(Unsolved::Tried(tried))
}
