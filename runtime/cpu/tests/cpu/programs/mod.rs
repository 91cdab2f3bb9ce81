//! Programs written by hand, and their comparison with the float64 interpreter.

use miras_cpu::{Buffer, Compiled, Task};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role, Verified, interpret, verify};

pub mod build;

/// Repeatable numbers in [low, high).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self, low: f64, high: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (high - low) * (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One vector per array: random float32 numbers in the given ones.
pub fn inputs(program: &Program, tokens: usize, range: (f64, f64), seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random::new(seed);
    let one = |array: &miras_kernel::Array| match array.role {
        Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => {
            (0..array.len(tokens, 0).unwrap()).map(|_| random.next(range.0, range.1) as f32).collect()
        }
        Role::StateOut | Role::TokenOutput { .. } => vec![f32::NAN; array.len(tokens, 0).unwrap()],
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

/// Runs one task of the compiled program.
pub fn run(compiled: &Compiled, scalars: Scalars, mut arrays: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let mut tasks = [task(compiled.program(), scalars, &mut arrays)];
    compiled.run(&mut tasks).unwrap();
    arrays
}

pub fn verified(program: Program) -> Verified<Program> {
    verify(program).unwrap_or_else(|e| panic!("{e}"))
}

/// Every array of the float64 interpreter.
pub fn meaning(program: &Verified<Program>, scalars: &Scalars, arrays: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let mut wide: Vec<Vec<f64>> = arrays.iter().map(|a| a.iter().map(|&x| x.into()).collect()).collect();
    interpret(program, scalars, &mut wide).unwrap();
    wide
}

/// Compiles, runs and compares every written array: max |a - b| <= tolerance * max(|b|, 1).
pub fn check(program: Program, scalars: Scalars, range: (f64, f64), tolerance: f64) {
    let program = verified(program);
    let arrays = inputs(&program, scalars.tokens, range, 7);
    let wanted = meaning(&program, &scalars, &arrays);
    let compiled = Compiled::new(&program).unwrap();
    let got = run(&compiled, scalars, arrays);
    for (at, array) in
        program.arrays.iter().enumerate().filter(|(_, a)| a.role.writable() && a.role != Role::Scratch)
    {
        assert_eq!(wanted[at].len(), got[at].len());
        let largest = wanted[at].iter().fold(1.0f64, |m, x| m.max(x.abs()));
        for (i, (w, g)) in wanted[at].iter().zip(&got[at]).enumerate() {
            let error = (w - f64::from(*g)).abs();
            assert!(
                error <= tolerance * largest,
                "{} {:?} `{}`[{i}]: {w} compiled to {g}, off by {error:.2e}\n{}",
                program.name,
                array.shape,
                array.name,
                miras_kernel::print::program(&program)
            );
        }
    }
}
