//! Lanes that share a long sum: where points are few and each has a long reduction, several lanes take a part of it
//! each, and one adds the parts up in order, in workgroup memory.

use crate::LANES;
use miras_kernel::{Axis, Nest, Product, Reduction};

/// Sums shorter than this are not shared: waiting for one another costs more.
const LONG: usize = 32;

/// How many lanes share each sum, a power of two; 1 where sums are not shared. With n of them a sum of r numbers takes
/// r / n + n turns, which is least at the root of r.
pub(crate) fn share(points: usize, turns: usize) -> usize {
    if turns < LONG {
        return 1;
    }
    let fits = |n: &usize| points.saturating_mul(*n) <= LANES as usize && n * n <= turns;
    (0..8).map(|power| 1 << power).take_while(fits).last().unwrap_or(1)
}

/// How many lanes share the sums of a nest.
pub(crate) fn of_nest(nest: &Nest) -> usize {
    let longest = nest.reductions.iter().map(|r| extent(&r.loops)).max();
    share(extent(&nest.loops), longest.unwrap_or(0))
}

/// How many lanes share the sums of a product.
pub(crate) fn of_product(p: &Product) -> usize {
    share(p.m.saturating_mul(p.n), p.k)
}

/// Turns of one lane's part of a sum, and of adding the parts up.
pub(crate) fn turns(reduction: &Reduction, lanes: usize) -> u64 {
    (extent(&reduction.loops).div_ceil(lanes) + lanes) as u64
}

pub(crate) fn extent(axes: &[Axis]) -> usize {
    axes.iter().fold(1, |n, a| n.saturating_mul(a.extent))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn lanes_share_what_is_long_where_there_are_lanes_to_spare() {
        assert_eq!([share(1, 31), share(1, 32), share(1, 64), share(1, 4096)], [1, 4, 8, 64]);
        assert_eq!([share(64, 256), share(128, 256), share(129, 256), share(1, 1 << 20)], [4, 2, 1, 128]);
        assert!((1..300).all(|points| points * share(points, 1000) <= 256 || share(points, 1000) == 1));
    }
}
