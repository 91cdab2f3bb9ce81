//! Intervals in which values lie: the side conditions of simplification read them.

use miras_base::scalar::{Fn1, Fn2, Interval, Monotone, row};
use miras_spec as spec;

/// All numbers between two ends, each counted in or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the lower end itself is out.
    pub low_open: bool,
    /// Whether the upper end itself is out.
    pub high_open: bool,
}

impl Bounds {
    /// All reals.
    pub const REALS: Bounds = Bounds::open(f64::NEG_INFINITY, f64::INFINITY);
    /// (0, inf).
    pub const POSITIVE: Bounds = Bounds::open(0.0, f64::INFINITY);
    /// [0, inf).
    pub const NOT_NEGATIVE: Bounds =
        Bounds { low: 0.0, high: f64::INFINITY, low_open: false, high_open: true };
    /// [0, 1].
    pub const UNIT: Bounds = Bounds { low: 0.0, high: 1.0, low_open: false, high_open: false };

    /// What a parameter's kind promises: [0, 1] for `unit`, [0, inf) for `positive`.
    pub fn of_kind(kind: spec::Kind) -> Bounds {
        match kind {
            spec::Kind::Real => Bounds::REALS,
            spec::Kind::Positive => Bounds::NOT_NEGATIVE,
            spec::Kind::Unit => Bounds::UNIT,
        }
    }

    /// Strictly between two ends.
    pub const fn open(low: f64, high: f64) -> Bounds {
        Bounds { low, high, low_open: true, high_open: true }
    }

    /// One number.
    pub const fn point(x: f64) -> Bounds {
        Bounds { low: x, high: x, low_open: false, high_open: false }
    }

    /// Whether all values are greater than 0.
    pub fn positive(&self) -> bool {
        self.low > 0.0 || (self.low == 0.0 && self.low_open)
    }

    /// Whether all values are less than 0.
    pub fn negative(&self) -> bool {
        self.neg().positive()
    }

    /// Whether no value is less than 0.
    pub fn not_negative(&self) -> bool {
        self.low >= 0.0
    }

    /// Whether no value is 0.
    pub fn nonzero(&self) -> bool {
        self.positive() || self.negative()
    }

    /// Whether every value lies strictly inside the interval.
    pub fn inside(&self, other: Interval) -> bool {
        let above =
            self.low > other.low || (self.low == other.low && (self.low_open || self.low.is_infinite()));
        let below = self.high < other.high
            || (self.high == other.high && (self.high_open || self.high.is_infinite()));
        above && below
    }

    /// The values that lie in both.
    pub fn meet(&self, other: Bounds) -> Bounds {
        let (low, low_open) = inner(self.low, self.low_open, other.low, other.low_open, |a, b| a > b);
        let (high, high_open) = inner(self.high, self.high_open, other.high, other.high_open, |a, b| a < b);
        Bounds { low, high, low_open, high_open }
    }

    /// The smallest interval that holds both.
    pub fn hull(&self, other: Bounds) -> Bounds {
        let (low, low_open) = outer(self.low, self.low_open, other.low, other.low_open, |a, b| a < b);
        let (high, high_open) = outer(self.high, self.high_open, other.high, other.high_open, |a, b| a > b);
        Bounds { low, high, low_open, high_open }
    }

    /// Values of -x.
    pub fn neg(&self) -> Bounds {
        Bounds { low: -self.high, high: -self.low, low_open: self.high_open, high_open: self.low_open }
    }

    /// Values of `f(x)`.
    pub fn fn1(&self, f: Fn1) -> Bounds {
        match f {
            Fn1::Neg => self.neg(),
            Fn1::Abs if self.not_negative() => *self,
            Fn1::Abs if self.high <= 0.0 => self.neg(),
            Fn1::Abs => Bounds { low: 0.0, low_open: false, ..self.hull(self.neg()) },
            Fn1::Sign if self.positive() => Bounds::point(1.0),
            Fn1::Sign if self.negative() => Bounds::point(-1.0),
            _ => self.through_row(f),
        }
    }

    /// Values of `f(x, y)`.
    pub fn fn2(&self, f: Fn2, other: Bounds) -> Bounds {
        match f {
            Fn2::Add => self.add(other),
            Fn2::Sub => self.add(other.neg()),
            Fn2::Mul => self.mul(other),
            Fn2::Div => self.mul(other.reciprocal()),
            Fn2::Pow => self.pow(other),
            Fn2::Min => self.neg().fn2(Fn2::Max, other.neg()).neg(),
            Fn2::Max => {
                let (low, low_open) = inner(self.low, self.low_open, other.low, other.low_open, |a, b| a > b);
                let (high, high_open) =
                    outer(self.high, self.high_open, other.high, other.high_open, |a, b| a > b);
                Bounds { low, high, low_open, high_open }
            }
        }
    }

    fn through_row(&self, f: Fn1) -> Bounds {
        let r = row(f);
        let closed = r.monotone == Monotone::Neither;
        let range = Bounds {
            low: r.range.low,
            high: r.range.high,
            low_open: !closed && self.inside(r.domain),
            high_open: !closed && self.inside(r.domain),
        };
        // Outside the domain the value is that at its end, which is then attained.
        let (below, above) = (self.low < r.domain.low, self.high > r.domain.high);
        let wholly = self.high <= r.domain.low || self.low >= r.domain.high;
        match r.monotone {
            Monotone::Increasing if wholly => range,
            Monotone::Increasing => range.meet(Bounds {
                low: at_end(self.low, r.domain.low, r.range.low, r.value),
                high: at_end(self.high, r.domain.high, r.range.high, r.value),
                low_open: self.low_open && !below,
                high_open: self.high_open && !above,
            }),
            Monotone::Decreasing | Monotone::Neither => range,
        }
    }

    fn add(&self, other: Bounds) -> Bounds {
        Bounds {
            low: self.low + other.low,
            high: self.high + other.high,
            low_open: self.low_open || other.low_open,
            high_open: self.high_open || other.high_open,
        }
    }

    fn mul(&self, other: Bounds) -> Bounds {
        if self.high <= 0.0 && self.low < 0.0 {
            return self.neg().mul(other).neg();
        }
        if other.high <= 0.0 && other.low < 0.0 {
            return self.mul(other.neg()).neg();
        }
        match (self.low >= 0.0, other.low >= 0.0) {
            (true, true) => Bounds {
                low: times(self.low, other.low),
                high: times(self.high, other.high),
                low_open: (self.low_open && (other.low_open || other.low > 0.0))
                    || (other.low_open && self.low > 0.0),
                high_open: !self.tops_at_zero()
                    && !other.tops_at_zero()
                    && (self.high_open || other.high_open),
            },
            _ => {
                let ends = [
                    times(self.low, other.low),
                    times(self.low, other.high),
                    times(self.high, other.low),
                    times(self.high, other.high),
                ];
                let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
                let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                Bounds { low, high, low_open: low.is_infinite(), high_open: high.is_infinite() }
            }
        }
    }

    /// Whether 0 is the largest value and attained.
    fn tops_at_zero(&self) -> bool {
        self.high == 0.0 && !self.high_open
    }

    /// Values of 1/x where x is not 0.
    fn reciprocal(&self) -> Bounds {
        if self.low >= 0.0 {
            let low = if self.high.is_infinite() { 0.0 } else { 1.0 / self.high };
            let high = if self.low == 0.0 { f64::INFINITY } else { 1.0 / self.low };
            return Bounds {
                low,
                high,
                low_open: self.high_open || self.high.is_infinite(),
                high_open: self.low_open || self.low == 0.0,
            };
        }
        if self.high <= 0.0 { self.neg().reciprocal().neg() } else { Bounds::REALS }
    }

    fn pow(&self, exponent: Bounds) -> Bounds {
        if exponent.low == exponent.high {
            return self.power(exponent.low);
        }
        if self.low >= 1.0 && exponent.not_negative() {
            return Bounds { low: 1.0, high: f64::INFINITY, low_open: false, high_open: true };
        }
        match (self.positive(), self.not_negative()) {
            (true, _) => Bounds::POSITIVE,
            (false, true) => Bounds::NOT_NEGATIVE,
            (false, false) => Bounds::REALS,
        }
    }

    /// Values of x^n for a number n.
    fn power(&self, n: f64) -> Bounds {
        let even = n % 2.0 == 0.0;
        if n == 0.0 {
            return Bounds::point(1.0);
        }
        if !self.not_negative() && !even {
            // Odd powers keep the order; a broken power of a negative number is 0.
            return if n > 0.0 && n == n.trunc() { self.ends(|x| x.powf(n)) } else { Bounds::REALS };
        }
        let size = self.fn1(Fn1::Abs);
        if n > 0.0 {
            return size.ends(|x| x.powf(n));
        }
        let small = Bounds {
            low: size.high.powf(n),
            high: size.low.powf(n),
            low_open: size.high_open,
            high_open: size.low_open || size.low == 0.0,
        };
        // 0^n is 0 for a negative n.
        if size.nonzero() { small } else { small.hull(Bounds::point(0.0)) }
    }

    fn ends(&self, f: impl Fn(f64) -> f64) -> Bounds {
        Bounds { low: f(self.low), high: f(self.high), ..*self }
    }
}

impl From<Interval> for Bounds {
    fn from(i: Interval) -> Bounds {
        Bounds::open(i.low, i.high)
    }
}

/// The value at an end: the range's own end where the domain ends there.
fn at_end(x: f64, domain_end: f64, range_end: f64, value: fn(f64) -> f64) -> f64 {
    if x == domain_end || x.is_infinite() { range_end } else { value(x) }
}

/// 0 times infinity is 0: the end is attained by the factor that is exactly 0.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

fn inner(a: f64, a_open: bool, b: f64, b_open: bool, tighter: fn(f64, f64) -> bool) -> (f64, bool) {
    if a == b {
        (a, a_open || b_open)
    } else if tighter(a, b) {
        (a, a_open)
    } else {
        (b, b_open)
    }
}

fn outer(a: f64, a_open: bool, b: f64, b_open: bool, wider: fn(f64, f64) -> bool) -> (f64, bool) {
    if a == b {
        (a, a_open && b_open)
    } else if wider(a, b) {
        (a, a_open)
    } else {
        (b, b_open)
    }
}
