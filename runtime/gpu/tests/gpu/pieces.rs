//! Tasks whose tokens do not fit into a binding together run some tokens at a time, and give the same bits.

use crate::{arrays_after, device, one_kernel, programs, task, verified};
use miras_base::diagnostic::code;
use miras_gpu::{Ask, Compiled, Device, Structure};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role, Verified};
use std::sync::Arc;

/// A limit that tests reach with little data; wgpu holds whoever asks for it to it.
const SMALL: u64 = 8 << 10;

fn small() -> Option<Arc<Device>> {
    let device = device()?;
    Some(Device::open(device.adapter(), Ask::Bindings(SMALL)).unwrap())
}

fn run(
    device: &Arc<Device>,
    program: &Verified<Program>,
    scalars: Scalars,
    structure: Structure,
) -> Vec<Vec<f32>> {
    let mut data = arrays_after(program, scalars.tokens, scalars.kept, 9);
    let compiled = Compiled::new(device, program, structure).unwrap();
    compiled.run(&mut [task(program, scalars, &mut data)]).unwrap();
    data
}

/// Bytes of the arrays of tokens that are given.
fn size(program: &Program, scalars: Scalars) -> u64 {
    let given = |role| matches!(role, Role::TokenInput { .. } | Role::PastInput { .. });
    let arrays = program.arrays.iter().filter(|a| given(a.role));
    4 * arrays.map(|a| a.len(scalars.tokens, scalars.kept).unwrap() as u64).sum::<u64>()
}

#[test]
fn pieces_give_the_bits_of_the_whole() {
    let (Some(large), Some(small)) = (device(), small()) else { return };
    let all = [
        // One pass, with a state that stays on the device.
        (programs::delta(8, 8), Scalars::single(300), Structure::OneKernel),
        // Forwards, then backwards.
        (programs::backwards(), Scalars::single(2500), Structure::OneKernel),
        // The same by repeated launches.
        (programs::delta(8, 8), Scalars::single(300), Structure::SeveralLaunches),
        (programs::backwards(), Scalars::single(2500), Structure::SeveralLaunches),
        // Tokens with invocations of their own, a past that stays whole.
        (programs::passes(2), Scalars { kept: 5, ..Scalars::single(340) }, Structure::OneKernel),
        // A past within a loop over tokens that depend on one another.
        (programs::echoes(), Scalars { kept: 2000, ..Scalars::single(40) }, Structure::OneKernel),
    ];
    for (program, scalars, structure) in all {
        let program = verified(program);
        assert!(size(&program, scalars) > SMALL, "`{}` fits whole", program.name);
        let (whole, pieces) =
            (run(&large, &program, scalars, structure), run(&small, &program, scalars, structure));
        for ((array, a), b) in program.arrays.iter().zip(&whole).zip(&pieces) {
            let same = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && a.len() == b.len(), "{} `{}` as {structure}", program.name, array.name);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_both_numbers() {
    let Some(small) = small() else { return };
    let program = verified(programs::delta(48, 300));
    let compiled = one_kernel(&small, &program);
    let mut data = arrays_after(&program, 3, 0, 1);
    let error = compiled.run(&mut [task(&program, Scalars::single(3), &mut data)]).unwrap_err();
    assert_eq!(error.code, code::DEVICE_LIMIT);
    // The state as given, the steps of each channel, and one token's k, v, q and alpha.
    let need = 4 * (48 * 300 + 300 + 48 + 300 + 48 + 1);
    assert!(error.message.contains(&format!("{need} bytes for 1 of its 3 tokens")), "{error}");
    assert!(error.message.contains(&SMALL.to_string()), "{error}");
}

#[test]
fn a_past_that_does_not_fit_is_refused_with_both_numbers() {
    let Some(small) = small() else { return };
    let program = verified(programs::passes(4));
    let compiled = one_kernel(&small, &program);
    for kept in [600, 224] {
        let scalars = Scalars { kept, ..Scalars::single(30) };
        let mut data = arrays_after(&program, 30, kept, 1);
        let error = compiled.run(&mut [task(&program, scalars, &mut data)]).unwrap_err();
        assert_eq!(error.code, code::DEVICE_LIMIT);
        let numbers = [kept + 30, kept].map(|n| error.message.contains(&n.to_string()));
        assert!(numbers.contains(&true) && error.message.contains(&SMALL.to_string()), "{error}");
    }
}
