//! Products against plain sums in float64, for every layout, and what their bits depend on.

use super::product;

struct Case {
    m: usize,
    n: usize,
    k: usize,
    /// Whether a, b and c are stored by columns.
    turned: [bool; 3],
    triangular: bool,
    beta: f32,
}

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn strides(rows: usize, cols: usize, turned: bool) -> [usize; 2] {
    if turned { [1, rows] } else { [cols, 1] }
}

fn run(case: &Case, a: &[f32], b: &[f32], c: &mut [f32]) {
    let [ar, ac] = strides(case.m, case.k, case.turned[0]);
    let [br, bc] = strides(case.k, case.n, case.turned[1]);
    let [cr, cc] = strides(case.m, case.n, case.turned[2]);
    let shape = [case.m, case.n, case.k, ar, ac, br, bc, cr, cc, usize::from(case.triangular)];
    // SAFETY: the three have exactly the elements that the shape names, and are separate.
    unsafe { product(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), shape.as_ptr(), 0.5, case.beta) };
}

fn check(case: &Case) {
    let (a, b) = (numbers(case.m * case.k, 1), numbers(case.k * case.n, 2));
    let before = if case.beta == 0.0 { vec![f32::NAN; case.m * case.n] } else { numbers(case.m * case.n, 3) };
    let mut c = before.clone();
    run(case, &a, &b, &mut c);
    let at = |m: &[f32], rows: usize, cols: usize, turned: bool, i: usize, j: usize| {
        let [row, col] = strides(rows, cols, turned);
        f64::from(m[i * row + j * col])
    };
    for i in 0..case.m {
        for j in 0..case.n {
            let last = if case.triangular { (i + 1).min(case.k) } else { case.k };
            let product = |l| {
                at(&a, case.m, case.k, case.turned[0], i, l) * at(&b, case.k, case.n, case.turned[1], l, j)
            };
            let mut want = 0.5 * (0..last).map(product).sum::<f64>();
            if case.beta != 0.0 {
                want += f64::from(case.beta) * at(&before, case.m, case.n, case.turned[2], i, j);
            }
            let got = at(&c, case.m, case.n, case.turned[2], i, j);
            assert!((got - want).abs() < 1e-5, "{} {} {}: {got} {want}", case.m, case.n, case.k);
        }
    }
}

#[test]
fn every_layout_and_awkward_sizes() {
    for m in [1, 2, 5, 6, 7, 16, 64] {
        for n in [1, 3, 15, 16, 17, 33, 64, 67] {
            for k in [1, 4, 13, 64] {
                for layout in 0..8 {
                    let turned = [layout & 1 != 0, layout & 2 != 0, layout & 4 != 0];
                    let triangular = (m + n + k) % 2 == 0;
                    let beta = if layout % 3 == 0 { 0.75 } else { 0.0 };
                    check(&Case { m, n, k, turned, triangular, beta });
                }
            }
        }
    }
}

#[test]
fn bits_depend_on_the_row_and_the_column_alone() {
    let (m, n, k) = (64, 64, 32);
    let whole = Case { m, n, k, turned: [false; 3], triangular: false, beta: 0.0 };
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let mut c = vec![0.0; m * n];
    run(&whole, &a, &b, &mut c);
    for (rows, cols) in [(1, 1), (5, 17), (13, 40), (64, 3)] {
        let part = Case { m: rows, n: cols, ..whole };
        let narrow: Vec<f32> = (0..k).flat_map(|l| b[l * n..l * n + cols].to_vec()).collect();
        let mut d = vec![0.0; rows * cols];
        run(&part, &a, &narrow, &mut d);
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            assert_eq!(d[i * cols + j].to_bits(), c[i * n + j].to_bits(), "{rows} {cols}");
        }
    }
}

#[test]
fn what_lies_above_the_diagonal_is_never_met() {
    let (m, n) = (20, 18);
    let case = Case { m, n, k: m, turned: [false; 3], triangular: true, beta: 0.0 };
    let (mut a, mut b) = (numbers(m * m, 1), numbers(m * n, 2));
    let mut clean = vec![0.0; m * n];
    run(&case, &a, &b, &mut clean);
    (0..m).for_each(|i| a[i * m + i + 1..(i + 1) * m].fill(f32::NAN));
    b[n * (m - 1)..].fill(f32::INFINITY);
    let mut c = vec![0.0; m * n];
    run(&case, &a, &b, &mut c);
    assert!(c[..n * (m - 1)].iter().zip(&clean).all(|(x, y)| x.to_bits() == y.to_bits()));
}
