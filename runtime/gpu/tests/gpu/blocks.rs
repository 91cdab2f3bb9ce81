//! Programs whose tokens are blocks, as one kernel and as several launches: both give what the interpreter gives.

use crate::{arrays, check, check_on, device, programs, task, verified};
use miras_base::DimEnv;
use miras_base::scalar::Fn2;
use miras_driver::{Choice, Session};
use miras_emit_wgsl::plan::{self, Launch, MAX_TURNS, Step};
use miras_emit_wgsl::{MAX_WORKGROUP_MEMORY, emit};
use miras_gpu::{Compiled, Device, Structure};
use miras_kernel::interpret::Scalars;
use miras_kernel::{
    Access, Affine, Copy, Count, Factor, Loop, Matrix, Nest, Order, Product, Program, Role, Stmt, Verified,
};
use miras_schedule::Request;
use miras_spec::Library;
use miras_tensor::Sizes;
use std::sync::Arc;

/// Both structures.
const BOTH: [Structure; 2] = [Structure::OneKernel, Structure::SeveralLaunches];

/// Layers of each form of a block: masked products, a triangular system, parts of a chunk, momentum, maps of a weight
/// token by token.
const LAYERS: [&str; 6] = [
    "memory: matrix; bias: dot; retention: l2(alpha = learned); algo: gd(eta = 1)",
    "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(at = retained)",
    "memory: matrix; bias: l2; retention: l2; algo: multi(n = 2)",
    "memory: mlp(2, expand = 2); bias: huber(delta = 1); retention: l2(alpha = learned(per = channel)); algo: gd",
    "memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: momentum",
    "memory: mlp(2, expand = 2); bias: l2; retention: kl; algo: gd",
];

/// The program of a layer by blocks.
pub fn blocks(text: &str, chunk: u32, size: u64) -> Verified<Program> {
    let mut session = Session::new(Library::standard());
    let root = session.add("layer.miras", text);
    let program = session.load(root, &mut |_| Err("nothing is used".into())).unwrap().value;
    let rule = session.rule(&program, &Choice::default()).unwrap().value;
    let plan = session.plan(rule, Request::Chunked(Some(chunk))).unwrap().value;
    let dims = DimEnv::from([("dk".into(), size), ("dv".into(), size)]);
    session.compile_blocks(&plan, &Sizes { dims }).unwrap().value.unwrap()
}

fn compiled(device: &Arc<Device>, program: &Verified<Program>, structure: Structure) -> Compiled {
    let compiled = Compiled::new(device, program, structure).unwrap();
    assert_eq!(compiled.module().structure, structure);
    compiled
}

fn scalars(tokens: usize, head: u64) -> Scalars {
    Scalars { tokens, kept: 0, first: 0, head, heads: 2, layer: 0, layers: 1 }
}

/// Numbers that keep recurrences in bounds: gates in [0, 1), everything else small.
fn tame(program: &Program, data: &mut [Vec<f32>]) {
    for (array, values) in program.arrays.iter().zip(data) {
        let gate = array.name.contains('.') && matches!(array.role, Role::TokenInput { .. });
        values.iter_mut().for_each(|x| *x = if gate { 0.1 * x.abs() } else { 0.5 * *x });
    }
}

#[test]
fn blocks_mean_in_both_structures_what_the_interpreter_says() {
    let Some(device) = device() else { return };
    for text in LAYERS {
        let program = blocks(text, 16, 24);
        for structure in BOTH {
            eprintln!("{text} as {structure}");
            let compiled = compiled(&device, &program, structure);
            check_on(&compiled, &[scalars(3, 0), scalars(1, 1), scalars(0, 0)], tame, 1e-3);
        }
    }
}

fn run(compiled: &Compiled, data: &mut [Vec<Vec<f32>>], all: &[Scalars]) {
    let program = compiled.program();
    let tasks = data.iter_mut().zip(all).map(|(d, s)| task(program, *s, d));
    compiled.run(&mut tasks.collect::<Vec<_>>()).unwrap();
}

fn bits(data: &[Vec<f32>]) -> Vec<Vec<u32>> {
    data.iter().map(|a| a.iter().map(|x| x.to_bits()).collect()).collect()
}

/// Streams of different lengths beside one another, one of them full of NaN, give what each gives alone, each time.
#[test]
fn streams_have_nothing_to_do_with_one_another() {
    let Some(device) = device() else { return };
    let program = blocks(LAYERS[4], 16, 24);
    let all = [scalars(2, 0), scalars(1, 1), scalars(3, 0)];
    for structure in BOTH {
        let compiled = compiled(&device, &program, structure);
        let fresh = || -> Vec<Vec<Vec<f32>>> {
            let one = |(s, seed): (&Scalars, u64)| {
                let mut data = arrays(&program, s.tokens, seed);
                tame(&program, &mut data);
                data
            };
            all.iter().zip(1..).map(one).collect()
        };
        let mut together = fresh();
        for (array, values) in program.arrays.iter().zip(&mut together[1]) {
            if matches!(array.role, Role::TokenInput { .. }) {
                values.fill(f32::NAN);
            }
        }
        run(&compiled, &mut together, &all);
        for at in [0, 2] {
            let mut alone = fresh();
            run(&compiled, &mut alone[at..=at], &all[at..=at]);
            assert_eq!(bits(&alone[at]), bits(&together[at]), "{structure} stream {at}");
        }
    }
}

/// Tokens after one, up to NaN, change nothing at or before it.
#[test]
fn the_future_leaves_the_past_as_it_was() {
    let Some(device) = device() else { return };
    for text in [LAYERS[0], LAYERS[1], LAYERS[4]] {
        let program = blocks(text, 16, 24);
        for structure in BOTH {
            let compiled = compiled(&device, &program, structure);
            let mut before = arrays(&program, 2, 7);
            tame(&program, &mut before);
            let mut after = before.clone();
            // Inside the second of two blocks.
            let block = before[program.arrays.iter().position(|a| a.name == "q").unwrap()].len() / (2 * 24);
            let past = block + block / 4 + 1;
            for (array, values) in program.arrays.iter().zip(&mut after) {
                if matches!(array.role, Role::TokenInput { .. }) {
                    let (size, name) = (values.len() / (2 * block), &array.name);
                    let bad = if name == "k" { f32::NAN } else { f32::MAX };
                    values[past * size..].fill(bad);
                }
            }
            run(&compiled, std::slice::from_mut(&mut before), &[scalars(2, 0)]);
            run(&compiled, std::slice::from_mut(&mut after), &[scalars(2, 0)]);
            let o = program.arrays.iter().position(|a| matches!(a.role, Role::TokenOutput { .. })).unwrap();
            let end = past * before[o].len() / (2 * block);
            assert_eq!(
                bits(&[before[o][..end].to_vec()]),
                bits(&[after[o][..end].to_vec()]),
                "{text} {structure}"
            );
            assert!(after[o][end..].iter().any(|x| !x.is_finite()), "{text}: the future does go wrong");
        }
    }
}

/// Operands of a product as they lie.
#[derive(Clone, Copy, Debug)]
struct Operands {
    m: usize,
    n: usize,
    k: usize,
    triangular: bool,
    /// Whether the left side, the right side and the result lie column by column.
    columns: [bool; 3],
}

/// Per token `c = 2 c + s a @ b`, then `o = c + 1` at each element.
fn product(of: Operands) -> Verified<Program> {
    let Operands { m, n, k, triangular, columns } = of;
    let mut p = Program::new("product");
    let token = Role::TokenInput { entries: 1 };
    let a = p.add_array("a", token, &[m, k], "");
    let b = p.add_array("b", token, &[k, n], "");
    let before = p.add_array("c.before", token, &[m, n], "");
    let s = p.add_array("s", token, &[], "");
    let c = p.add_array("c", Role::Scratch, &[m, n], "");
    let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &[m, n], "");
    let t = p.add_var("t");
    let whole = |array, size: usize| Access::new(array, Affine::term(size as i64, t));
    let copy = Stmt::Copy(Copy {
        equation: "c as it was".into(),
        src: whole(before, m * n),
        dst: Access::start(c),
        len: m * n,
    });
    let matrix = |start, [rows, cols]: [usize; 2], by_column: bool| {
        let (row_stride, col_stride) = if by_column { (1, rows) } else { (cols, 1) };
        Matrix { start, row_stride, col_stride }
    };
    let product = Stmt::Product(Product {
        equation: String::new(),
        m,
        n,
        k,
        a: matrix(whole(a, m * k), [m, k], columns[0]),
        b: matrix(whole(b, k * n), [k, n], columns[1]),
        c: matrix(Access::start(c), [m, n], columns[2]),
        alpha: Factor::Load(whole(s, 1)),
        beta: Factor::Const(2.0),
        triangular,
    });
    let point = p.axis("i", m * n);
    let mut more = Nest::new("o = c + 1", vec![point]);
    let own = more.load(c, Affine::term(1, point.var));
    let one = more.constant(1.0);
    let sum = more.fn2(Fn2::Add, own, one);
    more.store(o, Affine::term((m * n) as i64, t).plus(1, point.var), sum);
    let body = vec![copy, product, Stmt::Nest(more)];
    p.body = vec![Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body })];
    verified(p)
}

#[test]
fn products_of_every_size_are_covered_by_tiles() {
    let Some(device) = device() else { return };
    let sizes = [(16, 16, 40), (17, 33, 40), (4, 70, 33), (64, 64, 64), (130, 140, 20)];
    for (at, (m, n, k)) in sizes.into_iter().enumerate() {
        let columns = [at % 2 == 1, at % 3 == 1, at % 4 == 1];
        for triangular in [false, true] {
            let program = product(Operands { m, n, k, triangular, columns });
            let compiled = compiled(&device, &program, Structure::SeveralLaunches);
            assert!(compiled.module().wgsl.contains("in tiles of"), "{}", compiled.module().wgsl);
            check(&compiled, &[Scalars::single(2), Scalars::single(1)], 1e-5);
        }
    }
}

/// A sum is in the order of its length, however large tiles are and however many there are.
#[test]
fn bits_of_a_product_depend_on_no_tiles() {
    let Some(device) = device() else { return };
    const K: usize = 50;
    let rows = |m: usize, n: usize| {
        let program = product(Operands { m, n, k: K, triangular: false, columns: [false, true, false] });
        let mut data = arrays(&program, 1, 3);
        let (a, b) = (arrays(&program, 1, 11)[0].clone(), arrays(&program, 1, 12)[0].clone());
        // The same first rows of a and first columns of b, whatever the size.
        data[0] = a.iter().cycle().take(m * K).copied().collect();
        data[1] = b.iter().cycle().take(n * K).copied().collect();
        data[2].fill(0.5);
        data[3].fill(0.75);
        let compiled = compiled(&device, &program, Structure::SeveralLaunches);
        compiled.run(&mut [task(&program, Scalars::single(1), &mut data)]).unwrap();
        (0..16).flat_map(|i| data[5][i * n..i * n + 16].to_vec()).map(f32::to_bits).collect::<Vec<_>>()
    };
    let small = rows(16, 16);
    assert_eq!(rows(40, 40), small);
    assert_eq!(rows(128, 130), small);
}

/// One kernel would make more turns at a time than a device may allow; several launches do not.
#[test]
fn what_one_kernel_may_not_do_is_done_by_several_launches() {
    let Some(device) = device() else { return };
    let program = verified(programs::turns(70_000));
    let chosen = miras_gpu::structure(&device, &program, 1);
    let stops = device.description().contains("loops of at most");
    assert_eq!(chosen, if stops { Structure::SeveralLaunches } else { Structure::OneKernel });
    let compiled = compiled(&device, &program, Structure::SeveralLaunches);
    check(&compiled, &[Scalars::single(2)], 1e-4);
}

/// All launches of chunk programs stay within what every device allows: turns of loops in one invocation, and workgroup
/// memory, which wgpu does not count.
#[test]
fn chunk_programs_stay_within_the_limits_of_every_device() {
    for text in LAYERS {
        let program = blocks(text, 64, 64);
        for structure in BOTH {
            let module = emit(&program, structure).unwrap();
            let memory = module.workgroup_memory();
            assert!(memory <= MAX_WORKGROUP_MEMORY, "{text} as {structure}: {memory} bytes");
            if structure == Structure::SeveralLaunches {
                assert!(memory >= 2 * 256 * 4, "{text}: products go through workgroup memory");
            }
            for stage in &module.stages {
                let cost = stage.cost.constant().expect("no past is passed") + 1;
                // A block of one kernel may be too long for some device: then there are several launches.
                let whole = structure == Structure::OneKernel && cost > MAX_TURNS;
                assert!(cost <= MAX_TURNS || whole, "{text} as {structure}: {cost} in `{}`", stage.entry);
            }
            let plan = plan::plan(&program, &module, 64);
            windows(&plan.launches, &mut |launch| {
                let stage = module.stages.iter().find(|s| s.entry == launch.entry).unwrap();
                let cost = stage.cost.constant().unwrap() + 1;
                let window: u64 = launch.window.as_ref().map_or(1, |w| w.parse().unwrap());
                assert!(window == 1 || window * cost <= MAX_TURNS, "{text}: {window} turns of {cost}");
                assert!(
                    (window + 1) * cost > MAX_TURNS || launch.window.is_none(),
                    "{text}: windows are full"
                );
            });
        }
    }
}

fn windows(steps: &[Step], look: &mut impl FnMut(&Launch)) {
    for step in steps {
        match step {
            Step::Launch(launch) => look(launch),
            Step::Repeat(repeat) => windows(&repeat.launches, look),
        }
    }
}

#[test]
fn many_blocks_are_cut_into_windows_before_drivers_stop_them() {
    let Some(device) = device() else { return };
    let program = blocks(LAYERS[1], 16, 8);
    let one = compiled(&device, &program, Structure::OneKernel);
    // As many as make llvmpipe stop without a word.
    let cost: u64 = one.module().stages.iter().map(|s| s.cost.constant().unwrap()).sum();
    let many = (65_535 / cost) as usize + 2;
    for compiled in [one, compiled(&device, &program, Structure::SeveralLaunches)] {
        check_on(&compiled, &[scalars(many, 0), scalars(many - 1, 1)], tame, 1e-3);
    }
}

/// Several launches where tasks are few and blocks are large, one kernel otherwise.
#[test]
fn sizes_choose_the_structure() {
    let large = blocks(LAYERS[4], 64, 64);
    assert_eq!(Structure::of(&large, 1, None), Structure::SeveralLaunches);
    assert_eq!(Structure::of(&large, 255, None), Structure::SeveralLaunches);
    assert_eq!(Structure::of(&large, 256, None), Structure::OneKernel);
    assert_eq!(Structure::of(&blocks(LAYERS[1], 16, 8), 1, None), Structure::OneKernel);
    assert_eq!(Structure::of(&verified(programs::delta(48, 300)), 1, None), Structure::OneKernel);
    assert_eq!(Structure::of(&verified(programs::passes(4)), 1, None), Structure::OneKernel);
    // 57,000 turns of loops for a block, in one kernel.
    assert_eq!(Structure::of(&large, 256, Some(10_000)), Structure::SeveralLaunches);
}
