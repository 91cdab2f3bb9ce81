//! Cotangents: `grad.o` and `grad.state.*`.

use super::bound::{Bound, Cotangents};
use super::desk::{Ask, Axis, Desk, Found};
use crate::outputs::{OutputKind, layout};
use miras_spec as spec;
use std::collections::BTreeMap;

/// The cotangents, where gradients are asked for and all of them are sound.
pub(super) fn cotangents(desk: &mut Desk<'_>, bound: &Bound) -> Option<Cotangents> {
    if !desk.options.grad {
        return None;
    }
    let inputs = std::mem::take(&mut desk.given);
    let mut output = None;
    let mut states = BTreeMap::new();
    for result in layout(desk.rule, bound) {
        let symbols: &[&str] = match result.kind {
            OutputKind::Answer => &["B", "H", "T", "dv"],
            OutputKind::CacheKeys => &["B", "H", "L", "dk"],
            OutputKind::CacheValues => &["B", "H", "L", "dv"],
            OutputKind::Carried(_)
            | OutputKind::Anchor(_)
            | OutputKind::Remembered(..)
            | OutputKind::Algo(_) => &["N", "H", "rows", "cols"],
            OutputKind::CacheSegments | OutputKind::Position | OutputKind::Chunk | OutputKind::Gradient => {
                continue;
            }
        };
        let axes = symbols.iter().zip(&result.shape).map(|(s, n)| Axis::new(s, *n)).collect();
        let who = format!("the cotangent of `{}`", result.name);
        let ask =
            Ask { name: format!("grad.{}", result.name), axes, kind: spec::Kind::Real, who, span: None };
        match result.kind == OutputKind::Answer {
            true => output = desk.required(&ask),
            false => {
                if let Found::Good(tensor) = desk.optional(&ask) {
                    states.insert(result.name, tensor);
                }
            }
        }
    }
    desk.given = inputs;
    Some(Cotangents { output: output?, states })
}
