//! Witnesses of identities and of inverses by several occurrences.

use super::super::{IDENTITIES, INVERSES};
use super::{close, inside};

/// Every combination of a thinned grid of points in each interval, moderate so that both sides are computed
/// without loss.
fn grid(condition: &[super::super::Interval]) -> Vec<Vec<f64>> {
    let thin = 1 + 3 * (condition.len() - 1);
    condition.iter().fold(vec![vec![]], |rows, i| {
        let xs = inside(*i).into_iter().step_by(thin).filter(|x| x.abs() < 6.0);
        let xs: Vec<f64> = xs.collect();
        rows.iter().flat_map(|r| xs.iter().map(move |x| [r.as_slice(), &[*x]].concat())).collect()
    })
}

#[test]
fn identities_hold() {
    for i in IDENTITIES {
        let (left, right) = ((i.left)(), (i.right)());
        let mut seen = 0;
        for at in grid(i.condition) {
            let (l, r) = (left.eval(&at), right.eval(&at));
            // Beyond this both sides are too large or too small to be compared without loss.
            if l.abs() > 1e12 || (l != 0.0 && l.abs() < 1e-12) {
                continue;
            }
            seen += 1;
            close(i.name, &at, l, r, 1e-9 * (r.abs() + 1.0));
        }
        assert!(seen >= 25, "{} was tried at {seen} points only", i.name);
    }
}

#[test]
fn inverses_undo_and_are_undone() {
    for i in INVERSES {
        let (forward, inverse) = ((i.forward)(), (i.inverse)());
        let parameters = i.parameter.map_or(vec![0.0], inside);
        let moderate = |p: &f64| i.parameter.is_none_or(|d| (0.2..4.0).contains(&(p - d.low)));
        for p in parameters.into_iter().filter(moderate) {
            for x in inside(i.domain).into_iter().filter(|x| x.abs() < 6.0) {
                let y = forward.eval(&[x, p]);
                if y > i.range.low && y < i.range.high {
                    close(i.name, &[x, p], inverse.eval(&[y, p]), x, 1e-9 * (1.0 + x.abs()));
                }
            }
            for y in inside(i.range).into_iter().filter(|y| y.abs() < 6.0) {
                let x = inverse.eval(&[y, p]);
                assert!(x >= i.domain.low && x <= i.domain.high, "{} leaves at {y}", i.name);
                close(i.name, &[y, p], forward.eval(&[x, p]), y, 1e-9 * (1.0 + y.abs()));
            }
        }
    }
}

#[test]
fn names_are_unique() {
    let names: Vec<_> = IDENTITIES.iter().map(|i| i.name).chain(INVERSES.iter().map(|i| i.name)).collect();
    for n in &names {
        assert_eq!(names.iter().filter(|o| *o == n).count(), 1, "{n}");
    }
}
