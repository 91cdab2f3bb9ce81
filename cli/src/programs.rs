//! The programs that a problem is run by: one for all tokens, or several for the pieces of its streams.

use crate::backend::{one, sizes, start};
use driver::{Made, Outcome, Session};
use kernel::{Program, Stmt, Verified};
use miras_base::Diagnostic;
use miras_base::diagnostic::{Fault, code, entry};
use miras_driver as driver;
use miras_host as host;
use miras_kernel as kernel;
use miras_schedule::{Plan, Schedule};
use miras_tasks::{Pieces, has_blocks, leaves_rest};
use miras_tensor::Start::State;

/// Programs, or what a device has made of them.
pub(crate) enum Programs<T> {
    /// One for all tokens; with the limit that stands against blocks, where the plan takes tokens by blocks.
    Whole(T, Option<String>),
    /// One for blocks of tokens, others around it.
    Pieces(Pieces<T>),
}

/// The programs of a plan for a problem.
///
/// # Errors
/// Those of [`Session::compile`].
pub(crate) fn programs(
    session: &mut Session<'_>,
    plan: &Plan,
    bound: &host::Bound,
) -> Outcome<Programs<Verified<Program>>> {
    let sizes = sizes(bound);
    let whole = session.compile(plan, &sizes, start(bound))?;
    pieces(
        session,
        plan,
        bound,
        whole,
        |s| s.compile_blocks(plan, &sizes),
        |s| s.compile(plan, &sizes, State),
    )
}

/// Statements that one kernel may have where gradients go back through blocks: compilers of kernels take time that
/// grows faster than a kernel, and some minutes for a memory of two layers.
pub(crate) const KERNEL: usize = 100;

/// The programs of a plan for a problem with gradients; a program of blocks has at most so many statements.
///
/// # Errors
/// Those of [`Session::backward`].
pub(crate) fn backward(
    session: &mut Session<'_>,
    plan: &Plan,
    bound: &host::Bound,
    most: usize,
) -> Outcome<Programs<driver::Backward>> {
    let (sizes, declared) = (sizes(bound), bound.weights.iter().map(|w| !w.given).collect::<Vec<_>>());
    let whole = session.backward(plan, &sizes, start(bound), &declared)?;
    let rest = |s: &mut Session<'_>| s.backward(plan, &sizes, State, &[]);
    let blocks = |s: &mut Session<'_>| {
        s.backward_blocks(plan, &sizes)?.then(|blocks| {
            let long = blocks.as_ref().map_or(0, |b| statements(&b.back.body));
            if long > most {
                let what =
                    format!("going back by blocks takes {long} statements, and a kernel has {most} at most");
                return Err(one(Diagnostic::new(code::UNSUPPORTED, what)));
            }
            Ok(Made::new(blocks, Vec::new()))
        })
    };
    pieces(session, plan, bound, whole, blocks, rest)
}

fn statements(body: &[Stmt]) -> usize {
    let count = |statement: &Stmt| match statement {
        Stmt::Loop(inner) => statements(&inner.body),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => 1,
    };
    body.iter().map(count).sum()
}

/// What goes through all tokens, with what goes through blocks and what is left after them where some stream has
/// whole blocks.
fn pieces<'s, T>(
    session: &mut Session<'s>,
    plan: &Plan,
    bound: &host::Bound,
    whole: Made<T>,
    blocks: impl FnOnce(&mut Session<'s>) -> Outcome<Option<T>>,
    rest: impl FnOnce(&mut Session<'s>) -> Outcome<T>,
) -> Outcome<Programs<T>> {
    let mut said = Vec::new();
    let start = whole.heard(&mut said);
    let tokens = plan.blocks.tokens as usize;
    let at_borders = matches!(plan.schedule, Schedule::ChunkedFrozen(_));
    if !plan.blocks.together() || !has_blocks(bound, tokens, at_borders) {
        return Ok(Made::new(Programs::Whole(start, None), said));
    }
    let blocks = match blocks(session) {
        Ok(blocks) => blocks.heard(&mut said),
        Err(errors) => match limit(&errors) {
            Some(why) => return Ok(Made::new(Programs::Whole(start, Some(why)), said)),
            None => return Err(errors),
        },
    };
    let Some(blocks) = blocks else { return Ok(Made::new(Programs::Whole(start, None), said)) };
    let rest = match leaves_rest(bound, tokens, at_borders) {
        true => Some(rest(session)?.heard(&mut said)),
        false => None,
    };
    Ok(Made::new(Programs::Pieces(Pieces { start, blocks, tokens, at_borders, rest }), said))
}

/// The limit that was met, if these are limits of ours or of a device and nothing else.
pub(crate) fn limit(errors: &[Diagnostic]) -> Option<String> {
    let limits = errors.iter().all(|e| entry(e.code).is_some_and(|e| e.fault == Fault::Limit));
    errors.first().filter(|_| limits).map(|e| e.message.clone())
}

impl<T> Programs<T> {
    /// Each made into something else. Blocks that a limit stands against are left out.
    ///
    /// # Errors
    /// The first that occurs.
    pub(crate) fn made<U>(
        &self,
        mut make: impl FnMut(&T) -> Result<U, Diagnostic>,
    ) -> Result<Programs<U>, Vec<Diagnostic>> {
        let mut make = |t: &T| make(t).map_err(one);
        Ok(match self {
            Programs::Whole(program, why) => Programs::Whole(make(program)?, why.clone()),
            Programs::Pieces(p) => {
                let start = make(&p.start)?;
                let blocks = match make(&p.blocks) {
                    Ok(blocks) => blocks,
                    Err(errors) => match limit(&errors) {
                        Some(why) => return Ok(Programs::Whole(start, Some(why))),
                        None => return Err(errors),
                    },
                };
                let rest = p.rest.as_ref().map(make).transpose()?;
                Programs::Pieces(Pieces { start, blocks, tokens: p.tokens, at_borders: p.at_borders, rest })
            }
        })
    }
}
