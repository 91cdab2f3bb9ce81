//! A guard against programs that would take minutes to compile.

use crate::plan::{Place, Plan, plan};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_base::scalar::single;
use miras_kernel::{Expr, Nest, Program, Stmt, Verified};

/// The largest function that is compiled, in estimated instructions: a few seconds' work for Cranelift.
pub const MAX_INSTRUCTIONS: usize = 400_000;

/// Copies of a body that lanes run through: four vectors at once, one vector, one element.
const COPIES: usize = 6;

/// Refuses programs above the limit.
pub(crate) fn check(program: &Verified<Program>) -> Result<(), Diagnostic> {
    let size = block(&program.body);
    if size <= MAX_INSTRUCTIONS {
        return Ok(());
    }
    Err(Diagnostic::new(
        code::UNSUPPORTED,
        format!(
            "`{}` is too large to compile: about {size} instructions of at most {MAX_INSTRUCTIONS}",
            program.name
        ),
    )
    .with_help("unroll fewer steps in the program, or use the reference backend"))
}

fn block(body: &[Stmt]) -> usize {
    let sizes = body.iter().map(|stmt| match stmt {
        Stmt::Loop(l) => block(&l.body).saturating_add(8),
        Stmt::Nest(n) => plan(n).map_or(0, |p| nest(n, &p)),
        Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => 40,
    });
    sizes.fold(0, usize::saturating_add)
}

fn nest(nest: &Nest, plan: &Plan) -> usize {
    let loops = plan.loops.len() + nest.reductions.iter().map(|r| r.loops.len()).sum::<usize>();
    let start = (loops + nest.stores.len()).saturating_mul(8 * COPIES);
    nest.exprs.iter().zip(&plan.places).fold(start, |sum, (expr, place)| {
        let copies = match place {
            None => 0,
            Some(Place::Point(depth)) if *depth < plan.loops.len() => 1,
            Some(Place::Point(_) | Place::Within(..)) => COPIES,
        };
        sum.saturating_add(copies * steps(expr))
    })
}

/// Instructions of one expression.
pub(crate) fn steps(expr: &Expr) -> usize {
    match expr {
        Expr::Const(_) | Expr::Scalar(_) | Expr::Reduced(_) => 1,
        Expr::Index(_) | Expr::Load(_) | Expr::Select { .. } => 4,
        Expr::Fn1(f, _) => single::single(*f).steps.len(),
        Expr::Fn2(f, _, _) => single::single2(*f).steps.len(),
    }
}
