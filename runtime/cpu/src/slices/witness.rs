//! Witnesses: the slices give the bits of the recorded programs, wherever a number lies and however long the
//! slice is, in place too, and touch nothing else.

use super::{POWER, slice, table};
use miras_base::scalar::{Fn2, ROWS, single};

/// Numbers of all magnitudes and a dense range, at an odd length.
fn numbers() -> Vec<f32> {
    let all = (0..=u32::MAX).step_by(2_000_003).map(f32::from_bits).filter(|x| x.is_finite());
    all.chain((-700..700).map(|i| i as f32 * 0.0173)).collect()
}

fn bits(xs: &[f32]) -> Vec<u32> {
    xs.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn the_table_is_the_rows() {
    assert_eq!(table().len(), ROWS.len());
    for (r, (f, symbol, code)) in ROWS.iter().zip(table()) {
        assert_eq!(r.function, *f);
        assert_eq!(*symbol, format!("miras_slice_{}", r.name));
        assert!(std::ptr::fn_addr_eq(slice(*f), *code));
    }
    assert!(table().iter().all(|(_, symbol, _)| *symbol != POWER.0));
}

#[test]
fn slices_give_the_bits_of_the_recorded_programs() {
    let xs = numbers();
    for (f, symbol, code) in table() {
        let program = single::single(*f);
        let want: Vec<f32> = xs.iter().map(|x| program.eval(&[*x])).collect();
        let mut got = vec![0.0; xs.len()];
        // SAFETY: both have that length and are separate.
        unsafe { code(xs.as_ptr(), got.as_mut_ptr(), xs.len()) };
        assert_eq!(bits(&got), bits(&want), "{symbol}");
        let mut place = xs.clone();
        // SAFETY: source and destination are the same numbers.
        unsafe { code(place.as_ptr(), place.as_mut_ptr(), place.len()) };
        assert_eq!(bits(&place), bits(&want), "{symbol} in place");
    }
}

#[test]
fn any_length_and_place_give_the_same_bits_and_nothing_else_is_written() {
    let xs: Vec<f32> = (0..200).map(|i| i as f32 * 0.031 - 3.0).collect();
    for (f, symbol, code) in table() {
        let program = single::single(*f);
        for n in [0, 1, 3, 63, 64, 65, 129] {
            for start in [0, 1, 7] {
                let mut got = vec![-77.0; n + 2];
                // SAFETY: start + n <= 200 numbers to read, n + 2 to write.
                unsafe { code(xs[start..].as_ptr(), got[1..].as_mut_ptr(), n) };
                let want = xs[start..start + n].iter().map(|x| program.eval(&[*x]));
                let want: Vec<f32> = [-77.0].into_iter().chain(want).chain([-77.0]).collect();
                assert_eq!(bits(&got), bits(&want), "{symbol}, {n} from {start}");
            }
        }
    }
}

#[test]
fn powers_give_the_bits_of_the_recorded_program() {
    let xs = numbers();
    let n = xs.len();
    let program = single::single2(Fn2::Pow);
    let raise = |a: &[f32], b: &[f32]| -> Vec<u32> {
        a.iter().zip(b).map(|(a, b)| program.eval(&[*a, *b]).to_bits()).collect()
    };
    for shift in [0, 401, 1777] {
        let exponents: Vec<f32> = (0..n).map(|i| xs[(i + shift) % n]).collect();
        let (mut apart, mut first, mut second, mut both) =
            (vec![0.0; n], xs.clone(), exponents.clone(), xs.clone());
        // SAFETY: all have n numbers; each destination is new or one of its sources.
        unsafe {
            POWER.1(xs.as_ptr(), exponents.as_ptr(), apart.as_mut_ptr(), n);
            POWER.1(first.as_ptr(), exponents.as_ptr(), first.as_mut_ptr(), n);
            POWER.1(xs.as_ptr(), second.as_ptr(), second.as_mut_ptr(), n);
            POWER.1(both.as_ptr(), both.as_ptr(), both.as_mut_ptr(), n);
        }
        let want = raise(&xs, &exponents);
        assert!(bits(&apart) == want && bits(&first) == want && bits(&second) == want);
        assert_eq!(bits(&both), raise(&xs, &xs));
    }
}
