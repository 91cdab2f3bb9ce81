//! The primitive float32 operations, and `f32` itself as the machine that performs them.

use super::Cmp;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A float32 under the operations that both WGSL and Cranelift have.
pub trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The integers of the same machine.
    type Int: Int<Real = Self>;

    /// A number, on the machine of `self`.
    fn constant(self, c: f32) -> Self;
    /// |x|
    fn abs(self) -> Self;
    /// Square root of x >= 0.
    fn sqrt(self) -> Self;
    /// The greatest whole number that is not above x.
    fn floor(self) -> Self;
    /// The nearest whole number; of two, the even one.
    fn nearest(self) -> Self;
    /// The smaller.
    fn min(self, other: Self) -> Self;
    /// The larger.
    fn max(self, other: Self) -> Self;
    /// `if a cmp b then t else e`, both computed.
    fn select(cmp: Cmp, a: Self, b: Self, t: Self, e: Self) -> Self;
    /// The bits as an integer.
    fn bits(self) -> Self::Int;
}

/// A 32-bit integer, wrapping.
pub trait Int: Copy {
    /// The floats of the same machine.
    type Real: Real<Int = Self>;

    /// i + c
    fn plus(self, c: i32) -> Self;
    /// i - j
    fn minus(self, other: Self) -> Self;
    /// i with only the bits of `mask`
    fn and(self, mask: i32) -> Self;
    /// i shifted left, zeros in; `by` < 32
    fn left(self, by: u8) -> Self;
    /// i shifted right, copies of the sign in; `by` < 32
    fn right(self, by: u8) -> Self;
    /// The bits as a float.
    fn as_real(self) -> Self::Real;
    /// The value as a float.
    fn to_real(self) -> Self::Real;
}

impl Real for f32 {
    type Int = i32;

    #[inline(always)]
    fn constant(self, c: f32) -> f32 {
        c
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn floor(self) -> f32 {
        f32::floor(self)
    }

    #[inline(always)]
    fn nearest(self) -> f32 {
        self.round_ties_even()
    }

    #[inline(always)]
    fn min(self, other: f32) -> f32 {
        if self < other { self } else { other }
    }

    #[inline(always)]
    fn max(self, other: f32) -> f32 {
        if self > other { self } else { other }
    }

    #[inline(always)]
    fn select(cmp: Cmp, a: f32, b: f32, t: f32, e: f32) -> f32 {
        let holds = match cmp {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
        };
        if holds { t } else { e }
    }

    #[inline(always)]
    fn bits(self) -> i32 {
        self.to_bits() as i32
    }
}

impl Int for i32 {
    type Real = f32;

    #[inline(always)]
    fn plus(self, c: i32) -> i32 {
        self.wrapping_add(c)
    }

    #[inline(always)]
    fn minus(self, other: i32) -> i32 {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn and(self, mask: i32) -> i32 {
        self & mask
    }

    #[inline(always)]
    fn left(self, by: u8) -> i32 {
        self.wrapping_shl(by.into())
    }

    #[inline(always)]
    fn right(self, by: u8) -> i32 {
        self.wrapping_shr(by.into())
    }

    #[inline(always)]
    fn as_real(self) -> f32 {
        f32::from_bits(self as u32)
    }

    #[inline(always)]
    fn to_real(self) -> f32 {
        self as f32
    }
}
