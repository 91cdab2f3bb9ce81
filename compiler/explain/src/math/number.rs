//! Numbers as people write them.

use super::Math;
use miras_base::scalar::Fn1;
use std::f64::consts::PI;

/// The formula of a number: itself where it is short, else a fraction, root or multiple of pi that equals it
/// to the last bits of a float64, else all its digits.
pub(super) fn form(x: f64) -> Math {
    if x.is_sign_negative() && x != 0.0 {
        return Math::Neg(Box::new(form(-x)));
    }
    if short(x) {
        return Math::Number(x);
    }
    let known = [fraction(x), root(x), of_pi(x), root_of_pi(x)];
    known.into_iter().flatten().next().unwrap_or(Math::Number(x))
}

/// Whether a number reads well in decimals.
fn short(x: f64) -> bool {
    !x.is_finite() || format!("{x:e}").split('e').next().is_none_or(|digits| digits.len() <= 7)
}

/// Whether two numbers differ by at most one or two units in the last place.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= f64::EPSILON * b.abs()
}

fn ratio(p: u32, q: u32) -> Math {
    let p = Math::Number(p.into());
    if q == 1 { p } else { over(p, Math::Number(q.into())) }
}

fn over(a: Math, b: Math) -> Math {
    Math::Fraction(Box::new(a), Box::new(b))
}

fn sqrt(a: Math) -> Math {
    Math::Function(Fn1::Sqrt, Box::new(a))
}

/// Small p / q that equals a number but for a few roundings; whoever asks checks what is made of it.
fn parts(x: f64) -> Option<(u32, u32)> {
    (1..=64u32).find_map(|q| {
        let p = (x * f64::from(q)).round();
        let near = (p / f64::from(q) - x).abs() <= 8.0 * f64::EPSILON * x;
        ((1.0..=256.0).contains(&p) && near).then_some((p as u32, q))
    })
}

fn fraction(x: f64) -> Option<Math> {
    parts(x).filter(|(p, q)| close(f64::from(*p) / f64::from(*q), x)).map(|(p, q)| ratio(p, q))
}

fn root(x: f64) -> Option<Math> {
    let (p, q) = parts(x * x).filter(|(p, q)| close((f64::from(*p) / f64::from(*q)).sqrt(), x))?;
    Some(match p {
        1 => over(Math::Number(1.0), sqrt(Math::Number(q.into()))),
        p => sqrt(ratio(p, q)),
    })
}

fn pi() -> Math {
    super::named("pi")
}

fn of_pi(x: f64) -> Option<Math> {
    if let Some((p, q)) = parts(x / PI).filter(|(p, q)| close(f64::from(*p) * PI / f64::from(*q), x)) {
        let top = super::scaled(Math::Number(p.into()), pi());
        return Some(if q == 1 { top } else { over(top, Math::Number(q.into())) });
    }
    let (p, q) = parts(x * PI).filter(|(p, q)| close(f64::from(*p) / (f64::from(*q) * PI), x))?;
    Some(over(Math::Number(p.into()), super::scaled(Math::Number(q.into()), pi())))
}

fn root_of_pi(x: f64) -> Option<Math> {
    let (p, q) =
        parts(x * x * PI).filter(|(p, q)| close((f64::from(*p) / (f64::from(*q) * PI)).sqrt(), x))?;
    let below = super::scaled(Math::Number(q.into()), pi());
    Some(match p {
        1 => over(Math::Number(1.0), sqrt(below)),
        p => sqrt(over(Math::Number(p.into()), below)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_by_what_they_are() {
        let text = |x: f64| form(x).text();
        assert_eq!(text(0.5), "0.5");
        assert_eq!(text(1e-6), "1e-6");
        assert_eq!(text(0.1), "0.1");
        assert_eq!(text(1.0 / 3.0), "1 / 3");
        assert_eq!(text(std::f64::consts::FRAC_1_SQRT_2), "1 / sqrt(2)");
        assert_eq!(text(1.0 / 2f64.sqrt()), "1 / sqrt(2)");
        assert_eq!(text(-1.0 / (2.0 * PI).sqrt()), "-1 / sqrt(2 * pi)");
        assert_eq!(text((2.0 / PI).sqrt()), "sqrt(2 / pi)");
        assert_eq!(text(2.0 / PI), "2 / pi");
        assert_eq!(text(PI), "pi");
        assert_eq!(text(0.123_456_789_012_3), "0.1234567890123");
    }

    #[test]
    fn a_number_that_is_only_near_a_fraction_keeps_its_digits() {
        assert_eq!(form(0.333_333_333_3).text(), "0.3333333333");
        assert_eq!(form(0.666_666_667).text(), "0.666666667");
    }
}
