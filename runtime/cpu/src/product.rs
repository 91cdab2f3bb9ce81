//! Matrix products for compiled code.
#![allow(unsafe_code)]

use gemm::Parallelism;

/// `c = beta * c + alpha * a @ b`; `shape` points to m, n, k and the row and column strides of a, b and c.
/// With beta = 0, c is not read. One thread, so the order of sums depends on the shape alone.
///
/// # Safety
/// Called by compiled code of a verified program only: `shape` points to nine numbers, the three matrices
/// lie inside live arrays, and c meets neither a nor b.
pub(crate) unsafe extern "C" fn product(
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    shape: *const usize,
    alpha: f32,
    beta: f32,
) {
    // SAFETY: nine numbers, as promised.
    let [m, n, k, a_row, a_col, b_row, b_col, c_row, c_col] = unsafe { *shape.cast::<[usize; 9]>() };
    // Strides are within arrays of at most 2^31 elements, or belong to axes of one element.
    let stride = |s: usize| s as isize;
    // SAFETY: as promised, for every i < m, j < n, l < k.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c,
            stride(c_col),
            stride(c_row),
            beta != 0.0,
            a,
            stride(a_col),
            stride(a_row),
            b,
            stride(b_col),
            stride(b_row),
            beta,
            alpha,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
