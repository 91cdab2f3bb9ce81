//! Dense tensors of the three element types that files hold.

use std::borrow::Cow;

/// Width of the floating-point numbers of a run: float32 for cpu and gpu, float64 for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

/// Entries of a tensor, last axis fastest.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// float32.
    F32(Vec<f32>),
    /// float64.
    F64(Vec<f64>),
    /// int64.
    I64(Vec<i64>),
}

/// A dense tensor. The product of `shape` is the number of entries of `data`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes of the axes, slowest first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The entries.
    pub data: Data,
}

impl Width {
    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Width::F32 => 4,
            Width::F64 => 8,
        }
    }

    /// A number as a backend of this width sees it.
    pub fn round(self, x: f64) -> f64 {
        match self {
            Width::F32 => f64::from(x as f32),
            Width::F64 => x,
        }
    }

    /// The type's name.
    pub fn name(self) -> &'static str {
        match self {
            Width::F32 => "float32",
            Width::F64 => "float64",
        }
    }
}

impl Data {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(x) => x.len(),
            Data::F64(x) => x.len(),
            Data::I64(x) => x.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Zeros of a width.
    pub fn zeros(width: Width, count: usize) -> Data {
        match width {
            Width::F32 => Data::F32(vec![0.0; count]),
            Width::F64 => Data::F64(vec![0.0; count]),
        }
    }

    /// Numbers of a width from float64.
    pub fn from_f64(width: Width, values: Vec<f64>) -> Data {
        match width {
            Width::F32 => Data::F32(values.into_iter().map(|x| x as f32).collect()),
            Width::F64 => Data::F64(values),
        }
    }

    /// The element type's name.
    pub fn type_name(&self) -> &'static str {
        match self {
            Data::F32(_) => "float32",
            Data::F64(_) => "float64",
            Data::I64(_) => "int64",
        }
    }
}

impl Tensor {
    /// A float32 tensor.
    pub fn f32(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Tensor {
        Self::checked(shape.into(), Data::F32(data))
    }

    /// A float64 tensor.
    pub fn f64(shape: impl Into<Vec<usize>>, data: Vec<f64>) -> Tensor {
        Self::checked(shape.into(), Data::F64(data))
    }

    /// An int64 tensor.
    pub fn i64(shape: impl Into<Vec<usize>>, data: Vec<i64>) -> Tensor {
        Self::checked(shape.into(), Data::I64(data))
    }

    fn checked(shape: Vec<usize>, data: Data) -> Tensor {
        debug_assert_eq!(count(&shape), Some(data.len()), "{shape:?}");
        Tensor { shape, data }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The entries as float32, borrowed where they are; None for integers.
    pub fn f32s(&self) -> Option<Cow<'_, [f32]>> {
        match &self.data {
            Data::F32(x) => Some(Cow::Borrowed(x)),
            Data::F64(x) => Some(Cow::Owned(x.iter().map(|x| *x as f32).collect())),
            Data::I64(_) => None,
        }
    }

    /// The entries as float64, borrowed where they are; None for integers.
    pub fn f64s(&self) -> Option<Cow<'_, [f64]>> {
        match &self.data {
            Data::F32(x) => Some(Cow::Owned(x.iter().map(|x| f64::from(*x)).collect())),
            Data::F64(x) => Some(Cow::Borrowed(x)),
            Data::I64(_) => None,
        }
    }

    /// The entries as int64; None for floats.
    pub fn i64s(&self) -> Option<&[i64]> {
        match &self.data {
            Data::I64(x) => Some(x),
            Data::F32(_) | Data::F64(_) => None,
        }
    }

    /// The width of its floats; None for integers.
    pub fn width(&self) -> Option<Width> {
        match &self.data {
            Data::F32(_) => Some(Width::F32),
            Data::F64(_) => Some(Width::F64),
            Data::I64(_) => None,
        }
    }

    /// The entry at a flat index as float64; None for integers and past the end.
    pub fn at(&self, flat: usize) -> Option<f64> {
        match &self.data {
            Data::F32(x) => x.get(flat).map(|x| f64::from(*x)),
            Data::F64(x) => x.get(flat).copied(),
            Data::I64(_) => None,
        }
    }

    /// Whether every entry lies between two numbers, each belonging to it; NaN lies nowhere. Limits beyond the width's
    /// finite numbers are its largest ones. False for integers.
    ///
    /// Every entry is looked at and nothing is asked on the way, so that many are compared at once.
    pub fn all_between(&self, low: f64, high: f64) -> bool {
        match &self.data {
            Data::F32(x) => {
                let limit = |bound: f64| bound.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
                let (low, high) = (limit(low), limit(high));
                x.iter().fold(true, |all, x| all & (*x >= low) & (*x <= high))
            }
            Data::F64(x) => x.iter().fold(true, |all, x| all & (*x >= low) & (*x <= high)),
            Data::I64(_) => false,
        }
    }

    /// The index along each axis of a flat index.
    pub fn index_of(&self, flat: usize) -> Vec<usize> {
        index_of(&self.shape, flat)
    }
}

/// The number of entries of a shape; None on overflow.
pub fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d))
}

fn index_of(shape: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (slot, n) in index.iter_mut().zip(shape).rev() {
        let n = (*n).max(1);
        *slot = flat % n;
        flat /= n;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_run_with_the_last_axis_fastest() {
        let t = Tensor::f32([2, 3], (0..6).map(|x| x as f32).collect());
        assert_eq!(t.index_of(4), [1, 1]);
        assert_eq!(t.at(4), Some(4.0));
        assert_eq!(t.at(6), None);
        assert!(t.all_between(0.0, 5.0) && t.all_between(f64::MIN, f64::MAX) && !t.all_between(0.0, 4.5));
        assert!(!Tensor::f32([2], vec![0.0, f32::NAN]).all_between(f64::MIN, f64::MAX));
        assert!(!Tensor::f64([1], vec![f64::INFINITY]).all_between(f64::MIN, f64::MAX));
        assert_eq!(count(&[usize::MAX, 2]), None);
        assert_eq!(count(&[]), Some(1));
    }
}
