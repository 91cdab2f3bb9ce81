//! Expressions at one point: written into one another where that stays readable, else named.

use crate::function::{Function, binary};
use crate::shader::Emitter;
use crate::text::{Piece, float};
use miras_base::Diagnostic;
use miras_base::scalar::single::{Binary, WHOLE_LIMIT};
use miras_base::scalar::{Fn1, Fn2};
use miras_kernel::{Expr, ExprId, Nest, ReductionId, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// The values of a nest's expressions while it is written.
pub(crate) struct Values {
    owners: Vec<Option<ReductionId>>,
    /// How often each is used; uses inside a reduction by what is outside it count twice.
    uses: Vec<usize>,
    pieces: Vec<Option<Piece>>,
    /// Names given, those of inner blocks last.
    names: Vec<String>,
    sums: BTreeMap<ReductionId, String>,
    /// Whether a load must happen before the stores: its array is stored to.
    early: Vec<bool>,
}

impl Values {
    pub(crate) fn new(nest: &Nest) -> Result<Values, Diagnostic> {
        let owners = nest.owners();
        let owners = owners.ok_or_else(|| Diagnostic::bug(format!("`{}` is no nest", nest.equation)))?;
        let stored: BTreeSet<_> = nest.stores.iter().map(|s| s.target.array).collect();
        let early = |e: &Expr| matches!(e, Expr::Load(access) if stored.contains(&access.array));
        Ok(Values {
            uses: uses(nest, &owners),
            pieces: vec![None; nest.exprs.len()],
            names: Vec::new(),
            sums: BTreeMap::new(),
            early: nest.exprs.iter().map(early).collect(),
            owners,
        })
    }

    pub(crate) fn wanted(&self, at: usize) -> bool {
        self.uses[at] > 0
    }

    pub(crate) fn owner(&self, at: usize) -> Option<ReductionId> {
        self.owners[at]
    }

    pub(crate) fn piece(&self, id: ExprId) -> Result<&Piece, Diagnostic> {
        let piece = self.pieces.get(id.0 as usize).and_then(Option::as_ref);
        piece.ok_or_else(|| Diagnostic::bug("an expression is used before it is there"))
    }

    pub(crate) fn has_sum(&self, r: ReductionId) -> bool {
        self.sums.contains_key(&r)
    }

    /// The name of a reduction's result.
    pub(crate) fn sum(&self, r: ReductionId) -> Result<&str, Diagnostic> {
        let sum = self.sums.get(&r).map(String::as_str);
        sum.ok_or_else(|| Diagnostic::bug("a reduction is used before it is there"))
    }

    /// Names a reduction's result; the name is given back with the point's.
    pub(crate) fn set_sum(&mut self, r: ReductionId, name: String) {
        self.names.push(name.clone());
        self.sums.insert(r, name);
    }

    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn leave(&mut self, mark: usize) -> Vec<String> {
        self.names.split_off(mark)
    }
}

/// How often each expression is used by what is stored.
fn uses(nest: &Nest, owners: &[Option<ReductionId>]) -> Vec<usize> {
    let mut uses = vec![0_usize; nest.exprs.len()];
    for store in &nest.stores {
        uses[store.value.0 as usize] += 1;
    }
    // Users come after what they use, and so does a result after its reduction's value.
    for at in (0..nest.exprs.len()).rev() {
        if uses[at] == 0 {
            continue;
        }
        for operand in nest.exprs[at].operands() {
            let inside = owners[operand.0 as usize] != owners[at];
            uses[operand.0 as usize] += if inside { 2 } else { 1 };
        }
        if let Expr::Reduced(r) = nest.exprs[at]
            && let Some(reduction) = nest.reductions.get(r.0 as usize)
        {
            let value = reduction.value.0 as usize;
            uses[value] += if owners[value].is_none() { 2 } else { 1 };
        }
    }
    uses
}

impl Emitter<'_> {
    /// Computes one expression: its operands are there.
    pub(crate) fn value(&mut self, nest: &Nest, at: usize, values: &mut Values) -> Result<(), Diagnostic> {
        let piece = self.piece(nest, at, values)?;
        let leaf = match nest.exprs[at] {
            Expr::Const(_) | Expr::Index(_) | Expr::Scalar(_) | Expr::Reduced(_) => true,
            Expr::Load(_) | Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select { .. } => false,
        };
        let inline = leaf || (values.uses[at] == 1 && piece.short() && !values.early[at]);
        values.pieces[at] = Some(if inline { piece } else { self.named(nest, at, &piece, values) });
        Ok(())
    }

    fn named(&mut self, nest: &Nest, at: usize, piece: &Piece, values: &mut Values) -> Piece {
        let wish = match &nest.exprs[at] {
            Expr::Load(access) => {
                self.layout.places.get(access.array.0 as usize).map(|p| format!("{}_0", p.name))
            }
            Expr::Const(_)
            | Expr::Index(_)
            | Expr::Scalar(_)
            | Expr::Fn1(..)
            | Expr::Fn2(..)
            | Expr::Select { .. }
            | Expr::Reduced(_) => None,
        };
        let name = self.names.claim(&wish.unwrap_or_else(|| "r_0".to_string()));
        self.w.line(format!("let {name} = {};", piece.text));
        values.names.push(name.clone());
        Piece::atom(name)
    }

    fn piece(&mut self, nest: &Nest, at: usize, values: &Values) -> Result<Piece, Diagnostic> {
        Ok(match &nest.exprs[at] {
            Expr::Const(c) => constant(*c)?,
            Expr::Load(access) => self.get(access, &[])?,
            Expr::Index(var) => {
                let name = self.vars.get(var);
                let name = name.ok_or_else(|| Diagnostic::bug("an index is used outside its loop"))?;
                Piece::atom(format!("f32({name})"))
            }
            Expr::Scalar(scalar) => Piece::atom(number(*scalar)),
            Expr::Fn1(f, a) => self.fn1(*f, values.piece(*a)?),
            Expr::Fn2(f, a, b) => {
                let known = match nest.exprs.get(b.0 as usize) {
                    Some(Expr::Const(c)) => Some(*c),
                    _ => None,
                };
                self.fn2(*f, values.piece(*a)?, values.piece(*b)?, known)
            }
            Expr::Select { cmp, a, b, yes, no } => {
                let parts = [values.piece(*a)?, values.piece(*b)?, values.piece(*yes)?, values.piece(*no)?];
                Piece::select(*cmp, parts)
            }
            Expr::Reduced(r) => Piece::atom(values.sum(*r)?),
        })
    }

    fn fn1(&mut self, f: Fn1, a: &Piece) -> Piece {
        if f == Fn1::Neg {
            Piece::negated(a)
        } else if f == Fn1::Abs {
            Piece::call("abs", &[a])
        } else {
            self.call(Function::One(f), &[a])
        }
    }

    fn fn2(&mut self, f: Fn2, a: &Piece, b: &Piece, known: Option<f64>) -> Piece {
        match (f, known) {
            (Fn2::Add, _) => binary(Binary::Add, a, b),
            (Fn2::Sub, _) => binary(Binary::Sub, a, b),
            (Fn2::Mul, _) => binary(Binary::Mul, a, b),
            (Fn2::Min, _) => binary(Binary::Min, a, b),
            (Fn2::Max, _) => binary(Binary::Max, a, b),
            (Fn2::Div, Some(c)) if c as f32 != 0.0 => binary(Binary::Div, a, b),
            (Fn2::Pow, Some(c)) => self.power(a, b, c),
            (Fn2::Div | Fn2::Pow, _) => self.call(Function::Two(f), &[a, b]),
        }
    }

    /// By products where the exponent is a multiple of 1/2; the square root of a negative number is 0 in the
    /// table, as is its power with a broken exponent.
    fn power(&mut self, a: &Piece, b: &Piece, exponent: f64) -> Piece {
        if let Some(n) = whole(exponent) {
            return self.call(Function::Whole(n), &[a]);
        }
        match whole(2.0 * exponent) {
            Some(n) => {
                let root = self.call(Function::One(Fn1::Sqrt), &[a]);
                self.call(Function::Whole(n), &[&root])
            }
            None => self.call(Function::Two(Fn2::Pow), &[a, b]),
        }
    }

    fn call(&mut self, f: Function, args: &[&Piece]) -> Piece {
        let name = self.functions.name(f, &mut self.names);
        Piece::call(&name, args)
    }
}

fn whole(n: f64) -> Option<i32> {
    (n == n.trunc() && n.abs() <= f64::from(WHOLE_LIMIT)).then_some(n as i32)
}

/// A number of the program as a float32.
pub(crate) fn constant(c: f64) -> Result<Piece, Diagnostic> {
    if c.is_nan() {
        return Err(Diagnostic::bug("a program holds a constant that is no number"));
    }
    Ok(float(c as f32))
}

/// A scalar's text.
fn number(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Tokens => "f32(task.tokens)",
        Scalar::Kept => "f32(task.kept)",
        Scalar::First => "task.position",
        Scalar::Head => "task.head",
        Scalar::Heads => "task.heads",
        Scalar::Layer => "task.layer",
        Scalar::Layers => "task.layers",
    }
}
