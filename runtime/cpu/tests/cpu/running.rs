//! Many tasks, threads, lengths; refusals.

use crate::programs::{Random, build, inputs, run, task, verified};
use miras_base::diagnostic::code;
use miras_base::scalar::{Fn1, Fn2};
use miras_cpu::{Buffer, Compiled};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Affine, Nest, Program, Role, Stmt};

fn bits(arrays: &[Vec<f32>]) -> Vec<Vec<u32>> {
    arrays.iter().map(|a| a.iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn results_depend_on_neither_threads_nor_other_tasks() {
    let program = verified(build::delta(21, 17));
    let compiled = Compiled::new(&program).unwrap();
    let scalars = Scalars::single(40);
    let alone: Vec<_> =
        (0..13).map(|seed| bits(&run(&compiled, scalars, inputs(&program, 40, (-0.3, 0.3), seed)))).collect();
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut data: Vec<_> = (0..13).map(|seed| inputs(&program, 40, (-0.3, 0.3), seed)).collect();
        let mut tasks: Vec<_> = data.iter_mut().map(|d| task(&program, scalars, d)).collect();
        pool.install(|| compiled.run(&mut tasks)).unwrap();
        drop(tasks);
        assert_eq!(alone, data.iter().map(|d| bits(d)).collect::<Vec<_>>(), "{threads} threads");
    }
}

#[test]
fn the_order_of_a_sum_does_not_depend_on_other_sizes() {
    for cols in [3, 4, 15, 16, 21, 48, 65] {
        for by_rows in [true, false] {
            let first = |rows: usize| {
                let program = verified(build::read(rows, cols, by_rows));
                let mut arrays = inputs(&program, 1, (-1.0, 1.0), 3);
                let place = |i: usize, j: usize| if by_rows { i * cols + j } else { j * rows + i };
                let mut random = Random::new(5);
                for j in 0..cols {
                    arrays[0][place(0, j)] = random.next(-1.0, 1.0) as f32;
                    arrays[1][j] = random.next(-1.0, 1.0) as f32;
                }
                run(&Compiled::new(&program).unwrap(), Scalars::single(1), arrays)[2][0].to_bits()
            };
            let alone = first(1);
            assert!([2, 3, 4, 5, 16, 65].into_iter().all(|rows| first(rows) == alone), "{cols} {by_rows}");
        }
    }
}

#[test]
fn no_tokens_and_no_tasks() {
    let program = verified(build::delta(5, 3));
    let compiled = Compiled::new(&program).unwrap();
    compiled.run(&mut []).unwrap();
    let before = inputs(&program, 0, (-1.0, 1.0), 1);
    let after = run(&compiled, Scalars::single(0), before.clone());
    let (w0, w) = (program.find("memory.W").unwrap(), program.find("state.memory.W").unwrap());
    assert_eq!(before[w0.0 as usize], after[w.0 as usize], "the state is handed on");
}

#[test]
fn more_tokens_than_sixteen_bits_count() {
    let tokens = 65_537;
    let program = verified(build::delta(4, 3));
    let compiled = Compiled::new(&program).unwrap();
    let all = inputs(&program, tokens, (-0.5, 0.5), 5);
    let whole = run(&compiled, Scalars::single(tokens), all.clone());
    let w = program.find("state.memory.W").unwrap().0 as usize;
    let w0 = program.find("memory.W").unwrap().0 as usize;
    // In two pieces with the state handed on: the same bits.
    let cut = 65_535;
    let piece = |from: usize, to: usize, state: &[f32]| {
        let arrays: Vec<Vec<f32>> = program
            .arrays
            .iter()
            .zip(&all)
            .map(|(array, data)| match array.role.entries() {
                Some(_) => data[from * array.part().unwrap()..to * array.part().unwrap()].to_vec(),
                None => data.clone(),
            })
            .enumerate()
            .map(|(at, data)| if at == w0 { state.to_vec() } else { data })
            .collect();
        run(&compiled, Scalars::single(to - from), arrays)
    };
    let first = piece(0, cut, &all[w0]);
    let second = piece(cut, tokens, &first[w]);
    assert_eq!(bits(&whole)[w], bits(&second)[w]);
    assert!(whole[w].iter().all(|x| x.is_finite()));
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_anything_runs() {
    let program = verified(build::delta(5, 3));
    let compiled = Compiled::new(&program).unwrap();
    let mut short = inputs(&program, 4, (-1.0, 1.0), 1);
    short[0].pop();
    let mut tasks = [task(&program, Scalars::single(4), &mut short)];
    let error = compiled.run(&mut tasks).unwrap_err();
    assert!(error.message.contains("`k` has 19 elements"), "{error}");

    let mut data = inputs(&program, 4, (-1.0, 1.0), 1);
    let mut missing = task(&program, Scalars::single(4), &mut data);
    missing.buffers.pop();
    assert!(compiled.run(&mut [missing]).unwrap_err().message.contains("buffers are given"));

    let mut data = inputs(&program, 4, (-1.0, 1.0), 1);
    let mut wrong = task(&program, Scalars::single(4), &mut data);
    wrong.buffers[0] = Buffer::Scratch;
    assert!(compiled.run(&mut [wrong]).unwrap_err().message.contains("wrong kind"));
}

#[test]
fn a_program_that_would_take_minutes_to_compile_is_a_limit() {
    let mut p = Program::new("huge");
    let o = p.add_array("o", Role::StateOut, &[64], "");
    let h = p.add_array("h", Role::HeadInput, &[64], "");
    for _ in 0..200 {
        let i = p.axis("i", 64);
        let mut n = Nest::new("a long chain", vec![i]);
        let mut value = n.load(h, Affine::term(1, i.var));
        for _ in 0..100 {
            let e = n.fn1(Fn1::Gelu, value);
            value = n.fn2(Fn2::Add, e, value);
        }
        n.store(o, Affine::term(1, i.var), value);
        p.body.push(Stmt::Nest(n));
    }
    let error = Compiled::new(&verified(p)).err().unwrap();
    assert_eq!(error.code, code::UNSUPPORTED);
    assert!(error.message.contains("too large to compile"), "{error}");
}

#[test]
fn scratch_that_no_memory_holds_is_a_limit() {
    let mut p = Program::new("wide");
    let o = p.add_array("o", Role::StateOut, &[1], "");
    for i in 0..40_000 {
        p.add_array(format!("s{i}"), Role::Scratch, &[1 << 31], "");
    }
    let mut n = Nest::new("o = 1", vec![]);
    let one = n.constant(1.0);
    n.store(o, Affine::default(), one);
    p.body = vec![Stmt::Nest(n)];
    let program = verified(p);
    let compiled = Compiled::new(&program).unwrap();
    let mut data = inputs(&program, 1, (0.0, 1.0), 1);
    let error = compiled.run(&mut [task(&program, Scalars::single(1), &mut data)]).unwrap_err();
    assert_eq!(error.code, code::UNSUPPORTED);
}
