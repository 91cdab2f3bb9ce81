//! Parts of arrays, seen over named axes.

use crate::ir::{Access, Affine, ArrayId, VarId};
use miras_tensor::ir::AxisId;

/// A part of an array: where it begins, and how far apart neighbours along each axis lie.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    array: ArrayId,
    start: Affine,
    strides: Vec<(AxisId, usize)>,
}

impl View {
    /// A whole array with these axes, the last one fastest.
    pub(super) fn row_major(array: ArrayId, axes: &[AxisId], sizes: &[usize]) -> View {
        let mut stride = 1usize;
        let mut strides = Vec::new();
        for (axis, size) in axes.iter().zip(sizes).rev() {
            strides.push((*axis, stride));
            stride = stride.saturating_mul(*size);
        }
        strides.reverse();
        View { array, start: Affine::default(), strides }
    }

    /// The same with one more axis.
    pub(super) fn with_axis(mut self, axis: AxisId, stride: usize) -> View {
        self.strides.insert(0, (axis, stride));
        self
    }

    /// The same with an axis called otherwise.
    pub(super) fn renamed(mut self, from: AxisId, to: AxisId) -> View {
        for (axis, _) in &mut self.strides {
            if *axis == from {
                *axis = to;
            }
        }
        self
    }

    /// The part at a fixed place of an axis.
    pub(super) fn at(mut self, axis: AxisId, place: usize) -> View {
        if let Some(stride) = self.take(axis) {
            self.start = self.start.shifted(number(stride.saturating_mul(place)));
        }
        self
    }

    /// The part at a loop variable's place of an axis.
    pub(super) fn along(mut self, axis: AxisId, var: VarId) -> View {
        if let Some(stride) = self.take(axis) {
            self.start = self.start.plus(number(stride), var);
        }
        self
    }

    /// The element at these places of the axes; axes it does not have are passed over.
    pub(super) fn access(&self, place: impl Fn(AxisId) -> Option<VarId>) -> Access {
        let offset = (self.strides.iter())
            .filter_map(|(axis, stride)| place(*axis).map(|var| (var, number(*stride))))
            .fold(self.start.clone(), |offset, (var, stride)| offset.plus(stride, var));
        Access::new(self.array, offset)
    }

    /// Its axes, outermost first.
    pub(super) fn axes(&self) -> impl Iterator<Item = AxisId> + '_ {
        self.strides.iter().map(|(axis, _)| *axis)
    }

    /// Its first element, where it is one run with exactly these axes in this order.
    pub(super) fn covers(&self, axes: &[AxisId], sizes: &[usize]) -> Option<Access> {
        let plain = View::row_major(self.array, axes, sizes);
        (plain.strides == self.strides).then(|| Access::new(self.array, self.start.clone()))
    }

    /// Its first element.
    pub(super) fn first(&self) -> Access {
        Access::new(self.array, self.start.clone())
    }

    /// How far apart neighbours lie along several axes taken as one, the last one fastest; None where they do
    /// not follow each other.
    pub(super) fn joined(&self, axes: &[AxisId], sizes: &[usize]) -> Option<usize> {
        let stride = |axis: &AxisId| self.strides.iter().find(|(a, _)| a == axis).map(|(_, s)| *s);
        let mut joined: Option<(usize, usize)> = None;
        for (axis, size) in axes.iter().zip(sizes).rev() {
            let own = stride(axis)?;
            joined = match joined {
                None => Some((own, own.checked_mul(*size)?)),
                Some((first, next)) if own == next => Some((first, own.checked_mul(*size)?)),
                Some(_) => return None,
            };
        }
        joined.map(|(first, _)| first)
    }

    fn take(&mut self, axis: AxisId) -> Option<usize> {
        let at = self.strides.iter().position(|(a, _)| *a == axis)?;
        Some(self.strides.remove(at).1)
    }
}

fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
