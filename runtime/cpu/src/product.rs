//! Matrix products for compiled code: small, unpacked, in a fixed order.
//!
//! Each element of c is one sum over l = 0, 1, ... by fused multiply-adds, whatever m and n are and wherever it
//! lies; so its bits depend on its row of a and its column of b alone.
#![allow(unsafe_code)]

use pulp::{Arch, Simd, WithSimd};
use std::cell::RefCell;

/// `c = beta * c + alpha * a @ b`; `shape` points to m, n, k, the row and column strides of a, b and c, and whether
/// a is lower triangular (1) or full (0). With beta = 0, c is not read.
///
/// # Safety
/// Called by compiled code of a verified program only: `shape` points to ten numbers, the three matrices
/// lie inside live arrays, and c meets neither a nor b.
pub(crate) unsafe extern "C" fn product(
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    shape: *const usize,
    alpha: f32,
    beta: f32,
) {
    // SAFETY: ten numbers, as promised.
    let [m, n, k, a_row, a_col, b_row, b_col, c_row, c_col, triangular] =
        unsafe { *shape.cast::<[usize; 10]>() };
    let job = Job { m, n, k, a, a_row, a_col, b, b_row, c, c_row, alpha, beta, triangular: triangular != 0 };
    if (b_col != 1 && n > 1) || (c_col != 1 && n > 1) {
        // SAFETY: as promised.
        unsafe { packed(job, b_col, c_col) }
    } else {
        Arch::new().dispatch(job);
    }
}

thread_local! {
    /// Columns of b side by side, and a result that does not lie so.
    static ROOM: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// The product by way of copies in which columns lie side by side.
///
/// # Safety
/// The invariant of [`product`].
unsafe fn packed(job: Job, b_col: usize, c_col: usize) {
    ROOM.with_borrow_mut(|[columns, result]| {
        let mut inner = job;
        if b_col != 1 {
            columns.resize(columns.len().max(job.k * job.n), 0.0);
            // SAFETY: element (l, j) of b for l < k, j < n.
            unsafe { transpose(&job, b_col, columns) };
            (inner.b, inner.b_row) = (columns.as_ptr(), job.n);
        }
        if c_col == 1 {
            Arch::new().dispatch(inner);
            return;
        }
        result.resize(result.len().max(job.m * job.n), 0.0);
        (inner.c, inner.c_row) = (result.as_mut_ptr(), job.n);
        let at = |i: usize, j: usize| i * job.c_row + j * c_col;
        for (i, j) in (0..job.m).flat_map(|i| (0..job.n).map(move |j| (i, j))) {
            // SAFETY: element (i, j) of c; where beta is 0 it may hold nothing, and 0 is as good.
            result[i * job.n + j] = if job.beta == 0.0 { 0.0 } else { unsafe { *job.c.add(at(i, j)) } };
        }
        Arch::new().dispatch(inner);
        for (i, j) in (0..job.m).flat_map(|i| (0..job.n).map(move |j| (i, j))) {
            // SAFETY: element (i, j) of c.
            unsafe { *job.c.add(at(i, j)) = result[i * job.n + j] };
        }
    });
}

/// b row by row, in squares so that both sides stay in cache.
///
/// # Safety
/// `job.b` is valid for element (l, j), l < k and j < n.
unsafe fn transpose(job: &Job, b_col: usize, to: &mut [f32]) {
    const SIDE: usize = 16;
    for j0 in (0..job.n).step_by(SIDE) {
        for l0 in (0..job.k).step_by(SIDE) {
            for l in l0..(l0 + SIDE).min(job.k) {
                for j in j0..(j0 + SIDE).min(job.n) {
                    // SAFETY: as promised.
                    to[l * job.n + j] = unsafe { *job.b.add(l * job.b_row + j * b_col) };
                }
            }
        }
    }
}

/// A product whose b and c have neighbouring columns side by side.
#[derive(Clone, Copy)]
struct Job {
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    a_row: usize,
    a_col: usize,
    b: *const f32,
    b_row: usize,
    c: *mut f32,
    c_row: usize,
    alpha: f32,
    beta: f32,
    triangular: bool,
}

/// Rows of a tile: with two vectors of columns its sums fit the registers of every instruction set.
const ROWS: usize = 6;

impl WithSimd for Job {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = S::F32_LANES;
        let mut j = 0;
        // SAFETY: as promised to `product`: columns j to j + width are columns of b and c.
        unsafe {
            while j + 2 * lanes <= self.n {
                panel::<S, 2>(simd, &self, j, 2 * lanes);
                j += 2 * lanes;
            }
            while j < self.n {
                let width = lanes.min(self.n - j);
                panel::<S, 1>(simd, &self, j, width);
                j += width;
            }
        }
    }
}

/// All rows of `width` columns from `j`: V whole vectors, or one that is not whole.
///
/// # Safety
/// Those are columns of the job, whose pointers keep the invariant of [`product`].
#[inline(always)]
unsafe fn panel<S: Simd, const V: usize>(simd: S, job: &Job, j: usize, width: usize) {
    let mut i = 0;
    // SAFETY: rows i to i + R are rows of the job.
    unsafe {
        while i + ROWS <= job.m {
            tile::<S, ROWS, V>(simd, job, i, j, width);
            i += ROWS;
        }
        while i + 2 <= job.m {
            tile::<S, 2, V>(simd, job, i, j, width);
            i += 2;
        }
        if i < job.m {
            tile::<S, 1, V>(simd, job, i, j, width);
        }
    }
}

/// R rows from `i` of a panel.
///
/// # Safety
/// As for [`panel`]; rows i to i + R are rows of the job.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    job: &Job,
    i: usize,
    j: usize,
    width: usize,
) {
    let lanes = S::F32_LANES;
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    // SAFETY: rows, columns and l lie inside the matrices, as promised.
    unsafe {
        let a = job.a.add(i * job.a_row);
        let b = job.b.add(j);
        let all = if job.triangular { (i + 1).min(job.k) } else { job.k };
        for l in 0..all {
            let row = load::<S, V>(simd, b.add(l * job.b_row), width);
            for r in 0..R {
                let x = simd.splat_f32s(*a.add(r * job.a_row + l * job.a_col));
                for v in 0..V {
                    sums[r][v] = simd.mul_add_f32s(x, row[v], sums[r][v]);
                }
            }
        }
        if job.triangular {
            for l in all..(i + R).min(job.k) {
                let row = load::<S, V>(simd, b.add(l * job.b_row), width);
                for r in (l - i)..R {
                    let x = simd.splat_f32s(*a.add(r * job.a_row + l * job.a_col));
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_f32s(x, row[v], sums[r][v]);
                    }
                }
            }
        }
        let (alpha, beta) = (simd.splat_f32s(job.alpha), simd.splat_f32s(job.beta));
        for (r, sums) in sums.iter().enumerate() {
            let c = job.c.add((i + r) * job.c_row + j);
            for (v, sum) in sums.iter().enumerate() {
                let mut value = if job.alpha == 1.0 { *sum } else { simd.mul_f32s(alpha, *sum) };
                let part = lanes.min(width - v * lanes);
                if job.beta != 0.0 {
                    let before = simd.partial_load_f32s(std::slice::from_raw_parts(c.add(v * lanes), part));
                    value = simd.mul_add_f32s(beta, before, value);
                }
                simd.partial_store_f32s(std::slice::from_raw_parts_mut(c.add(v * lanes), part), value);
            }
        }
    }
}

/// V vectors, or the beginning of one.
///
/// # Safety
/// `from` is valid for `width` numbers.
#[inline(always)]
unsafe fn load<S: Simd, const V: usize>(simd: S, from: *const f32, width: usize) -> [S::f32s; V] {
    let lanes = S::F32_LANES;
    let mut row = [simd.splat_f32s(0.0); V];
    for (v, vector) in row.iter_mut().enumerate() {
        // SAFETY: as promised.
        let numbers =
            unsafe { std::slice::from_raw_parts(from.add(v * lanes), lanes.min(width - v * lanes)) };
        *vector = if numbers.len() == lanes {
            // SAFETY: so many numbers are there; a vector of floats has no invalid bits.
            unsafe { numbers.as_ptr().cast::<S::f32s>().read_unaligned() }
        } else {
            simd.partial_load_f32s(numbers)
        };
    }
    row
}

#[cfg(test)]
mod witness;
