//! Limits: cut into launches, or refused with both numbers; lost devices.

use crate::{arrays, check, device, one_kernel, open, programs, task, verified};
use miras_base::diagnostic::code;
use miras_base::scalar::Fn2;
use miras_gpu::{Ask, Buffer, Device, Task};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Affine, Nest, Program, Role, Stmt};

#[test]
fn long_runs_are_cut_into_windows_before_drivers_stop_them() {
    let Some(device) = device() else { return };
    let compiled = one_kernel(&device, &verified(programs::turns(40)));
    // 81 turns a token: 106,000 turns, where llvmpipe stops silently after 65,535.
    check(&compiled, &[Scalars::single(1300), Scalars::single(700)], 1e-5);
}

#[test]
fn one_turn_that_is_too_long_is_refused_where_the_device_would_stop_it() {
    let Some(device) = device() else { return };
    let program = verified(programs::turns(70_000));
    let compiled = one_kernel(&device, &program);
    let mut data = arrays(&program, 1, 1);
    let ran = compiled.run(&mut [task(&program, Scalars::single(1), &mut data)]);
    match device.description().contains("loops of at most") {
        true => {
            let error = ran.unwrap_err();
            assert_eq!(error.code, code::DEVICE_LIMIT);
            assert!(error.message.contains("71159") && error.message.contains("60000"), "{error}");
        }
        false => ran.unwrap(),
    }
}

/// `o = last(a) + x` with `a` of so many elements.
fn large(size: usize) -> Program {
    let mut p = Program::new("large");
    let a = p.add_array("a", Role::HeadInput, &[size], "");
    let x = p.add_array("x", programs::TOKEN, &[], "");
    let o = p.add_array("o", programs::OUTPUT, &[], "");
    let t = p.add_var("t");
    let mut n = Nest::new("o = last(a) + x", vec![]);
    let last = n.load(a, Affine::constant(size as i64 - 1));
    let own = n.load(x, Affine::term(1, t));
    let sum = n.fn2(Fn2::Add, last, own);
    n.store(o, Affine::term(1, t), sum);
    p.body = vec![programs::over_tokens(t, vec![Stmt::Nest(n)])];
    p
}

#[test]
fn tasks_that_do_not_fit_together_run_one_after_the_other() {
    let Some(device) = device() else { return };
    // 48 MiB each, two of which fit into WebGPU's 128 MiB.
    let size = 12 << 20;
    let program = verified(large(size));
    let compiled = one_kernel(&device, &program);
    let given: Vec<Vec<f32>> = (0..3).map(|i| vec![i as f32; size]).collect();
    let x = [0.5];
    let mut answers = [[f32::NAN]; 3];
    let tasks = given.iter().zip(&mut answers).map(|(a, o)| Task {
        scalars: Scalars::single(1),
        buffers: vec![Buffer::Given(a), Buffer::Given(&x), Buffer::Written(o)],
    });
    compiled.run(&mut tasks.collect::<Vec<_>>()).unwrap();
    assert_eq!(answers, [[0.5], [1.5], [2.5]]);
}

#[test]
fn a_task_that_does_not_fit_is_refused_with_both_numbers() {
    let Some(device) = device() else { return };
    let size = 33 << 20;
    let program = verified(large(size));
    let compiled = one_kernel(&device, &program);
    let (a, x, mut o) = (vec![0.0; size], [0.5], [f32::NAN]);
    let buffers = vec![Buffer::Given(&a), Buffer::Given(&x), Buffer::Written(&mut o)];
    let error = compiled.run(&mut [Task { scalars: Scalars::single(1), buffers }]).unwrap_err();
    assert_eq!(error.code, code::DEVICE_LIMIT);
    let numbers = [(4 * size + 4).to_string(), (128_usize << 20).to_string()];
    assert!(numbers.iter().all(|n| error.message.contains(n)), "{error}");
}

#[test]
fn higher_limits_are_used_where_present() {
    let Some(device) = device() else { return };
    let more = Device::open(device.adapter(), Ask::Most).unwrap();
    if more.adapter().max_binding < 256 << 20 {
        eprintln!("not run: the adapter has no higher limits");
        return;
    }
    let size = 33 << 20;
    let program = verified(large(size));
    let compiled = one_kernel(&more, &program);
    let (a, x, mut o) = (vec![2.0; size], [0.5], [f32::NAN]);
    let buffers = vec![Buffer::Given(&a), Buffer::Given(&x), Buffer::Written(&mut o)];
    compiled.run(&mut [Task { scalars: Scalars::single(1), buffers }]).unwrap();
    assert_eq!(o, [2.5]);
}

#[test]
fn a_lost_device_is_an_error_and_not_a_result() {
    let Some(device) = open() else { return };
    let program = verified(programs::backwards());
    let compiled = one_kernel(&device, &program);
    device.destroy();
    let mut data = arrays(&program, 3, 1);
    let error = compiled.run(&mut [task(&program, Scalars::single(3), &mut data)]).unwrap_err();
    assert_eq!(error.code, code::DEVICE_LOST, "{error}");
}

#[test]
fn without_tokens_nothing_reaches_the_device() {
    let Some(device) = open() else { return };
    let program = verified(programs::delta(5, 3));
    let compiled = one_kernel(&device, &program);
    // A lost device would refuse anything.
    device.destroy();
    let mut data = arrays(&program, 0, 1);
    compiled.run(&mut [task(&program, Scalars::single(0), &mut data)]).unwrap();
    assert_eq!(data[5], data[6], "the state is handed on");
}

/// One more than the groups that an axis may have: the grid is folded.
#[test]
fn more_tasks_than_an_axis_has_groups_all_run() {
    let Some(device) = device() else { return };
    const TASKS: usize = 65_536;
    let mut p = Program::new("many");
    let x = p.add_array("x", programs::TOKEN, &[], "");
    let o = p.add_array("o", programs::OUTPUT, &[], "");
    let t = p.add_var("t");
    let mut n = Nest::new("o = 2 x", vec![]);
    let own = n.load(x, Affine::term(1, t));
    let twice = n.fn2(Fn2::Add, own, own);
    n.store(o, Affine::term(1, t), twice);
    p.body = vec![programs::over_tokens(t, vec![Stmt::Nest(n)])];
    let compiled = one_kernel(&device, &verified(p));
    let given: Vec<[f32; 1]> = (0..TASKS).map(|i| [i as f32]).collect();
    let mut found = vec![[f32::NAN; 1]; TASKS];
    let tasks = given.iter().zip(&mut found).map(|(x, o)| Task {
        scalars: Scalars::single(1),
        buffers: vec![Buffer::Given(x), Buffer::Written(o)],
    });
    compiled.run(&mut tasks.collect::<Vec<_>>()).unwrap();
    let wrong = found.iter().zip(0..).find(|(o, i)| o[0] != 2.0 * *i as f32);
    assert_eq!(wrong, None);
}
