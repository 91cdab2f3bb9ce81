//! Points at which terms are looked at: a fixed sequence of numbers.

use super::bounds::Bounds;

/// A fixed sequence of numbers in [0, 1): a linear congruence (Knuth's MMIX).
pub(crate) struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number within bounds: evenly between finite ends, at all scales from 1/50 to 7 beyond one.
    pub fn scattered(&mut self, b: Bounds) -> f64 {
        let size = (self.next() * 6.0 - 4.0).exp();
        match (b.low.is_finite(), b.high.is_finite()) {
            (true, true) => b.low + (b.high - b.low) * (1e-9 + (1.0 - 2e-9) * self.next()),
            (true, false) => b.low + size,
            (false, true) => b.high - size,
            (false, false) if self.next() < 0.5 => -size,
            (false, false) => size,
        }
    }
}

#[cfg(test)]
impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }

    /// A number strictly within bounds, of moderate size.
    pub fn within(&mut self, b: Bounds) -> f64 {
        let (low, high) = (b.low.max(-2.5), b.high.min(2.5));
        low + (high - low) * (0.02 + 0.96 * self.next())
    }
}
