//! W0302: weights on a simplex whose mass is so small that a layernorm behind them sees only its eps.

use crate::rule::UpdateRule;
use miras_base::diagnostic::code;
use miras_base::{Diagnostic, DimEnv};
use miras_spec as spec;
use miras_term::{Op, TermId, Terms, VarId};
use std::collections::HashMap;

/// The size at which signals are estimated: dk = dv = 64.
const SIZE: u64 = 64;

/// sqrt(1e-5): a signal below this is mostly eps to layernorm (docs/mathematics.md).
const DROWNED: f64 = 3.2e-3;

/// How much of a signal an element-wise function passes on, roughly.
const PASSED: f64 = 0.5;

/// Warnings for every layernorm in the read whose estimated input is below its eps.
///
/// The estimate: a unit key has entries of 1/sqrt(dk); a weight on a simplex with a constant mass has entries
/// around mass / cols that vary by as much, so that `W @ h` varies by mass / cols * norm(h) from row to row; a
/// function of one argument passes half. Anything else gives no estimate and no warning.
pub(super) fn weak_signals(rule: &UpdateRule) -> Vec<Diagnostic> {
    let Some(read) = rule.layer.memory.read else { return Vec::new() };
    let terms = &rule.layer.terms;
    let masses = masses(rule);
    if masses.is_empty() {
        return Vec::new();
    }
    let sizes = DimEnv::from([("dk".into(), SIZE), ("dv".into(), SIZE)]);
    let mut known: HashMap<TermId, f64> = HashMap::new();
    let mut weakest = f64::INFINITY;
    for id in terms.reachable(&[read]) {
        if let Some(signal) = estimate(rule, terms, id, &masses, &sizes, &known) {
            known.insert(id, signal);
        }
        if let Op::LayerNorm(a) | Op::InverseDeviation(a) = terms.op(id)
            && let Some(signal) = known.get(a)
        {
            weakest = weakest.min(*signal);
        }
    }
    if weakest >= DROWNED { Vec::new() } else { vec![warning(rule, weakest)] }
}

fn warning(rule: &UpdateRule, signal: f64) -> Diagnostic {
    let choice = &rule.layer.choices[2];
    let message = format!(
        "before the memory's layernorm the signal is about {signal:.0e} at d = {SIZE}, less than the 3e-3 that its eps \
         of 1e-5 amounts to"
    );
    Diagnostic::new(code::WEAK_SIGNAL, message)
        .at_opt(choice.span, "the weights are confined to a simplex of this mass")
        .with_help("raise the mass of the simplex (at d = 64, 16 is enough for two layers)")
        .with_note("an estimate for unit keys and weights whose entries vary by their own size")
}

/// The constant masses of weights on a simplex.
fn masses(rule: &UpdateRule) -> HashMap<VarId, f64> {
    let pairs = rule.layer.memory.weights.iter().zip(&rule.layer.retention);
    pairs.filter_map(|(w, r)| Some((w.var, mass(&rule.layer.terms, r)?))).collect()
}

fn mass(terms: &Terms, retention: &spec::Retention) -> Option<f64> {
    let domain = match &retention.form {
        spec::Form::Objective { domain, .. } | spec::Form::Lazy { domain, .. } => domain,
        spec::Form::DeclaredDual { .. } | spec::Form::DeclaredMap { .. } => return None,
    };
    match domain {
        spec::Domain::Simplex { axis: miras_term::Axis::Row, mass } => terms.as_num(*mass),
        _ => None,
    }
}

/// How much the entries of a vector vary, where the structure tells.
fn estimate(
    rule: &UpdateRule,
    terms: &Terms,
    id: TermId,
    masses: &HashMap<VarId, f64>,
    sizes: &DimEnv,
    known: &HashMap<TermId, f64>,
) -> Option<f64> {
    match terms.op(id) {
        Op::Var(v) if *v == rule.layer.memory.argument => Some(1.0 / (SIZE as f64).sqrt()),
        Op::MatMul(a, b) => {
            let Op::Var(weight) = terms.op(*a) else { return None };
            let cols = terms.shape(*a).0.get(1)?.eval(sizes)? as f64;
            Some(masses.get(weight)? / cols * cols.sqrt() * known.get(b)?)
        }
        Op::Fn1(_, a) => known.get(a).map(|s| s * PASSED),
        _ => None,
    }
}
