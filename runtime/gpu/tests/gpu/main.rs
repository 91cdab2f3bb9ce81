//! Kernel programs written by hand, run on whatever adapter there is, against the interpreter.
//!
//! Without an adapter the tests say that they were not run; with `MIRAS_REQUIRE_GPU=1` that is a failure. The
//! device is asked for WebGPU's default limits and nothing more.

mod blocks;
mod choice;
mod formula;
mod functions;
mod history;
mod limits;
mod meaning;
mod pieces;
#[path = "../../../../compiler/emit/wgsl/tests/wgsl/programs.rs"]
#[allow(dead_code, reason = "shared with the emitter's tests, which use other parts of it")]
mod programs;
mod stranger;

use miras_gpu::{Ask, Buffer, Choice, Compiled, Device, Structure, Task, choose};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role, Verified, interpret, verify};
use std::sync::{Arc, OnceLock};

/// The device of all tests; `None` after saying so where there is none.
pub fn device() -> Option<Arc<Device>> {
    static DEVICE: OnceLock<Option<Arc<Device>>> = OnceLock::new();
    let device = DEVICE.get_or_init(open).clone();
    if device.is_none() {
        eprintln!("not run: no adapter");
    }
    device
}

/// A device of one's own.
pub fn open() -> Option<Arc<Device>> {
    let opened = choose(&Choice::Any).and_then(|adapter| Device::open(&adapter, Ask::Default));
    match opened {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("MIRAS_REQUIRE_GPU").is_some_and(|v| v == "1") => {
            panic!("a device is required: {error} {:?}", error.notes)
        }
        // An adapter that is there and does not work is a failure in any case.
        Err(error) => {
            assert!(!error.notes.is_empty(), "{error}");
            None
        }
    }
}

/// The program, known to be sound.
pub fn verified(program: Program) -> Verified<Program> {
    verify(program).unwrap_or_else(|e| panic!("{e}"))
}

/// The program as one kernel.
pub fn one_kernel(device: &Arc<Device>, program: &Verified<Program>) -> Compiled {
    Compiled::new(device, program, Structure::OneKernel).unwrap()
}

/// Repeatable numbers in [low, high).
pub fn random(seed: u64, low: f32, high: f32) -> impl FnMut() -> f32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        low + (high - low) * (state >> 40) as f32 / (1_u32 << 24) as f32
    }
}

/// One vector per array, nothing being kept from before.
pub fn arrays(program: &Program, tokens: usize, seed: u64) -> Vec<Vec<f32>> {
    arrays_after(program, tokens, 0, seed)
}

/// One vector per array: random numbers in the given ones, NaN in those to be written.
pub fn arrays_after(program: &Program, tokens: usize, kept: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut next = random(seed, -1.0, 1.0);
    let one = |array: &miras_kernel::Array| match array.role {
        Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => {
            (0..array.len(tokens, kept).unwrap()).map(|_| next()).collect()
        }
        Role::StateOut | Role::TokenOutput { .. } => vec![f32::NAN; array.len(tokens, kept).unwrap()],
        Role::Scratch => Vec::new(),
    };
    program.arrays.iter().map(one).collect()
}

/// The task that works on these vectors.
pub fn task<'a>(program: &Program, scalars: Scalars, arrays: &'a mut [Vec<f32>]) -> Task<'a> {
    let buffers = program.arrays.iter().zip(arrays.iter_mut());
    let buffers = buffers.map(|(array, data)| match array.role {
        Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => {
            Buffer::Given(data)
        }
        Role::StateOut | Role::TokenOutput { .. } => Buffer::Written(data),
        Role::Scratch => Buffer::Scratch,
    });
    Task { scalars, buffers: buffers.collect() }
}

/// Runs tasks with these scalars together and compares every written array with the float64 interpreter:
/// |a - b| <= tolerance * max(|b|, 1).
pub fn check(compiled: &Compiled, all: &[Scalars], tolerance: f64) {
    check_on(compiled, all, |_, _| {}, tolerance);
}

/// The same on numbers that were changed before.
pub fn check_on(
    compiled: &Compiled,
    all: &[Scalars],
    change: impl Fn(&Program, &mut [Vec<f32>]),
    tolerance: f64,
) {
    let program = compiled.program();
    let mut data: Vec<_> =
        all.iter().zip(1..).map(|(s, seed)| arrays_after(program, s.tokens, s.kept, seed)).collect();
    data.iter_mut().for_each(|arrays| change(program, arrays));
    let mut wanted = Vec::new();
    for (scalars, arrays) in all.iter().zip(&data) {
        let mut wide: Vec<Vec<f64>> = arrays.iter().map(|a| a.iter().map(|&x| x.into()).collect()).collect();
        interpret(program, scalars, &mut wide).unwrap();
        wanted.push(wide);
    }
    let mut tasks: Vec<_> = all.iter().zip(&mut data).map(|(s, arrays)| task(program, *s, arrays)).collect();
    compiled.run(&mut tasks).unwrap_or_else(|e| panic!("{e}\n{}", compiled.module().wgsl));
    for ((scalars, got), wanted) in all.iter().zip(&data).zip(&wanted) {
        compare(program, scalars, got, wanted, tolerance);
    }
}

fn compare(program: &Program, scalars: &Scalars, got: &[Vec<f32>], wanted: &[Vec<f64>], tolerance: f64) {
    let written = |a: &miras_kernel::Array| a.role.writable() && a.role != Role::Scratch;
    for (at, array) in program.arrays.iter().enumerate().filter(|(_, a)| written(a)) {
        assert_eq!(wanted[at].len(), got[at].len());
        for (i, (w, g)) in wanted[at].iter().zip(&got[at]).enumerate() {
            let error = (w - f64::from(*g)).abs();
            assert!(
                error <= tolerance * w.abs().max(1.0),
                "{} {scalars:?} `{}`[{i}]: {g} for {w}, off by {error:.2e}",
                program.name,
                array.name,
            );
        }
    }
}
