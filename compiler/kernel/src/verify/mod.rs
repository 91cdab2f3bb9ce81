//! What makes a program one that emitters may trust.
//!
//! Everything that could make emitted code read or write outside an array, read what was never written,
//! or depend on the order in which points run is refused here, so that emitters need no checks of their
//! own. A refusal is a bug of the room before, except for the two limits: an array of more than
//! [`MAX_ELEMENTS`] elements, and a proof of more than [`MAX_STEPS`] steps.

mod filled;
mod footprint;
mod nest;
mod place;

#[cfg(test)]
mod tests;

use crate::ir::{Access, Axis};
use crate::ir::{Apply, ArrayId, Copy, Count, Factor, Loop, Matrix, Product, Program, Role, Stmt, VarId};
use footprint::{Footprint, apart};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// The largest array, or part of a token array that belongs to one token, in elements (8 GiB of floats).
pub const MAX_ELEMENTS: usize = 1 << 31;

/// The longest proof that everything is written before it is read, in runs of elements looked at.
pub const MAX_STEPS: usize = 1 << 22;

/// How deep loops may be nested.
pub const MAX_DEPTH: usize = 64;

/// Something that passed its verifier; the next room accepts only that.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// The thing itself, no longer known to be verified.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Proves the invariants that the crate's page lists.
///
/// # Errors
/// E0901 where one does not hold, naming the array, the equation and the reason; E0402 for an array or a
/// proof above the limits.
pub fn verify(program: Program) -> Result<Verified<Program>, Diagnostic> {
    arrays(&program)?;
    let mut check = Check { program: &program, scope: BTreeMap::new(), seen: BTreeSet::new(), depth: 0 };
    check.block(&program.body)?;
    filled::check(&program)?;
    Ok(Verified(program))
}

/// A refusal: the room before has made a mistake.
fn refuse(program: &Program, reason: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::bug(format!("kernel program `{}`: {reason}", program.name))
}

fn limit(program: &Program, reason: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(code::UNSUPPORTED, format!("kernel program `{}`: {reason}", program.name))
        .with_help("use smaller dimensions, or the reference backend")
}

fn arrays(program: &Program) -> Result<(), Diagnostic> {
    let mut names = BTreeSet::new();
    for array in &program.arrays {
        // A state that comes in and the state handed on have one name: that of the tensor in files.
        if !names.insert((array.role == Role::StateIn, &array.name)) {
            return Err(refuse(program, format!("two arrays are called `{}`", array.name)));
        }
        if array.shape.contains(&0) || array.role.entries() == Some(0) {
            return Err(refuse(program, format!("array `{}` has no elements", array.name)));
        }
        if array.part().is_none_or(|n| n > MAX_ELEMENTS) {
            return Err(limit(
                program,
                format!("array `{}` {:?} has more than 2^31 elements", array.name, array.shape),
            ));
        }
    }
    Ok(())
}

/// The walk over statements: loop variables, bounds, and what may meet what.
struct Check<'p> {
    program: &'p Program,
    /// Variables of the enclosing loops.
    scope: BTreeMap<VarId, Count>,
    /// Every variable bound so far.
    seen: BTreeSet<VarId>,
    depth: usize,
}

impl Check<'_> {
    fn block(&mut self, body: &[Stmt]) -> Result<(), Diagnostic> {
        for stmt in body {
            match stmt {
                Stmt::Loop(l) => self.repeat(l)?,
                Stmt::Nest(n) => self.nest(n)?,
                Stmt::Apply(a) => self.apply(a)?,
                Stmt::Copy(c) => self.copy(c)?,
                Stmt::Product(p) => self.product(p)?,
            }
        }
        Ok(())
    }

    fn repeat(&mut self, l: &Loop) -> Result<(), Diagnostic> {
        if l.count == Count::Const(0) {
            return Err(refuse(self.program, "a loop of fixed length runs zero times"));
        }
        if self.depth == MAX_DEPTH {
            return Err(limit(self.program, format!("loops are nested more than {MAX_DEPTH} deep")));
        }
        self.bind(l.var, l.count)?;
        self.depth += 1;
        self.block(&l.body)?;
        self.depth -= 1;
        self.scope.remove(&l.var);
        Ok(())
    }

    fn bind(&mut self, var: VarId, count: Count) -> Result<(), Diagnostic> {
        let Some(known) = self.program.vars.get(var.0 as usize) else {
            return Err(refuse(self.program, format!("loop variable {var:?} does not exist")));
        };
        if !self.seen.insert(var) {
            return Err(refuse(self.program, format!("loop variable `{}` is bound twice", known.name)));
        }
        self.scope.insert(var, count);
        Ok(())
    }

    fn bind_axes(&mut self, axes: &[Axis]) -> Result<(), Diagnostic> {
        for axis in axes {
            if axis.extent == 0 {
                return Err(refuse(self.program, "a loop of a nest has no points"));
            }
            self.bind(axis.var, Count::Const(axis.extent))?;
        }
        Ok(())
    }

    fn release(&mut self, axes: &[Axis]) {
        for axis in axes {
            self.scope.remove(&axis.var);
        }
    }

    fn apply(&self, a: &Apply) -> Result<(), Diagnostic> {
        let (src, dst) = self.runs(&a.equation, &a.src, &a.dst, a.len)?;
        if a.src != a.dst && !apart(&src, &dst) {
            return Err(self.meet(&a.equation, a.src.array));
        }
        Ok(())
    }

    fn copy(&self, c: &Copy) -> Result<(), Diagnostic> {
        let (src, dst) = self.runs(&c.equation, &c.src, &c.dst, c.len)?;
        if !apart(&src, &dst) {
            return Err(self.meet(&c.equation, c.src.array));
        }
        Ok(())
    }

    fn runs(
        &self,
        equation: &str,
        src: &Access,
        dst: &Access,
        len: usize,
    ) -> Result<(Footprint, Footprint), Diagnostic> {
        if len == 0 {
            return Err(refuse(self.program, format!("`{equation}` has no elements")));
        }
        let src = Footprint::of(src, &[], &[(1, len)]);
        let dst = Footprint::of(dst, &[], &[(1, len)]);
        self.place(equation, &src)?;
        self.target(equation, &dst)?;
        Ok((src, dst))
    }

    fn product(&self, p: &Product) -> Result<(), Diagnostic> {
        if p.m == 0 || p.n == 0 || p.k == 0 {
            return Err(refuse(self.program, format!("`{}` has no elements", p.equation)));
        }
        let a = matrix(&p.a, p.m, p.k);
        let b = matrix(&p.b, p.k, p.n);
        let c = matrix(&p.c, p.m, p.n);
        self.place(&p.equation, &a)?;
        self.place(&p.equation, &b)?;
        self.target(&p.equation, &c)?;
        for read in [Some(a), Some(b), factor(&p.alpha), factor(&p.beta)].into_iter().flatten() {
            self.place(&p.equation, &read)?;
            if !apart(&read, &c) {
                return Err(self.meet(&p.equation, read.array));
            }
        }
        Ok(())
    }

    /// A store: in bounds, to an array that may be written, each element once.
    fn target(&self, equation: &str, target: &Footprint) -> Result<(), Diagnostic> {
        self.place(equation, target)?;
        let name = self.name(target.array);
        if !self.program.array(target.array).is_some_and(|a| a.role.writable()) {
            return Err(refuse(self.program, format!("`{equation}` stores to `{name}`, which is given")));
        }
        if !target.injective() {
            return Err(refuse(
                self.program,
                format!("`{equation}` may store twice to the same element of `{name}`"),
            ));
        }
        Ok(())
    }

    fn meet(&self, equation: &str, array: ArrayId) -> Diagnostic {
        let name = self.name(array);
        refuse(self.program, format!("`{equation}` reads parts of `{name}` that it also stores to"))
    }

    fn name(&self, array: ArrayId) -> &str {
        self.program.array(array).map_or("?", |a| &a.name)
    }
}

fn matrix(m: &Matrix, rows: usize, cols: usize) -> Footprint {
    let stride = |s: usize| i64::try_from(s).unwrap_or(i64::MAX);
    Footprint::of(&m.start, &[], &[(stride(m.row_stride), rows), (stride(m.col_stride), cols)])
}

fn factor(f: &Factor) -> Option<Footprint> {
    match f {
        Factor::Const(_) => None,
        Factor::Load(access) => Some(Footprint::of(access, &[], &[])),
    }
}
