//! What a task function is passed: one table of 8-byte slots.
//!
//! First one slot per array, in the program's order: the address of its first element. Then T and K + T as
//! 64-bit integers. Then the scalars of [`SCALARS`], each a float32 in the slot's low half.

use miras_kernel::{ArrayId, Scalar};

/// One entry of the table, in the machine's byte order.
pub type Slot = u64;

/// The scalars, in the order of their slots.
pub const SCALARS: [Scalar; 7] =
    [Scalar::Tokens, Scalar::Kept, Scalar::First, Scalar::Head, Scalar::Heads, Scalar::Layer, Scalar::Layers];

/// How many slots a program with so many arrays takes.
pub fn slots(arrays: usize) -> usize {
    arrays + 2 + SCALARS.len()
}

/// The slot of an array's address.
pub fn array(id: ArrayId) -> usize {
    id.0 as usize
}

/// The slot of T as an integer.
pub fn tokens(arrays: usize) -> usize {
    arrays
}

/// The slot of K + T as an integer.
pub fn past(arrays: usize) -> usize {
    arrays + 1
}

/// The slot of a scalar as a float32.
pub fn scalar(arrays: usize, scalar: Scalar) -> usize {
    let at = match scalar {
        Scalar::Tokens => 0,
        Scalar::Kept => 1,
        Scalar::First => 2,
        Scalar::Head => 3,
        Scalar::Heads => 4,
        Scalar::Layer => 5,
        Scalar::Layers => 6,
    };
    arrays + 2 + at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_lie_in_the_order_of_their_list() {
        for (at, &s) in SCALARS.iter().enumerate() {
            assert_eq!(scalar(3, s), 5 + at);
        }
        assert_eq!(slots(3), scalar(3, Scalar::Layers) + 1);
    }
}
