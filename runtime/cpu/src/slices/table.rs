//! One C function per row, with the symbol name compiled code calls it by.

use super::sweep::{Row, map, power};
use miras_base::scalar::Fn1;

/// `(src, dst, n)`: `dst[i] = f(src[i])`. See the module's invariant.
pub type Function = unsafe extern "C" fn(*const f32, *mut f32, usize);

/// `(a, b, dst, n)`: `dst[i] = f(a[i], b[i])`. See the module's invariant.
pub type Pair = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize);

/// The symbol and the code of [`pair`]: `a[i] ^ b[i]`.
pub const POWER: (&str, Pair) = ("miras_slice_pow", pair);

/// Every function of one argument in the order of [`Fn1`], with its symbol.
pub fn table() -> &'static [(Fn1, &'static str, Function)] {
    TABLE
}

/// The code of one function.
pub fn slice(f: Fn1) -> Function {
    TABLE[f as usize].2
}

/// `dst[i] = base[i] ^ exponent[i]` for i < n.
///
/// # Safety
/// The module's invariant: both sources are valid for reading and `dst` for writing `n` numbers, and `dst`
/// equals a source or is disjoint from it.
pub unsafe extern "C" fn pair(base: *const f32, exponent: *const f32, dst: *mut f32, n: usize) {
    // SAFETY: the same promise.
    unsafe { power(base, exponent, dst, n) }
}

/// Declares each row's type and C function, and the table of them.
macro_rules! rows {
    ($($row:ident $symbol:literal)*) => {
        $(
            struct $row;

            impl Row for $row {
                const FUNCTION: Fn1 = Fn1::$row;
            }
        )*

        static TABLE: &[(Fn1, &str, Function)] =
            &[$((Fn1::$row, concat!("miras_slice_", $symbol), over::<$row>)),*];
    };
}

/// # Safety
/// The module's invariant.
unsafe extern "C" fn over<F: Row>(src: *const f32, dst: *mut f32, n: usize) {
    // SAFETY: the same promise.
    unsafe { map::<F>(src, dst, n) }
}

rows! {
    Neg "neg"
    Exp "exp"
    Expm1 "expm1"
    Log "log"
    Log1p "log1p"
    Sqrt "sqrt"
    Abs "abs"
    Sign "sign"
    Tanh "tanh"
    Atanh "atanh"
    Sigmoid "sigmoid"
    Logit "logit"
    Softplus "softplus"
    Gelu "gelu"
    GeluTanh "gelu_tanh"
    Silu "silu"
    Relu "relu"
    Erf "erf"
    Sin "sin"
    Cos "cos"
    Tan "tan"
    Sinh "sinh"
    Cosh "cosh"
    Asinh "asinh"
    Atan "atan"
}
