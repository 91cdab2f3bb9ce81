//! What programs mean: every kind of statement, many tasks, streams of different lengths.

use crate::{arrays, check, device, one_kernel, programs, task, verified};
use miras_kernel::interpret::Scalars;

fn scalars(tokens: usize, first: u64, head: u64) -> Scalars {
    Scalars { tokens, kept: 0, first, head, heads: 2, layer: 1, layers: 4 }
}

#[test]
fn programs_mean_on_the_device_what_the_interpreter_says() {
    let Some(device) = device() else { return };
    // Doubling W at every token must stay in range; the others do not care.
    for program in [
        programs::sample(),
        programs::delta(5, 3),
        programs::backwards(),
        programs::scalars(),
        programs::sums(),
    ] {
        let compiled = one_kernel(&device, &verified(program));
        check(&compiled, &[scalars(9, 100, 0), scalars(3, 0, 1), scalars(0, 7, 0), scalars(1, 5, 1)], 2e-5);
    }
}

#[test]
fn arrays_larger_than_a_workgroup_are_covered_whole() {
    let Some(device) = device() else { return };
    let compiled = one_kernel(&device, &verified(programs::delta(48, 300)));
    // Steps of random size diverge soon, so few tokens.
    check(&compiled, &[Scalars::single(2)], 2e-4);
}

/// One, odd ones, those that fill lanes and one more than that.
#[test]
fn every_size_is_covered() {
    let Some(device) = device() else { return };
    for size in [1, 3, 16, 48, 65, 128] {
        let compiled = one_kernel(&device, &verified(programs::delta(size, size)));
        check(&compiled, &[Scalars::single(2), Scalars::single(1)], 5e-4);
    }
}

#[test]
fn many_tasks_each_find_their_own_arrays() {
    let Some(device) = device() else { return };
    let compiled = one_kernel(&device, &verified(programs::turns(2)));
    let all: Vec<Scalars> = (0..300).map(|i| scalars(i % 5, 0, i as u64 % 2)).collect();
    check(&compiled, &all, 1e-5);
}

#[test]
fn tasks_may_share_what_heads_share() {
    let Some(device) = device() else { return };
    let program = verified(programs::scalars());
    let compiled = one_kernel(&device, &program);
    let mut one = arrays(&program, 4, 3);
    let mut alone = one.clone();
    compiled.run(&mut [task(&program, scalars(4, 0, 1), &mut alone)]).unwrap();
    let head = one[0].clone();
    let (mut c, mut o) = (vec![f32::NAN; one[2].len()], vec![f32::NAN; one[3].len()]);
    let factor = one[1].clone();
    let mut first = task(&program, scalars(4, 0, 1), &mut one);
    first.buffers[0] = miras_gpu::Buffer::Given(&head);
    let second = miras_gpu::Task {
        scalars: scalars(4, 0, 1),
        buffers: vec![
            miras_gpu::Buffer::Given(&head),
            miras_gpu::Buffer::Given(&factor),
            miras_gpu::Buffer::Written(&mut c),
            miras_gpu::Buffer::Written(&mut o),
        ],
    };
    compiled.run(&mut [first, second]).unwrap();
    assert_eq!((&one[2], &one[3]), (&alone[2], &alone[3]));
    assert_eq!((&c, &o), (&alone[2], &alone[3]));
}

#[test]
fn a_run_gives_the_same_bits_each_time() {
    let Some(device) = device() else { return };
    let program = verified(programs::delta(5, 3));
    let compiled = one_kernel(&device, &program);
    let run = || {
        let mut data = arrays(&program, 6, 1);
        compiled.run(&mut [task(&program, Scalars::single(6), &mut data)]).unwrap();
        data
    };
    assert_eq!(run(), run());
}

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let Some(device) = device() else { return };
    let program = verified(programs::backwards());
    let compiled = one_kernel(&device, &program);
    let mut data = arrays(&program, 4, 1);
    let error = compiled.run(&mut [task(&program, Scalars::single(5), &mut data)]).unwrap_err();
    assert_eq!(error.code, miras_base::diagnostic::code::BUG);
    assert!(error.message.contains("T = 5"), "{error}");
}
