//! What emitted code calls; the runtime provides these.

use miras_base::scalar::Fn1;

/// `extern "C" fn(src: *const f32, dst: *mut f32, n: usize)`: `dst[i] = f(src[i])`, where dst is src or
/// disjoint from it.
pub fn slice(f: Fn1) -> String {
    format!("miras_slice_{}", f.name())
}

/// `extern "C" fn(a, b: *const f32, c: *mut f32, shape: *const usize, alpha: f32, beta: f32)`:
/// `c = beta * c + alpha * a @ b`. The ten numbers at `shape` are m, n, k, then row and column stride of a,
/// of b and of c, in elements, then 1 where a is lower triangular, else 0. With beta = 0, c is not read.
pub const PRODUCT: &str = "miras_product";
