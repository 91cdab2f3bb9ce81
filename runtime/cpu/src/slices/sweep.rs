//! The loops. A destination may be a source, so each case has its own loop over slices that the compiler
//! knows to be separate; only then does it vectorise them without loss.

use miras_base::scalar::{Fn1, single};
use pulp::{Arch, Simd, WithSimd};
use std::marker::PhantomData;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// A row of the table as a type, so that each loop is compiled for its function.
pub(super) trait Row {
    const FUNCTION: Fn1;
}

/// `dst[i] = F(src[i])` for i < n.
///
/// # Safety
/// The invariant of the module: `src` is valid for reading and `dst` for writing `n` numbers, and they are
/// equal or disjoint.
#[inline(always)]
pub(super) unsafe fn map<F: Row>(src: *const f32, dst: *mut f32, n: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: as promised; the only slice over `src` where they are equal.
    let to = unsafe { from_raw_parts_mut(dst, n) };
    if std::ptr::eq(src, dst) {
        Arch::new().dispatch(InPlace::<F> { numbers: to, row: PhantomData });
    } else {
        // SAFETY: as promised; disjoint from `to`.
        let from = unsafe { from_raw_parts(src, n) };
        Arch::new().dispatch(Map::<F> { from, to, row: PhantomData });
    }
}

/// `dst[i] = base[i] ^ exponent[i]` for i < n.
///
/// # Safety
/// The invariant of the module, for both sources.
#[inline(always)]
pub(super) unsafe fn power(base: *const f32, exponent: *const f32, dst: *mut f32, n: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: as promised; no slice is made over a source that equals `dst`.
    let to = unsafe { from_raw_parts_mut(dst, n) };
    // SAFETY: as promised; disjoint from `to`, since a source that equals `dst` is left out.
    let slice = |p: *const f32| (!std::ptr::eq(p, dst)).then(|| unsafe { from_raw_parts(p, n) });
    Arch::new().dispatch(Power { base: slice(base), exponent: slice(exponent), to });
}

struct Map<'a, F> {
    from: &'a [f32],
    to: &'a mut [f32],
    row: PhantomData<F>,
}

struct InPlace<'a, F> {
    numbers: &'a mut [f32],
    row: PhantomData<F>,
}

/// Operands that are `None` are the destination itself.
struct Power<'a> {
    base: Option<&'a [f32]>,
    exponent: Option<&'a [f32]>,
    to: &'a mut [f32],
}

// Only what is inlined is compiled for the chosen instruction set: no closures below.

impl<F: Row> WithSimd for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = single::value(F::FUNCTION, *from);
        }
    }
}

impl<F: Row> WithSimd for InPlace<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for x in self.numbers {
            *x = single::value(F::FUNCTION, *x);
        }
    }
}

impl WithSimd for Power<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match (self.base, self.exponent) {
            (Some(base), Some(exponent)) => {
                for ((to, a), b) in self.to.iter_mut().zip(base).zip(exponent) {
                    *to = single::power(*a, *b);
                }
            }
            (None, Some(exponent)) => {
                for (to, b) in self.to.iter_mut().zip(exponent) {
                    *to = single::power(*to, *b);
                }
            }
            (Some(base), None) => {
                for (to, a) in self.to.iter_mut().zip(base) {
                    *to = single::power(*a, *to);
                }
            }
            (None, None) => {
                for to in self.to {
                    *to = single::power(*to, *to);
                }
            }
        }
    }
}
