//! The check of a fresh device: whether it computes, and how many turns of loops it makes.

use crate::device::Device;
use crate::pipeline::{Buffers, Dispatch, Pipelines};
use crate::run::Compiled;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::{Fn1, Fn2};
use miras_emit_wgsl::Structure;
use miras_emit_wgsl::plan::MAX_TURNS;
use miras_kernel::interpret::{Scalars, interpret};
use miras_kernel::{Affine, Count, Loop, Nest, Op, Order, Program, Role, Stmt, Verified, verify};
use miras_tasks::{Buffer, Task};
use std::sync::Arc;
use wgpu::BufferUsages;

/// Turns that are tried: more than the 65,535 after which llvmpipe stops.
const TRIED: u32 = 70_000;

/// A loop whose result no compiler knows without making all its turns.
const COUNT: &str = "
struct Run { tasks: u32, groups: u32, first: u32, stop: u32 }
@group(0) @binding(1) var<storage, read_write> work: array<u32>;
@group(0) @binding(2) var<uniform> run: Run;
@compute @workgroup_size(1)
fn count() {
    var n = 1u;
    for (var turn = run.first; turn < run.stop; turn++) {
        n = n * 1664525u + 1013904223u;
    }
    work[0] = n;
}
";

/// `None` where an invocation makes [`TRIED`] turns of loops, else how many are known to be safe.
///
/// # Errors
/// E0603 where the device fails.
pub(crate) fn turns(device: &Device) -> Result<Option<u64>, Diagnostic> {
    let pipelines = Pipelines::of(device, COUNT, std::iter::once("count"))?;
    const SLOT: u64 = 256;
    let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
    let (buffers, staging) = device.guarded("making buffers", || {
        let buffers = Buffers {
            given: device.buffer("given", 4, storage),
            work: device.buffer("work", 4, storage),
            run: device.buffer("run", SLOT, BufferUsages::UNIFORM | BufferUsages::COPY_DST),
            tasks: device.buffer("tasks", 4, storage),
        };
        (buffers, device.buffer("results", 4, BufferUsages::MAP_READ | BufferUsages::COPY_DST))
    })?;
    device.guarded("counting turns", || {
        device.queue.write_buffer(&buffers.run, 0, bytemuck::cast_slice(&[1_u32, 1, 0, TRIED]));
        let group = pipelines.bind(device, &buffers, SLOT);
        pipelines.launch(device, &group, &[Dispatch { stage: 0, offset: 0, groups: (1, 1, 1) }]);
    })?;
    let found = device.read(&buffers.work, &staging, 1)?;
    let step = |n: u32, _| n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let expected = (0..TRIED).fold(1, step);
    Ok((found != [expected]).then_some(MAX_TURNS))
}

/// Runs a small program here and there.
///
/// # Errors
/// E0601 where the results differ; E0603 where the device fails.
pub(crate) fn check(device: &Arc<Device>) -> Result<(), Diagnostic> {
    const TOKENS: usize = 3;
    let program = sample()?;
    let given: Vec<f32> = (0..TOKENS * SIZE).map(|i| (i as f32 * 0.37).sin()).collect();
    let scalars = Scalars::single(TOKENS);
    let mut expected = vec![given.clone(), Vec::new(), Vec::new()];
    interpret(&program, &scalars, &mut expected)?;
    let (mut state, mut sums) = (vec![0.0; SIZE], vec![0.0; TOKENS]);
    let buffers = vec![Buffer::Given(&given), Buffer::Written(&mut state), Buffer::Written(&mut sums)];
    Compiled::new(device, &program, Structure::OneKernel)?.run(&mut [Task { scalars, buffers }])?;
    let found = state.iter().chain(&sums);
    for (found, expected) in found.zip(expected[1].iter().chain(&expected[2])) {
        // No number is near to NaN.
        let near = (found - expected).abs() <= 1e-4 * expected.abs().max(1.0);
        if !near {
            let what = format!("{} computes wrongly: {found} where {expected} is right", device.name());
            return Err(Diagnostic::new(code::NO_DEVICE, what)
                .with_help("update the driver, use another adapter, or the cpu backend"));
        }
    }
    Ok(())
}

/// More than one round of the lanes, so that lanes read what others wrote.
const SIZE: usize = 300;

/// `s = 0; for each token: s = tanh(s / 2 + x); o = sum of s`
fn sample() -> Result<Verified<Program>, Diagnostic> {
    let mut p = Program::new("start-up check");
    let x = p.add_array("x", Role::TokenInput { entries: 1 }, &[SIZE], "");
    let s = p.add_array("s", Role::StateOut, &[SIZE], "");
    let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &[], "");
    let (t, zero, i, j) = (p.add_var("t"), p.axis("i", SIZE), p.axis("i", SIZE), p.axis("j", SIZE));
    let mut begin = Nest::new("s = 0", vec![zero]);
    let nothing = begin.constant(0.0);
    begin.store(s, Affine::term(1, zero.var), nothing);
    let mut step = Nest::new("s = tanh(s / 2 + x)", vec![i]);
    let before = step.load(s, Affine::term(1, i.var));
    let half = step.constant(0.5);
    let kept = step.fn2(Fn2::Mul, before, half);
    let own = step.load(x, Affine::term(SIZE as i64, t).plus(1, i.var));
    let sum = step.fn2(Fn2::Add, kept, own);
    let bent = step.fn1(Fn1::Tanh, sum);
    step.store(s, Affine::term(1, i.var), bent);
    let mut total = Nest::new("o = sum of s", vec![]);
    let part = total.load(s, Affine::term(1, j.var));
    let all = total.reduce(Op::Sum, vec![j], part);
    total.store(o, Affine::term(1, t), all);
    let body = vec![Stmt::Nest(step), Stmt::Nest(total)];
    p.body = vec![
        Stmt::Nest(begin),
        Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body }),
    ];
    verify(p)
}
