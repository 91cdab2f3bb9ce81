//! Every function of the table on the device, against its float32 program.

use crate::{device, one_kernel, programs, random, task, verified};
use miras_base::scalar::single::{self, error_bound};
use miras_base::scalar::{Fn2, ROWS};
use miras_kernel::interpret::Scalars;

/// Arguments of all sizes and both signs, as many as a token takes; some where drivers' own functions fail: the
/// hyperbolic tangent of -110 is NaN on SwiftShader, exponentials at 75 are 60 units off.
fn arguments() -> Vec<f32> {
    let mut next = random(5, 0.0, 1.0);
    let mut all = vec![0.0, 1.0, -1.0, 0.5, -0.5, 80.0, -80.0, 1e-3, -110.0, 110.0, -75.0, 75.0];
    while all.len() < 400 {
        let size = 10f32.powf(-6.0 + 8.0 * next());
        all.push(if next() < 0.5 { size } else { -size });
    }
    all
}

/// Units in the last place between two numbers of like size.
fn ulps(a: f64, b: f64) -> f64 {
    let size = a.abs().max(f64::from(f32::MIN_POSITIVE));
    (a - b).abs() / 2f64.powi(size.log2().floor() as i32 - 23)
}

#[test]
fn every_function_keeps_its_bound_on_the_device() {
    let Some(device) = device() else { return };
    let xs = arguments();
    let program = verified(programs::functions(xs.len()));
    let mut data = vec![xs.clone(), vec![f32::NAN; ROWS.len() * xs.len()]];
    let compiled = one_kernel(&device, &program);
    compiled.run(&mut [task(&program, Scalars::single(1), &mut data)]).unwrap();
    let mut wrong = Vec::new();
    for (row, found) in ROWS.iter().zip(data[1].chunks(xs.len())) {
        let here = single::single(row.function);
        let bound = error_bound(row.function);
        let mut differ = 0;
        for (x, found) in xs.iter().zip(found) {
            let wanted = here.eval(&[*x]);
            differ += usize::from(wanted.to_bits() != found.to_bits());
            // WGSL's division and square root may be off by 2.5 units, and sums may be fused: each of the
            // two evaluations keeps the bound, with that much more for the device.
            let error = (f64::from(wanted) - f64::from(*found)).abs();
            let near = ulps(wanted.into(), (*found).into()) <= 2.0 * bound.ulps + 5.0;
            if !(near || error <= bound.absolute + 1e-37) {
                wrong.push(format!("{}({x:e}) = {found:e}, here {wanted:e}", row.name));
            }
        }
        eprintln!("{}: {differ} of {} differ in some bit", row.name, xs.len());
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
}

#[test]
fn functions_of_two_arguments_agree() {
    let Some(device) = device() else { return };
    let kinds = [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max];
    let pairs =
        [[2.0, 3.0], [0.5, -1.5], [-2.0, 0.25], [0.0, 0.0], [0.0, 2.0], [3.0, -0.5], [1e-3, 4.0], [7.0, 7.0]];
    let program = verified(programs::pairs());
    let width = kinds.len() + 6;
    let mut data = vec![pairs.concat(), vec![f32::NAN; width * pairs.len()]];
    let compiled = one_kernel(&device, &program);
    compiled.run(&mut [task(&program, Scalars::single(pairs.len()), &mut data)]).unwrap();
    for ([a, b], found) in pairs.iter().zip(data[1].chunks(width)) {
        for (f, found) in kinds.iter().zip(found) {
            let wanted = single::single2(*f).eval(&[*a, *b]);
            assert!(ulps(wanted.into(), (*found).into()) <= 8.0, "{f:?}({a}, {b}) = {found}, here {wanted}");
        }
        let powers = [0.0, 1.0, 3.0, -2.0, 1.5, 0.3];
        for (c, found) in powers.iter().zip(&found[kinds.len()..]) {
            let wanted = Fn2::Pow.eval((*a).into(), *c).clamp(f32::MIN.into(), f32::MAX.into());
            assert!(ulps(wanted, (*found).into()) <= 8.0, "{a}^{c} = {found}, exactly {wanted}");
        }
    }
}
