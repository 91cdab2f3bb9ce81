//! Functions of the scalar table as WGSL functions, operation by operation.

use crate::names::Names;
use crate::text::{Piece, Writer, float, whole};
use miras_base::Diagnostic;
use miras_base::scalar::single::{self, Binary, IntBinary, Op, Reg, Single, Unary};
use miras_base::scalar::{Fn1, Fn2, ROWS};
use std::collections::BTreeMap;

/// A function that an expression calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Function {
    One(Fn1),
    Two(Fn2),
    /// A power by repeated products.
    Whole(i32),
}

/// The functions used so far, by name.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    used: BTreeMap<Function, String>,
}

impl Functions {
    /// The name of a function, which will be defined.
    pub(crate) fn name(&mut self, f: Function, names: &mut Names) -> String {
        let claim = || names.claim(&wish(f));
        self.used.entry(f).or_insert_with(claim).clone()
    }

    /// Definitions of all that were used.
    pub(crate) fn write(&self, w: &mut Writer) -> Result<(), Diagnostic> {
        for (f, name) in &self.used {
            define(*f, name, w)?;
        }
        Ok(())
    }
}

fn wish(f: Function) -> String {
    match f {
        Function::One(f) => format!("f_{}", row_name(f)),
        Function::Two(Fn2::Div) => "f_quotient".into(),
        Function::Two(f) => format!("f_{}", format!("{f:?}").to_lowercase()),
        Function::Whole(n) if n < 0 => format!("f_power_minus_{}", n.unsigned_abs()),
        Function::Whole(n) => format!("f_power_{n}"),
    }
}

fn row_name(f: Fn1) -> &'static str {
    ROWS.iter().find(|row| row.function == f).map_or("unknown", |row| row.name)
}

fn define(f: Function, name: &str, w: &mut Writer) -> Result<(), Diagnostic> {
    let (program, arguments, about) = match f {
        Function::One(f) => (single::single(f), "x: f32", row_name(f).to_string()),
        Function::Two(f) => {
            (single::single2(f), "x: f32, y: f32", format!("{f:?} of the table").to_lowercase())
        }
        Function::Whole(n) => {
            let program = single::single_whole(n);
            let program = program.ok_or_else(|| Diagnostic::bug(format!("no program for the power {n}")))?;
            (program, "x: f32", format!("x to the power {n}"))
        }
    };
    w.comment(&about);
    w.open(format!("fn {name}({arguments}) -> f32 {{"));
    body(&program, w)?;
    w.close();
    w.line("");
    Ok(())
}

fn body(program: &Single, w: &mut Writer) -> Result<(), Diagnostic> {
    let uses = uses(program);
    let mut pieces: Vec<Piece> = Vec::with_capacity(program.steps.len());
    for (at, op) in program.steps.iter().enumerate() {
        let piece = step(op, &pieces).ok_or_else(|| Diagnostic::bug("a scalar program uses a later step"))?;
        let leaf = matches!(op, Op::Arg(_) | Op::Float(_) | Op::Int(_));
        let last = at + 1 == program.steps.len();
        if leaf || last || (uses[at] == 1 && piece.short()) {
            pieces.push(piece);
        } else {
            w.line(format!("let r{at} = {};", piece.text));
            pieces.push(Piece::atom(format!("r{at}")));
        }
    }
    let result = pieces.last().ok_or_else(|| Diagnostic::bug("a scalar program is empty"))?;
    w.line(format!("return {};", result.text));
    Ok(())
}

fn uses(program: &Single) -> Vec<usize> {
    let mut uses = vec![0; program.steps.len()];
    for operand in program.steps.iter().flat_map(Op::operands) {
        if let Some(count) = uses.get_mut(operand.index()) {
            *count += 1;
        }
    }
    uses
}

fn step(op: &Op, pieces: &[Piece]) -> Option<Piece> {
    let at = |r: Reg| pieces.get(r.index());
    Some(match *op {
        Op::Arg(0) => Piece::atom("x"),
        Op::Arg(_) => Piece::atom("y"),
        Op::Float(c) => float(c),
        Op::Int(c) => whole(c),
        Op::Unary(f, a) => unary(f, at(a)?),
        Op::Binary(f, a, b) => binary(f, at(a)?, at(b)?),
        Op::Select(cmp, a, b, yes, no) => Piece::select(cmp, [at(a)?, at(b)?, at(yes)?, at(no)?]),
        Op::IntBinary(IntBinary::Add, a, b) => Piece::binary("+", at(a)?, at(b)?),
        Op::IntBinary(IntBinary::Sub, a, b) => Piece::binary("-", at(a)?, at(b)?),
        Op::IntBinary(IntBinary::And, a, b) => Piece::binary("&", at(a)?, at(b)?),
        Op::ShiftLeft(a, by) => Piece::binary("<<", at(a)?, &Piece::atom(format!("{by}u"))),
        Op::ShiftRight(a, by) => Piece::binary(">>", at(a)?, &Piece::atom(format!("{by}u"))),
        Op::FloatBits(a) => Piece::call("bitcast<i32>", &[at(a)?]),
        Op::FromBits(a) => Piece::call("bitcast<f32>", &[at(a)?]),
        Op::ToFloat(a) => Piece::call("f32", &[at(a)?]),
    })
}

fn unary(f: Unary, a: &Piece) -> Piece {
    match f {
        Unary::Neg => Piece::negated(a),
        Unary::Abs => Piece::call("abs", &[a]),
        Unary::Sqrt => Piece::call("sqrt", &[a]),
        Unary::Floor => Piece::call("floor", &[a]),
        Unary::Nearest => Piece::call("round", &[a]),
    }
}

pub(crate) fn binary(f: Binary, a: &Piece, b: &Piece) -> Piece {
    match f {
        Binary::Add => Piece::binary("+", a, b),
        Binary::Sub => Piece::binary("-", a, b),
        Binary::Mul => Piece::binary("*", a, b),
        Binary::Div => Piece::binary("/", a, b),
        Binary::Min => Piece::call("min", &[a, b]),
        Binary::Max => Piece::call("max", &[a, b]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Strength;

    #[test]
    fn every_function_of_the_table_is_text_that_naga_accepts() {
        let mut names = Names::new();
        let mut functions = Functions::default();
        for row in ROWS {
            functions.name(Function::One(row.function), &mut names);
        }
        for f in [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max] {
            functions.name(Function::Two(f), &mut names);
        }
        for n in [-3, -1, 0, 2, 7] {
            functions.name(Function::Whole(n), &mut names);
        }
        let mut w = Writer::default();
        functions.write(&mut w).unwrap();
        let text = w.finish();
        crate::check::check("table", &text).unwrap();
        for builtin in ["exp(", " tanh(", " pow(", " log("] {
            let called = text.match_indices(builtin).filter(|(at, _)| !text[..*at].ends_with("f_"));
            assert_eq!(called.count(), 0, "{builtin}");
        }
    }

    #[test]
    fn operations_are_grouped_as_in_the_program() {
        let (x, y) = (Piece::atom("x"), Piece::atom("y"));
        let sum = binary(Binary::Add, &x, &y);
        assert_eq!(binary(Binary::Add, &x, &sum).text, "x + (x + y)");
        assert_eq!(binary(Binary::Mul, &sum, &Piece::negated(&x)).text, "(x + y) * (-x)");
        assert_eq!(binary(Binary::Sub, &sum, &float(-1.0)).text, "x + y - (-1.0f)");
        assert_eq!(sum.strength, Strength::Sum);
    }
}
