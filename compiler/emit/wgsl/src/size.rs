//! What is not emitted: texts that shader compilers would chew on for minutes.

use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_kernel::{Axis, Count, Program, Stmt, Verified};

/// The most expressions and statements that are written out.
pub const MAX_PARTS: usize = 20_000;

pub(crate) fn check(program: &Verified<Program>) -> Result<(), Diagnostic> {
    if !countable(&program.body) {
        let what = format!("`{}` has a loop of 2^31 turns or more", program.name);
        return Err(Diagnostic::new(code::UNSUPPORTED, what).with_help("use smaller dimensions"));
    }
    let parts = block(&program.body).saturating_add(program.arrays.len());
    if parts <= MAX_PARTS {
        return Ok(());
    }
    let what =
        format!("`{}` is too large for a shader: {parts} expressions of at most {MAX_PARTS}", program.name);
    Err(Diagnostic::new(code::UNSUPPORTED, what)
        .with_help("unroll fewer steps in the program, or use the cpu or reference backend"))
}

fn block(body: &[Stmt]) -> usize {
    let parts = body.iter().map(|stmt| match stmt {
        Stmt::Loop(l) => block(&l.body).saturating_add(1),
        Stmt::Nest(n) => n.exprs.len() + n.stores.len() + n.loops.len(),
        Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => 1,
    });
    parts.fold(0, usize::saturating_add)
}

/// Whether 32 bits count the turns of every loop.
fn countable(body: &[Stmt]) -> bool {
    const MOST: usize = 1 << 31;
    let product =
        |sizes: &[usize]| sizes.iter().try_fold(1, |n: usize, s| n.checked_mul(*s)).is_some_and(|n| n < MOST);
    let extents = |axes: &[Axis]| product(&axes.iter().map(|a| a.extent).collect::<Vec<_>>());
    body.iter().all(|stmt| match stmt {
        Stmt::Loop(l) => {
            let turns = match l.count {
                Count::Const(n) => n < MOST,
                Count::Tokens | Count::Past => true,
            };
            turns && countable(&l.body)
        }
        Stmt::Nest(n) => extents(&n.loops) && n.reductions.iter().all(|r| extents(&r.loops)),
        Stmt::Apply(a) => a.len < MOST,
        Stmt::Copy(c) => c.len < MOST,
        Stmt::Product(p) => product(&[p.m, p.n]) && p.k < MOST,
    })
}
