//! The elements that one statement touches through one access, at one turn of the loops around it.

use crate::ir::{Access, ArrayId, Axis, VarId};
use std::collections::BTreeMap;

/// `base + outer + sum of coefficient * i` for every `0 <= i < extent` of the dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Footprint {
    pub array: ArrayId,
    pub base: i64,
    /// Terms in variables of the loops around the statement.
    pub outer: BTreeMap<VarId, i64>,
    /// Coefficient and extent of the statement's own loops.
    pub dims: Vec<(i64, usize)>,
}

impl Footprint {
    /// The footprint of `access` over the statement's own loops `locals`, with further dimensions `extra`.
    pub fn of(access: &Access, locals: &[Axis], extra: &[(i64, usize)]) -> Footprint {
        let local = |v: VarId| locals.iter().any(|a| a.var == v);
        let outer = access.offset.terms().filter(|&(v, _)| !local(v)).collect();
        let own = locals.iter().map(|a| (access.offset.coefficient(a.var), a.extent));
        Footprint {
            array: access.array,
            base: access.offset.constant,
            outer,
            dims: own.chain(extra.iter().copied()).collect(),
        }
    }

    /// First and last element, without the outer terms; `None` beyond 127 bits.
    pub fn range(&self) -> Option<(i128, i128)> {
        let start = i128::from(self.base);
        self.dims.iter().try_fold((start, start), |range, &(c, e)| stretch(range, c, e))
    }

    /// Whether different points touch different elements (sufficient test: in order of size, each
    /// coefficient exceeds what all smaller ones can reach).
    pub fn injective(&self) -> bool {
        let mut dims: Vec<(i128, i128)> = self
            .dims
            .iter()
            .filter(|&&(_, e)| e > 1)
            .map(|&(c, e)| (i128::from(c).abs(), e as i128 - 1))
            .collect();
        dims.sort_unstable();
        let mut reach = 0i128;
        for (c, last) in dims {
            if c <= reach {
                return false;
            }
            reach = reach.saturating_add(c.saturating_mul(last));
        }
        true
    }
}

/// The range widened by a dimension.
pub(super) fn stretch(range: (i128, i128), coefficient: i64, extent: usize) -> Option<(i128, i128)> {
    let last = i128::try_from(extent).ok()?.checked_sub(1)?;
    let by = i128::from(coefficient).checked_mul(last)?;
    if by < 0 { Some((range.0.checked_add(by)?, range.1)) } else { Some((range.0, range.1.checked_add(by)?)) }
}

/// Whether two footprints of one statement certainly have no element in common.
pub(super) fn apart(a: &Footprint, b: &Footprint) -> bool {
    if a.array != b.array {
        return true;
    }
    if a.outer != b.outer {
        return false;
    }
    let (Some(p), Some(q)) = (a.range(), b.range()) else {
        return false;
    };
    p.1 < q.0 || q.1 < p.0 || interleaved(a, b)
}

/// Equal patterns shifted against each other, such as the even and the odd elements.
fn interleaved(a: &Footprint, b: &Footprint) -> bool {
    let Some(shift) = b.base.checked_sub(a.base) else {
        return false;
    };
    if a.dims != b.dims {
        return false;
    }
    let mut both = a.clone();
    both.dims.push((shift, 2));
    both.injective()
}
