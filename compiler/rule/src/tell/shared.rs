//! Parts that occur so often in a formula that writing them out each time would drown it.

use crate::rule::{DerivationStep, Equation};
use miras_term::{Mismatch, Role, TermId, Terms};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A formula of more signs than this has its common parts named.
const LONG: u64 = 400;
/// A part of fewer signs is written out each time.
const SHORT: u64 = 6;

/// Whether a formula is longer than a page when every part is written out, except where it has a name.
fn is_long(terms: &Terms, roots: &[TermId], named: &HashSet<TermId>) -> bool {
    let (_, sizes) = sizes(terms, roots, named, &HashMap::new());
    roots.iter().any(|r| sizes.get(r).is_some_and(|size| *size > LONG))
}

/// The parts to name so that formulas stay as short as their graph, operands first; empty where they are
/// short as they stand. Parts below a name are left out.
pub(crate) fn common_parts(terms: &Terms, roots: &[TermId], named: &HashSet<TermId>) -> Vec<TermId> {
    if !is_long(terms, roots, named) {
        return Vec::new();
    }
    let uses = uses(terms, roots, named);
    sizes(terms, roots, named, &uses).0
}

/// How often each part occurs as an operand.
fn uses(terms: &Terms, roots: &[TermId], named: &HashSet<TermId>) -> HashMap<TermId, u32> {
    let mut uses = HashMap::new();
    let (mut open, mut seen) = (roots.to_vec(), HashSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        for operand in terms.operands(id) {
            *uses.entry(operand).or_insert(0u32) += 1;
            if !named.contains(&operand) {
                open.push(operand);
            }
        }
    }
    uses
}

/// The signs of every part, and the parts that are used often; those count as one sign in others.
fn sizes(
    terms: &Terms,
    roots: &[TermId],
    named: &HashSet<TermId>,
    uses: &HashMap<TermId, u32>,
) -> (Vec<TermId>, HashMap<TermId, u64>) {
    let (mut parts, mut sizes) = (Vec::new(), HashMap::new());
    let below: HashSet<TermId> = roots.iter().copied().collect();
    for id in terms.reachable(roots) {
        let inner = |o: &TermId| if named.contains(o) { 1 } else { sizes.get(o).copied().unwrap_or(1) };
        let size = terms.operands(id).iter().fold(1u64, |sum, o| sum.saturating_add(inner(o)));
        let often = uses.get(&id).is_some_and(|n| *n > 1);
        if often && size >= SHORT && !named.contains(&id) && !below.contains(&id) {
            parts.push(id);
            sizes.insert(id, 1);
        } else {
            sizes.insert(id, size);
        }
    }
    (parts, sizes)
}

/// Gives the common parts of a step's long formulas equations of their own, before the others.
pub(super) fn shorten(
    terms: &mut Terms,
    named: &HashSet<TermId>,
    step: &mut DerivationStep,
) -> Result<(), Mismatch> {
    let rights: Vec<TermId> = step.equations.iter().map(|e| e.right).collect();
    let open: Vec<TermId> = rights.iter().copied().filter(|r| !named.contains(r)).collect();
    let parts = common_parts(terms, &open, named);
    if parts.is_empty() {
        return Ok(());
    }
    let mut known: HashMap<TermId, TermId> = named.iter().map(|n| (*n, *n)).collect();
    let mut equations = Vec::new();
    for (n, part) in parts.into_iter().enumerate() {
        let name = format!("part[{}]", n + 1);
        let right = terms.replace_parts(&[part], &known)?[0];
        let shape = terms.shape(part).clone();
        let var = terms.add_var(name.clone(), Role::Bound, shape, None);
        known.insert(part, terms.use_var(var));
        equations.push(Equation { left: name, right });
    }
    let rewritten: BTreeMap<TermId, TermId> =
        open.iter().copied().zip(terms.replace_parts(&open, &known)?).collect();
    for equation in &mut step.equations {
        equation.right = rewritten.get(&equation.right).copied().unwrap_or(equation.right);
    }
    equations.append(&mut step.equations);
    step.equations = equations;
    Ok(())
}
