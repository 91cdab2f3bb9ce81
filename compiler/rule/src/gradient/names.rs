//! Names for the intermediate results of a gradient that a reader would want to see by name.

use crate::calculus::reverse::folded;
use crate::rule::{Gradient, Named};
use crate::tell::shared;
use miras_base::scalar::row;
use miras_spec as spec;
use miras_term::{Mismatch, Op, Role, TermId, Terms};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The named intermediates of a gradient, operands first.
pub(super) fn intermediates(
    layer: &mut spec::Layer,
    gradient: &Gradient,
    cotangent: TermId,
) -> Result<Vec<Named>, Mismatch> {
    let mut names =
        Names { found: BTreeMap::new(), taken: taken(&layer.terms), several: layer.memory.weights.len() > 1 };
    let parts = reachable(&layer.terms, gradient);
    names.give(&layer.terms, gradient.answer, "y", "what the memory answers for the key");
    error(layer, gradient, &parts, &mut names);
    layers(layer, gradient, &parts, &mut names);
    slopes_of_functions(&mut layer.terms, gradient, &parts, &mut names)?;
    names.give(&layer.terms, cotangent, "s", "slope of the bias at the answer, dloss/dy");
    deltas(&layer.terms, gradient, &mut names);
    common_parts(&layer.terms, gradient, &mut names);
    names.found.retain(|id, _| parts.contains(id) || *id == cotangent);
    Ok(names.found.into_iter().map(|(term, (name, meaning))| Named { name, term, meaning }).collect())
}

/// Names of variables, which would be confused with the same name of an intermediate result.
fn taken(terms: &Terms) -> BTreeSet<String> {
    let mine = |role: Role| !matches!(role, Role::Answer | Role::ReadArgument | Role::Bound);
    terms.vars().filter(|(_, v)| mine(v.role)).map(|(_, v)| v.name.clone()).collect()
}

struct Names {
    found: BTreeMap<TermId, (String, String)>,
    taken: BTreeSet<String>,
    several: bool,
}

impl Names {
    /// Names a term that has no name yet and is more than a variable or a number (with a sign).
    fn give(&mut self, terms: &Terms, id: TermId, name: impl Into<String>, meaning: impl Into<String>) {
        if is_simple(terms, id) || self.found.contains_key(&id) {
            return;
        }
        let name = name.into();
        let numbered = (2..).map(|n| format!("{name}.{n}"));
        let mut free = std::iter::once(name.clone()).chain(numbered).filter(|n| !self.taken.contains(n));
        let unique = free.next().unwrap_or_default();
        self.taken.insert(unique.clone());
        self.found.insert(id, (unique, meaning.into()));
    }

    /// `base[n]` where there are several weights, else `base`.
    fn indexed(&self, base: &str, n: usize) -> String {
        if self.several { format!("{base}[{n}]") } else { base.into() }
    }
}

fn is_simple(terms: &Terms, id: TermId) -> bool {
    match terms.op(id) {
        Op::Var(_) => true,
        Op::Fn1(miras_base::scalar::Fn1::Neg, a) | Op::Spread(a, _) => is_simple(terms, *a),
        _ => terms.as_num(id).is_some(),
    }
}

fn reachable(terms: &Terms, gradient: &Gradient) -> BTreeSet<TermId> {
    let products = gradient.by_weight.iter().flat_map(|g| g.products.iter().flat_map(|(a, b)| [*a, *b]));
    let rests = gradient.by_weight.iter().filter_map(|g| g.rest);
    let from: Vec<TermId> = products.chain(rests).chain([gradient.answer]).collect();
    terms.reachable(&from).into_iter().collect()
}

/// e = y - v.
fn error(layer: &spec::Layer, gradient: &Gradient, parts: &BTreeSet<TermId>, names: &mut Names) {
    let is_value = |id: TermId| matches!(layer.terms.op(id), Op::Var(v) if *v == layer.value);
    for id in parts {
        if let Op::Fn2(miras_base::scalar::Fn2::Sub, a, b) = layer.terms.op(*id)
            && *a == gradient.answer
            && is_value(*b)
        {
            names.give(&layer.terms, *id, "e", "error of the answer");
        }
    }
}

/// z[l] = W[l] @ h[l-1] and what enters and leaves each weight.
fn layers(layer: &spec::Layer, gradient: &Gradient, parts: &BTreeSet<TermId>, names: &mut Names) {
    let terms = &layer.terms;
    for (l, var) in gradient.at_vars.iter().enumerate() {
        let display = &layer.memory.weights[l].display;
        let is_weight = |id: TermId| matches!(terms.op(id), Op::Var(v) if v == var);
        for id in parts {
            if let Op::MatMul(a, b) = terms.op(*id)
                && is_weight(*a)
            {
                let name = names.indexed("z", l + 1);
                names.give(terms, *id, name, format!("what {display} makes of its input"));
                let name = names.indexed("h", l);
                names.give(terms, *b, name, format!("input of {display}"));
            }
        }
        for (_, right) in &gradient.by_weight[l].products {
            let name = names.indexed("h", l);
            names.give(terms, *right, name, format!("input of {display}"));
        }
    }
}

/// f'(x) for every function f(x) of the answer whose derivative the gradient uses.
fn slopes_of_functions(
    terms: &mut Terms,
    gradient: &Gradient,
    parts: &BTreeSet<TermId>,
    names: &mut Names,
) -> Result<(), Mismatch> {
    for id in terms.reachable(&[gradient.answer]) {
        let Op::Fn1(f, a) = *terms.op(id) else { continue };
        let slope = folded(terms, &(row(f).derivative)(), &[a])?;
        if parts.contains(&slope) {
            let argument = names.found.get(&a).map_or_else(|| "x".into(), |(name, _)| name.clone());
            let (name, meaning) = (format!("{f}'({argument})"), format!("slope of {f} at {argument}"));
            names.give(terms, slope, name, meaning);
        }
    }
    Ok(())
}

/// What occurs several times in formulas that would be long without a name for it.
fn common_parts(terms: &Terms, gradient: &Gradient, names: &mut Names) {
    let named: HashSet<TermId> = names.found.keys().copied().collect();
    let wholes = gradient.by_weight.iter().filter_map(|g| g.whole);
    let mut roots: Vec<TermId> = named.iter().copied().chain(wholes).collect();
    roots.sort_unstable();
    for part in shared::common_parts(terms, &roots, &named) {
        names.give(terms, part, "part", "occurs several times");
    }
}

/// delta[l]: the left factors.
fn deltas(terms: &Terms, gradient: &Gradient, names: &mut Names) {
    for (l, sum) in gradient.by_weight.iter().enumerate() {
        for (left, _) in &sum.products {
            let name = names.indexed("delta", l + 1);
            names.give(terms, *left, name, "dloss by what the weight answered");
        }
    }
}
