//! Compiled code computes what the float64 interpreter computes, for every construct and awkward sizes.

use crate::programs::{build, check, inputs, meaning, run, verified};
use miras_base::scalar::{Fn2, ROWS, single};
use miras_cpu::Compiled;
use miras_kernel::interpret::Scalars;

/// Below, at and above the widths of vectors and of blocks of vectors.
const SIZES: [usize; 9] = [1, 3, 4, 5, 15, 16, 21, 48, 65];

/// Sums of up to 65 float32 products, carried over a few tokens.
const SUMS: f64 = 2e-5;

#[test]
fn matrix_vector_products_and_rank_one_updates() {
    for dk in SIZES {
        for dv in [1, 3, 48, 65] {
            check(build::delta(dk, dv), Scalars::single(3), (-0.3, 0.3), SUMS);
        }
    }
}

#[test]
fn the_delta_rule_by_plain_loops() {
    let (dk, dv, tokens) = (5, 3, 7);
    let program = verified(build::delta(dk, dv));
    let arrays = inputs(&program, tokens, (-0.5, 0.5), 21);
    let got = run(&Compiled::new(&program).unwrap(), Scalars::single(tokens), arrays.clone());
    let given = |name: &str, at: usize| f64::from(arrays[program.find(name).unwrap().0 as usize][at]);
    let mut w: Vec<f64> = (0..dv * dk).map(|at| given("memory.W", at)).collect();
    let o = &got[program.find("o").unwrap().0 as usize];
    for t in 0..tokens {
        for i in 0..dv {
            let y: f64 = (0..dk).map(|j| w[i * dk + j] * given("k", t * dk + j)).sum();
            let step = given("algo.eta", t * dv + i) * (y - given("v", t * dv + i));
            for j in 0..dk {
                let kept = (1.0 - given("retention.alpha", t)) * w[i * dk + j];
                w[i * dk + j] = kept - step * given("k", t * dk + j);
            }
            let read: f64 = (0..dk).map(|j| w[i * dk + j] * given("q", t * dk + j)).sum();
            assert!((read - f64::from(o[t * dv + i])).abs() < 1e-6, "token {t}, row {i}");
        }
    }
    let state = &got[program.find("state.memory.W").unwrap().0 as usize];
    assert!(w.iter().zip(state).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-6));
}

#[test]
fn layernorm_in_one_nest_and_in_two() {
    // At d = 1 the variance is 0 and the scale 1 / sqrt(eps): differences of 1e-7 grow by 300.
    for d in SIZES {
        check(build::layernorm(d, false), Scalars::single(4), (-1.0, 1.0), 1e-4);
        check(build::layernorm(d, true), Scalars::single(4), (-1.0, 1.0), 1e-4);
    }
}

#[test]
fn softmax_over_rows_and_over_columns() {
    for rows in [1, 5, 16, 21] {
        for cols in [1, 3, 17, 48] {
            check(build::softmax(rows, cols, true), Scalars::single(3), (-4.0, 4.0), SUMS);
            check(build::softmax(rows, cols, false), Scalars::single(3), (-4.0, 4.0), SUMS);
        }
    }
}

#[test]
fn updates_in_place_and_reductions_over_two_loops() {
    for rows in [1, 3, 16] {
        for cols in SIZES {
            check(build::threshold(rows, cols), Scalars::single(3), (-1.0, 1.0), SUMS);
        }
    }
}

#[test]
fn products_with_strides_and_carried_factors() {
    for (m, n, k) in [(1, 1, 1), (3, 5, 2), (16, 16, 16), (21, 48, 65), (64, 1, 64)] {
        check(build::product(m, n, k, false), Scalars::single(3), (-1.0, 1.0), SUMS);
        check(build::product(m, n, k, true), Scalars::single(3), (-1.0, 1.0), SUMS);
    }
}

#[test]
fn steps_within_tokens_backwards_in_time() {
    for d in SIZES {
        let scalars = Scalars { head: 2, heads: 5, ..Scalars::single(3) };
        check(build::newton(d, 6), scalars, (0.5, 2.0), 1e-6);
    }
}

#[test]
fn functions_of_one_argument_in_nests_and_over_slices() {
    for row in ROWS {
        let low = row.domain.low.max(-6.0) + 0.01;
        let high = row.domain.high.min(6.0) - 0.01;
        for d in [1, 4, 21] {
            for nest in [true, false] {
                let program = verified(build::map1(row.function, d, nest));
                let scalars = Scalars::single(5);
                let arrays = inputs(&program, 5, (low, high), 3);
                let wanted = meaning(&program, &scalars, &arrays);
                let got = run(&Compiled::new(&program).unwrap(), scalars, arrays);
                let bound = single::error_bound(row.function);
                for (w, g) in wanted[1].iter().zip(&got[1]) {
                    let ulp = f64::from(f32::EPSILON) * w.abs().max(f64::from(f32::MIN_POSITIVE));
                    // The table's bound, and half a unit for the rounding of the wanted value.
                    let allowed = ((bound.ulps + 0.5) * ulp).max(bound.absolute);
                    assert!((w - f64::from(*g)).abs() <= allowed, "{} d={d} nest={nest}: {w} {g}", row.name);
                }
            }
        }
    }
}

#[test]
fn nests_and_slices_give_the_same_bits() {
    for row in ROWS {
        let nest = verified(build::map1(row.function, 37, true));
        let slice = verified(build::map1(row.function, 37, false));
        let arrays = inputs(&nest, 2, (-6.0, 6.0), 11);
        let a = run(&Compiled::new(&nest).unwrap(), Scalars::single(2), arrays.clone());
        let b = run(&Compiled::new(&slice).unwrap(), Scalars::single(2), arrays);
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&a[1]), bits(&b[1]), "{}", row.name);
    }
}

#[test]
fn functions_of_two_arguments() {
    for f in [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Min, Fn2::Max] {
        for d in [1, 4, 21] {
            check(build::map2(f, None, d), Scalars::single(3), (0.3, 2.0), 1e-6);
            check(build::map2(f, Some(0.7), d), Scalars::single(3), (-2.0, 2.0), 1e-6);
        }
    }
    for exponent in [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 1.5, 0.3, -1.7, 7.0] {
        check(build::map2(Fn2::Pow, Some(exponent), 21), Scalars::single(3), (0.3, 2.0), 2e-6);
        check(build::map2(Fn2::Pow, Some(exponent), 21), Scalars::single(3), (-2.0, -0.3), 2e-6);
    }
    check(build::map2(Fn2::Pow, None, 21), Scalars::single(3), (0.3, 2.0), 2e-6);
}

#[test]
fn values_at_zero_are_the_tables() {
    for exponent in [0.0, 1.0, -1.0, -0.5, 0.5, 1.5, -2.0, 0.3, -0.3] {
        check(build::map2(Fn2::Pow, Some(exponent), 5), Scalars::single(2), (0.0, 0.0), 0.0);
    }
    check(build::map2(Fn2::Div, None, 5), Scalars::single(2), (0.0, 0.0), 0.0);
}
