//! Programs that pass over a past, tokens apart or one after the other.

use crate::{arrays_after, check, device, one_kernel, programs, task, verified};
use miras_emit_wgsl::{Each, Structure, Turns, emit};
use miras_kernel::interpret::Scalars;

fn scalars(tokens: usize, kept: usize, head: u64) -> Scalars {
    Scalars { tokens, kept, first: kept as u64, head, heads: 2, layer: 0, layers: 1 }
}

#[test]
fn tokens_that_pass_the_past_alone_have_an_invocation_each() {
    let module = emit(&verified(programs::passes(4)), Structure::OneKernel).unwrap();
    let all: Vec<_> = module.stages.iter().map(|s| (s.each, s.turns, s.streams)).collect();
    let once = (Each::Token, Turns::Once, true);
    assert_eq!(module.passes.len(), 1);
    assert_eq!(all, [once, (Each::Token, Turns::Past, true), once]);
    let module = emit(&verified(programs::echoes()), Structure::OneKernel).unwrap();
    assert!(module.stages.iter().all(|s| s.each == Each::Task));
}

#[test]
fn pasts_of_different_lengths_lie_side_by_side() {
    let Some(device) = device() else { return };
    for program in [programs::passes(4), programs::echoes()] {
        let compiled = one_kernel(&device, &verified(program));
        let all = [scalars(5, 0, 0), scalars(3, 7, 1), scalars(0, 2, 0), scalars(1, 0, 1), scalars(2, 30, 0)];
        check(&compiled, &all, 2e-5);
    }
}

#[test]
fn more_tokens_than_a_workgroup_has_invocations_are_all_answered() {
    let Some(device) = device() else { return };
    let compiled = one_kernel(&device, &verified(programs::passes(2)));
    check(&compiled, &[scalars(300, 5, 0), scalars(257, 0, 1)], 1e-4);
}

/// A pass of 9 turns for each token of the past: 6,000 turns are more than one launch may make, and a token's pass is
/// shared out over several.
#[test]
fn a_pass_that_drivers_would_stop_is_shared_out_over_launches() {
    let Some(device) = device() else { return };
    let compiled = one_kernel(&device, &verified(programs::passes(4)));
    check(&compiled, &[scalars(2, 8000, 0)], 1e-3);
}

#[test]
fn a_past_may_be_kept_or_part_of_the_run() {
    let Some(device) = device() else { return };
    let program = verified(programs::passes(3));
    let compiled = one_kernel(&device, &program);
    let mut whole = arrays_after(&program, 6, 2, 3);
    compiled.run(&mut [task(&program, scalars(6, 2, 0), &mut whole)]).unwrap();
    // The same tokens in two pieces; the first does not see what comes after it, but for the number kept.
    let mut later = whole.clone();
    later[0].drain(..4 * 3);
    let size = later[5].len();
    later[5] = vec![f32::NAN; size - 4 * 3];
    compiled.run(&mut [task(&program, scalars(2, 6, 0), &mut later)]).unwrap();
    let scaled = |x: &f32, kept: f32| x * (kept + 1.0);
    for (a, b) in whole[5][4 * 3..].iter().zip(&later[5]) {
        let (a, b) = (scaled(a, 2.0), scaled(b, 6.0));
        assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{a} {b}");
    }
}
