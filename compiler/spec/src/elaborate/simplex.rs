//! Gates on a simplex: what weighs the entries of a slice must be the same for all of them.

use super::clause::Clause;
use crate::eval::Eval;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use miras_term::{Axis, Op, Shape, TermId, Terms, VarId};
use std::collections::HashMap;

/// Along which axes of a matrix (or along a vector) a value differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Varies {
    by_row: bool,
    by_column: bool,
}

impl Varies {
    fn or(self, other: Varies) -> Varies {
        Varies { by_row: self.by_row || other.by_row, by_column: self.by_column || other.by_column }
    }
}

/// Refuses an objective on a simplex whose gates differ within a slice: the logits that are carried would
/// not solve it (docs/guide.md).
pub(super) fn check_gates(
    terms: &Terms,
    objective: &[TermId],
    weights: &[VarId],
    axis: Axis,
    shape: &Shape,
    clause: &Clause,
) -> Eval<()> {
    let mut known: HashMap<TermId, Option<Varies>> = HashMap::new();
    for id in terms.reachable(objective) {
        let varies = variation(terms, id, weights, &known);
        known.insert(id, varies);
        let Some(v) = varies else { continue };
        if terms.shape(id).rank() != shape.rank() {
            continue;
        }
        let within = match axis {
            Axis::Row => v.by_column,
            Axis::Column => v.by_row,
            Axis::All => v.by_row || v.by_column,
        };
        if within {
            return Err(refuse(terms, id, axis, shape, clause));
        }
    }
    Ok(())
}

/// How a term without weights varies; None where it has weights in it.
fn variation(
    terms: &Terms,
    id: TermId,
    weights: &[VarId],
    known: &HashMap<TermId, Option<Varies>>,
) -> Option<Varies> {
    let both = Varies { by_row: true, by_column: true };
    let of = |t: &TermId| known.get(t).copied().flatten();
    let rank = terms.shape(id).rank();
    Some(match terms.op(id) {
        Op::Var(v) if weights.contains(v) => return None,
        Op::Var(_) if rank == 0 => Varies::default(),
        Op::Var(_) if rank == 1 => Varies { by_row: false, by_column: true },
        Op::Var(_) => both,
        Op::Const(_) | Op::Size(_) | Op::Place(_) => Varies::default(),
        Op::Row(a) => Varies { by_row: false, by_column: of(a)?.by_column },
        Op::Col(a) => Varies { by_row: of(a)?.by_column, by_column: false },
        Op::Fn1(_, a) | Op::Spread(a, _) | Op::Stop(a) => of(a)?,
        Op::Fn2(_, a, b) | Op::Compare(_, a, b) => of(a)?.or(of(b)?),
        Op::Select(c, a, b) => of(c)?.or(of(a)?).or(of(b)?),
        Op::MatMul(..)
        | Op::Outer(..)
        | Op::Transpose(_)
        | Op::Flat(_)
        | Op::Reduce(..)
        | Op::Norm(..)
        | Op::Softmax(..)
        | Op::LogSoftmax(..)
        | Op::LayerNorm(_)
        | Op::InverseDeviation(_)
        | Op::Eye(_)
        | Op::Root(_) => {
            for operand in terms.operands(id) {
                of(&operand)?;
            }
            if rank == 0 { Varies::default() } else { both }
        }
    })
}

fn refuse(terms: &Terms, id: TermId, axis: Axis, shape: &Shape, clause: &Clause) -> Box<Diagnostic> {
    let slice = match axis {
        Axis::Row => "row",
        Axis::Column => "column",
        Axis::All => "weight",
    };
    let gates: Vec<String> =
        terms.vars_of(&[id]).into_iter().map(|v| format!("`{}`", terms.var(v).name)).collect();
    let gates = if gates.is_empty() { "a gate".to_string() } else { gates.join(", ") };
    let message =
        format!("{gates} varies within a {slice} of a weight {shape}, whose entries share one mass");
    let span = clause.definition.domain.as_ref().map(|d| d.span);
    let help = match axis {
        Axis::Row => "let it vary by token, or `per = value` where the weight's rows are values",
        Axis::Column => "let it vary by token, or `per = key` where the weight's columns are keys",
        Axis::All => "let it vary by token only",
    };
    Box::new(
        Diagnostic::new(code::SIMPLEX_GATE, message)
            .at(clause.span, "given here")
            .at_opt(span, format!("each {slice} is a simplex"))
            .with_help(help),
    )
}
