//! Matrix products for compiled code: small, unpacked, in a fixed order.
//!
//! Each element of c is one sum over l = 0, 1, ... by fused multiply-adds, in slabs of [`SLAB`] terms that are then
//! added up, whatever m and n are and wherever it lies; so its bits depend on its row of a and its column of b alone.
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
    if n > 1 && (b_col != 1 || c_col != 1) {
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
    let turned = job.m * (job.k + 2 * job.n) < job.n * job.k;
    ROOM.with_borrow_mut(|[columns, result]| {
        if b_col != 1 && turned && !job.triangular {
            // Few rows: c^T = b^T @ a^T copies a and c in place of b. The sums are the same.
            columns.resize(columns.len().max(job.k * job.m), 0.0);
            // SAFETY: element (l, i) of a^T for l < k, i < m.
            unsafe { side_by_side(job.a, [job.a_col, job.a_row], [job.k, job.m], columns) };
            let inner = Job {
                m: job.n,
                n: job.m,
                a: job.b,
                a_row: b_col,
                a_col: job.b_row,
                b: columns.as_ptr(),
                b_row: job.m,
                ..job
            };
            // SAFETY: c^T has the elements of c.
            unsafe { into(inner, [c_col, job.c_row], job.c, result) };
            return;
        }
        let mut inner = job;
        if b_col != 1 {
            columns.resize(columns.len().max(job.k * job.n), 0.0);
            // SAFETY: element (l, j) of b for l < k, j < n.
            unsafe { side_by_side(job.b, [job.b_row, b_col], [job.k, job.n], columns) };
            (inner.b, inner.b_row) = (columns.as_ptr(), job.n);
        }
        if c_col == 1 {
            Arch::new().dispatch(inner);
        } else {
            // SAFETY: as promised.
            unsafe { into(inner, [job.c_row, c_col], job.c, result) };
        }
    });
}

/// Runs a job whose result lies with these strides, by way of one whose columns lie side by side.
///
/// # Safety
/// The job's a and b, and `c` for m rows and n columns by the strides, keep the invariant of [`product`].
unsafe fn into(mut job: Job, [row, col]: [usize; 2], c: *mut f32, result: &mut Vec<f32>) {
    result.resize(result.len().max(job.m * job.n), 0.0);
    if job.beta != 0.0 {
        // SAFETY: as promised; beta is not 0, so c holds numbers.
        unsafe { side_by_side(c, [row, col], [job.m, job.n], result) };
    }
    (job.c, job.c_row) = (result.as_mut_ptr(), job.n);
    Arch::new().dispatch(job);
    for i in 0..job.m {
        for j in 0..job.n {
            // SAFETY: as promised.
            unsafe { *c.add(i * row + j * col) = result[i * job.n + j] };
        }
    }
}

/// A matrix row by row, copied in squares so that both sides stay in cache.
///
/// # Safety
/// `from` is valid for every element of so many rows and columns with these strides.
unsafe fn side_by_side(from: *const f32, strides: [usize; 2], [rows, cols]: [usize; 2], to: &mut [f32]) {
    const SIDE: usize = 16;
    for j0 in (0..cols).step_by(SIDE) {
        for i0 in (0..rows).step_by(SIDE) {
            for i in i0..(i0 + SIDE).min(rows) {
                let row = &mut to[i * cols + j0..i * cols + (j0 + SIDE).min(cols)];
                for (j, to) in row.iter_mut().enumerate() {
                    // SAFETY: as promised.
                    *to = unsafe { *from.add(i * strides[0] + (j0 + j) * strides[1]) };
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

/// Terms that are summed up before they are added to a total. A sum of many like terms rounds each time by the size of
/// what has come together so far; in slabs that is the size of a few.
const SLAB: usize = 16;

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
        // Eight rows are two fours: the sums of two rows are too few to hide how long a multiplication takes.
        while i + ROWS <= job.m && i + 8 != job.m {
            tile::<S, ROWS, V>(simd, job, i, j, width);
            i += ROWS;
        }
        while i + 4 <= job.m {
            tile::<S, 4, V>(simd, job, i, j, width);
            i += 4;
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
    let mut totals = [[simd.splat_f32s(0.0); V]; R];
    // SAFETY: rows, columns and l lie inside the matrices, as promised.
    unsafe {
        let a = job.a.add(i * job.a_row);
        let b = job.b.add(j);
        // Terms of every row of the tile, and of some.
        let (all, some) = match job.triangular {
            true => ((i + 1).min(job.k), (i + R).min(job.k)),
            false => (job.k, job.k),
        };
        for start in (0..some).step_by(SLAB) {
            let end = (start + SLAB).min(some);
            let mut sums = [[simd.splat_f32s(0.0); V]; R];
            for l in start..end.min(all) {
                let row = load::<S, V>(simd, b.add(l * job.b_row), width);
                terms(simd, &mut sums, a.add(l * job.a_col), job.a_row, row, 0);
            }
            for l in start.max(all)..end {
                let row = load::<S, V>(simd, b.add(l * job.b_row), width);
                terms(simd, &mut sums, a.add(l * job.a_col), job.a_row, row, l - i);
            }
            for (totals, sums) in totals.iter_mut().zip(sums) {
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total = simd.add_f32s(*total, sum);
                }
            }
        }
        let (alpha, beta) = (simd.splat_f32s(job.alpha), simd.splat_f32s(job.beta));
        for (r, totals) in totals.iter().enumerate() {
            let c = job.c.add((i + r) * job.c_row + j);
            for (v, sum) in totals.iter().enumerate() {
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

/// Adds one term to the sums of the rows from `first` on: elements of a column of a, times a row of b.
///
/// # Safety
/// `a` is valid for a number at every row, so far apart.
#[inline(always)]
unsafe fn terms<S: Simd, const R: usize, const V: usize>(
    simd: S,
    sums: &mut [[S::f32s; V]; R],
    a: *const f32,
    apart: usize,
    row: [S::f32s; V],
    first: usize,
) {
    for (r, sums) in sums.iter_mut().enumerate() {
        // No loop from `first`: a row's place is then known and its sums stay in registers.
        if r < first {
            continue;
        }
        // SAFETY: as promised.
        let x = simd.splat_f32s(unsafe { *a.add(r * apart) });
        for (sum, column) in sums.iter_mut().zip(row) {
            *sum = simd.mul_add_f32s(x, column, *sum);
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
