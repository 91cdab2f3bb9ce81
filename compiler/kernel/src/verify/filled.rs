//! Written before read: which elements certainly hold a number at each statement.
//!
//! An abstract run: loops of fixed length are followed turn by turn where an access depends on them, a token
//! loop once, for its first token (elements are only ever gained, so the first is the worst); what a token
//! loop writes outside the token's own part does not count after it, since there may be no token.

use super::footprint::Footprint;
use super::{MAX_STEPS, limit, refuse};
use crate::ir::{Access, ArrayId, Axis, Count, Expr, Factor, Loop, Matrix, Nest, Order, Product, Program};
use crate::ir::{Role, Stmt, VarId};
use miras_base::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// Refuses reads of what may not have been written, and outputs that may not be written whole.
pub(super) fn check(program: &Program) -> Result<(), Diagnostic> {
    let mut walk = Walk {
        program,
        held: Held { fixed: vec![Runs::default(); program.arrays.len()], tokens: BTreeMap::new() },
        whole: BTreeSet::new(),
        turns: BTreeMap::new(),
        steps: 0,
    };
    walk.block(&program.body)?;
    walk.outputs()
}

/// Disjoint runs of elements: first -> one past the last. No two touch.
#[derive(Clone, Debug, Default, PartialEq)]
struct Runs(BTreeMap<i64, i64>);

impl Runs {
    fn add(&mut self, mut first: i64, mut end: i64) {
        while let Some((&f, &e)) = self.0.range(..=end).next_back() {
            if e < first {
                break;
            }
            self.0.remove(&f);
            first = first.min(f);
            end = end.max(e);
        }
        self.0.insert(first, end);
    }

    fn covers(&self, first: i64, end: i64) -> bool {
        self.0.range(..=first).next_back().is_some_and(|(_, &e)| e >= end)
    }
}

/// What holds a number.
#[derive(Clone, Debug)]
struct Held {
    /// By array: scratch and outgoing states.
    fixed: Vec<Runs>,
    /// By array and token loop: the parts of the token at hand.
    tokens: BTreeMap<(ArrayId, VarId), Runs>,
}

struct Walk<'p> {
    program: &'p Program,
    held: Held,
    /// Token outputs that some token loop writes whole.
    whole: BTreeSet<ArrayId>,
    /// Turn of each enclosing loop of fixed length.
    turns: BTreeMap<VarId, i64>,
    steps: usize,
}

impl Walk<'_> {
    fn block(&mut self, body: &[Stmt]) -> Result<(), Diagnostic> {
        for stmt in body {
            match stmt {
                Stmt::Loop(l) => match l.count {
                    Count::Const(n) => self.fixed_loop(l, n)?,
                    Count::Tokens | Count::Past => self.token_loop(l)?,
                },
                Stmt::Nest(n) => self.nest(n)?,
                Stmt::Apply(a) => self.run(&a.equation, &a.src, &a.dst, a.len)?,
                Stmt::Copy(c) => self.run(&c.equation, &c.src, &c.dst, c.len)?,
                Stmt::Product(p) => self.product(p)?,
            }
        }
        Ok(())
    }

    fn fixed_loop(&mut self, l: &Loop, n: usize) -> Result<(), Diagnostic> {
        let turns = if mentions(&l.body, l.var) { n } else { 1 };
        for turn in 0..turns {
            let value = match l.order {
                Order::Ascending => turn,
                Order::Descending => turns - 1 - turn,
            };
            self.turns.insert(l.var, i64::try_from(value).unwrap_or(i64::MAX));
            self.step(1)?;
            self.block(&l.body)?;
        }
        self.turns.remove(&l.var);
        Ok(())
    }

    fn token_loop(&mut self, l: &Loop) -> Result<(), Diagnostic> {
        let before = self.held.clone();
        self.block(&l.body)?;
        for ((array, var), runs) in &self.held.tokens {
            let part = self.program.array(*array).and_then(|a| a.part());
            if *var == l.var && part.is_some_and(|n| runs.covers(0, n as i64)) {
                self.whole.insert(*array);
            }
        }
        self.held = before;
        Ok(())
    }

    fn nest(&mut self, nest: &Nest) -> Result<(), Diagnostic> {
        let inner = nest.reductions.iter().flat_map(|r| r.loops.iter().copied());
        let axes: Vec<Axis> = nest.loops.iter().copied().chain(inner).collect();
        for expr in &nest.exprs {
            if let Expr::Load(access) = expr {
                let used: Vec<Axis> =
                    axes.iter().filter(|a| access.offset.coefficient(a.var) != 0).copied().collect();
                self.read(&nest.equation, Footprint::of(access, &used, &[]))?;
            }
        }
        for store in &nest.stores {
            self.write(Footprint::of(&store.target, &nest.loops, &[]))?;
        }
        Ok(())
    }

    fn run(&mut self, equation: &str, src: &Access, dst: &Access, len: usize) -> Result<(), Diagnostic> {
        self.read(equation, Footprint::of(src, &[], &[(1, len)]))?;
        self.write(Footprint::of(dst, &[], &[(1, len)]))
    }

    fn product(&mut self, p: &Product) -> Result<(), Diagnostic> {
        self.read(&p.equation, print(&p.a, p.m, p.k))?;
        self.read(&p.equation, print(&p.b, p.k, p.n))?;
        for factor in [&p.alpha, &p.beta] {
            if let Factor::Load(access) = factor {
                self.read(&p.equation, Footprint::of(access, &[], &[]))?;
            }
        }
        if p.beta != Factor::Const(0.0) {
            self.read(&p.equation, print(&p.c, p.m, p.n))?;
        }
        self.write(print(&p.c, p.m, p.n))
    }

    fn read(&mut self, equation: &str, print: Footprint) -> Result<(), Diagnostic> {
        let program = self.program;
        let Some(array) = program.array(print.array) else {
            return Ok(());
        };
        if !array.role.writable() || self.whole.contains(&print.array) {
            return Ok(());
        }
        let runs = self.runs(&print)?;
        let held = self.place(&print);
        if runs.iter().all(|&(first, end)| held.covers(first, end)) {
            return Ok(());
        }
        let name = &array.name;
        Err(refuse(program, format!("`{equation}` may read `{name}` before it is written")))
    }

    fn write(&mut self, print: Footprint) -> Result<(), Diagnostic> {
        let runs = self.runs(&print)?;
        let held = self.place(&print);
        for (first, end) in runs {
            held.add(first, end);
        }
        Ok(())
    }

    /// The runs held of the array, or of the array's part for the token that the access names.
    fn place(&mut self, print: &Footprint) -> &mut Runs {
        let token = print.outer.keys().find(|v| !self.turns.contains_key(v));
        match token {
            Some(&var) => self.held.tokens.entry((print.array, var)).or_default(),
            None => &mut self.held.fixed[print.array.0 as usize],
        }
    }

    /// The footprint at this turn as runs: dense dimensions joined, the others enumerated.
    fn runs(&mut self, print: &Footprint) -> Result<Vec<(i64, i64)>, Diagnostic> {
        let mut start = print.base;
        for (var, coefficient) in &print.outer {
            start += self.turns.get(var).copied().unwrap_or(0) * coefficient;
        }
        let mut dims: Vec<(i64, i64)> = Vec::new();
        for &(c, e) in print.dims.iter().filter(|d| d.1 > 1) {
            let last = e as i64 - 1;
            start += c.min(0) * last;
            dims.push((c.abs(), last));
        }
        dims.sort_unstable();
        let mut len = 1;
        let mut rest: Vec<(i64, i64)> = Vec::new();
        for (c, last) in dims {
            if c <= len && rest.is_empty() {
                len += c * last;
            } else {
                rest.push((c, last));
            }
        }
        let count = rest.iter().fold(1usize, |n, d| n.saturating_mul(d.1 as usize + 1));
        self.step(count)?;
        Ok(starts(start, &rest).into_iter().map(|s| (s, s + len)).collect())
    }

    fn step(&mut self, by: usize) -> Result<(), Diagnostic> {
        self.steps = self.steps.saturating_add(by);
        if self.steps > MAX_STEPS {
            return Err(limit(
                self.program,
                "it is too large to prove that all is written before it is read",
            ));
        }
        Ok(())
    }

    fn outputs(&self) -> Result<(), Diagnostic> {
        for (array, runs) in self.program.arrays.iter().zip(&self.held.fixed) {
            let part = array.part().map_or(i64::MAX, |n| n as i64);
            let done = match array.role {
                Role::StateOut => runs.covers(0, part),
                Role::TokenOutput { .. } => {
                    self.program.find(&array.name).is_some_and(|id| self.whole.contains(&id))
                }
                Role::TokenInput { .. }
                | Role::PastInput { .. }
                | Role::HeadInput
                | Role::StateIn
                | Role::Scratch => true,
            };
            if !done {
                let name = &array.name;
                return Err(refuse(self.program, format!("`{name}` may not be written whole")));
            }
        }
        Ok(())
    }
}

fn print(m: &Matrix, rows: usize, cols: usize) -> Footprint {
    super::matrix(m, rows, cols)
}

/// `start + sum of c * i` for all `0 <= i <= last` of each dimension.
fn starts(start: i64, dims: &[(i64, i64)]) -> Vec<i64> {
    let mut all = vec![start];
    for &(c, last) in dims {
        all = all.iter().flat_map(|&s| (0..=last).map(move |i| s + c * i)).collect();
    }
    all
}

/// Whether any access below depends on the variable.
fn mentions(body: &[Stmt], var: VarId) -> bool {
    let on = |a: &Access| a.offset.coefficient(var) != 0;
    let factor = |f: &Factor| match f {
        Factor::Const(_) => false,
        Factor::Load(a) => on(a),
    };
    body.iter().any(|stmt| match stmt {
        Stmt::Loop(l) => mentions(&l.body, var),
        Stmt::Nest(n) => {
            let loads = n.exprs.iter().any(|e| matches!(e, Expr::Load(a) if on(a)));
            loads || n.stores.iter().any(|s| on(&s.target))
        }
        Stmt::Apply(a) => on(&a.src) || on(&a.dst),
        Stmt::Copy(c) => on(&c.src) || on(&c.dst),
        Stmt::Product(p) => {
            let matrices = [&p.a, &p.b, &p.c].iter().any(|m| on(&m.start));
            matrices || factor(&p.alpha) || factor(&p.beta)
        }
    })
}
