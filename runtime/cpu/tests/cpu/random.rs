//! Random nests: loops, strides, reductions of reductions, updates in place, in every combination.

use crate::programs::{Random, build, check};
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_kernel::build::row_major;
use miras_kernel::interpret::Scalars;
use miras_kernel::{Affine, ArrayId, Axis, Expr, ExprId, Nest, Op, Program, Role, Scalar, Stmt};

const NESTS: u64 = 150;
const EXTENTS: [usize; 9] = [1, 2, 3, 4, 5, 7, 16, 18, 33];
/// Above every offset: 4 variables of at most 32 with coefficients of at most 40, and a constant.
const GIVEN: usize = 4 * 32 * 40 + 100;

#[test]
fn compiled_nests_mean_what_the_interpreter_says() {
    for seed in 1..=NESTS {
        let mut maker = Maker { random: Random::new(seed) };
        // Values are kept within about 1; sums of up to 1089 of them are scaled down before use.
        check(maker.program(seed), Scalars::single(2), (-1.0, 1.0), 2e-5);
    }
}

struct Maker {
    random: Random,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        self.random.next(0.0, n as f64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn program(&mut self, seed: u64) -> Program {
        let mut p = Program::new(format!("random {seed}"));
        let x = p.add_array("x", Role::HeadInput, &[GIVEN], "");
        let loops: Vec<Axis> =
            (0..self.below(3)).map(|i| p.axis(format!("i{i}"), self.pick(&EXTENTS))).collect();
        let shape: Vec<usize> = loops.iter().map(|a| a.extent).collect();
        let start = p.add_array("state.in", Role::StateIn, &shape, "");
        let y = p.add_array("state.out", Role::StateOut, &shape, "");
        let t = p.add_var("t");
        let nest = self.nest(&mut p, x, y, loops);
        let len = shape.iter().product();
        p.body = vec![build::copy("y = y_0", start, y, len), build::over_tokens(t, vec![Stmt::Nest(nest)])];
        p
    }

    fn nest(&mut self, p: &mut Program, x: ArrayId, y: ArrayId, loops: Vec<Axis>) -> Nest {
        let mut n = Nest::new("random", loops.clone());
        // Any order of the loops in memory.
        let mut order = loops.clone();
        if self.below(2) == 0 {
            order.reverse();
        }
        let sizes: Vec<usize> = order.iter().map(|a| a.extent).collect();
        let vars: Vec<_> = order.iter().map(|a| a.var).collect();
        let place = row_major(&sizes, &vars);
        let mut pool = vec![n.load(y, place.clone()), n.constant(0.5), n.expr(Expr::Scalar(Scalar::Heads))];
        self.loads(&mut n, x, &loops, &mut pool);
        for r in 0..self.below(4) {
            let count = 1 + self.below(2);
            let own: Vec<Axis> =
                (0..count).map(|i| p.axis(format!("r{r}{i}"), self.pick(&EXTENTS))).collect();
            let mut inside = pool.clone();
            let all: Vec<Axis> = loops.iter().chain(&own).copied().collect();
            self.loads(&mut n, x, &all, &mut inside);
            let value = self.mix(&mut n, inside);
            let op = self.pick(&[Op::Sum, Op::Sum, Op::Max, Op::Min]);
            let reduced = n.reduce(op, own, value);
            let scale = n.constant(0.05);
            let scaled = n.fn2(Fn2::Mul, reduced, scale);
            pool.push(n.fn1(Fn1::Tanh, scaled));
        }
        let value = self.mix(&mut n, pool);
        n.store(y, place, value);
        n
    }

    fn loads(&mut self, n: &mut Nest, x: ArrayId, axes: &[Axis], pool: &mut Vec<ExprId>) {
        for _ in 0..2 {
            let mut offset = Affine::constant(self.below(50) as i64);
            for axis in axes {
                offset = offset.plus(self.pick(&[0, 1, 1, 2, 33, 40]), axis.var);
            }
            pool.push(n.load(x, offset));
        }
        if let Some(axis) = axes.last() {
            let index = n.expr(Expr::Index(axis.var));
            let scale = n.constant(64.0);
            pool.push(n.fn2(Fn2::Div, index, scale));
        }
    }

    /// A few operations on the newest values and some others, within about 1.
    fn mix(&mut self, n: &mut Nest, mut pool: Vec<ExprId>) -> ExprId {
        for _ in 0..4 {
            let recent = pool.len().saturating_sub(3);
            let a = pool[recent + self.below(pool.len() - recent)];
            let b = self.pick(&pool);
            let made = match self.below(6) {
                0 => n.fn2(Fn2::Add, a, b),
                1 => n.fn2(Fn2::Sub, a, b),
                2 => n.fn2(Fn2::Mul, a, b),
                3 => n.fn2(Fn2::Max, a, b),
                4 => n.fn1(Fn1::Silu, a),
                // Continuous, so that rounding cannot choose the other side by much.
                _ => n.select(Cmp::Lt, a, b, a, b),
            };
            pool.push(n.fn1(Fn1::Tanh, made));
        }
        pool[pool.len() - 1]
    }
}
