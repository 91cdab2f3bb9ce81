//! A program as text, for `--emit ir`, tests and reading.

use crate::ir::{Access, Affine, Array, Axis, Count, Expr, ExprId, Factor, Loop, Matrix, Nest, Op, Order};
use crate::ir::{Product, Program, Role, Scalar, Stmt};
use miras_base::scalar::{Fn1, Fn2};
use std::fmt::Write as _;

/// The whole program. Names are the specification's; each statement is preceded by its equation.
pub fn program(program: &Program) -> String {
    let mut printer = Printer { program, text: String::new(), depth: 1 };
    let _ = writeln!(printer.text, "program {}", program.name);
    for array in &program.arrays {
        printer.array(array);
    }
    printer.block(&program.body);
    printer.text
}

struct Printer<'p> {
    program: &'p Program,
    text: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.depth);
    }

    fn array(&mut self, array: &Array) {
        let role = match array.role {
            Role::TokenInput { .. } => "input",
            Role::PastInput { .. } => "past",
            Role::HeadInput => "given",
            Role::StateIn => "state in",
            Role::StateOut => "state out",
            Role::TokenOutput { .. } => "output",
            Role::Scratch => "scratch",
        };
        let mut sizes: Vec<String> = array.shape.iter().map(usize::to_string).collect();
        match array.role.entries() {
            None => {}
            Some(1) => sizes.insert(0, "T".into()),
            Some(n) => sizes.insert(0, format!("{n}*T")),
        }
        let doc = if array.doc.is_empty() { String::new() } else { format!("  // {}", array.doc) };
        self.line(&format!("{role} {}[{}]{doc}", array.name, sizes.join(", ")));
    }

    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Loop(l) => self.repeat(l),
                Stmt::Nest(n) => self.nest(n),
                Stmt::Apply(a) => {
                    let (dst, src) = (self.run(&a.dst, a.len), self.run(&a.src, a.len));
                    self.comment(&a.equation);
                    self.line(&format!("{dst} = {}({src})", a.function));
                }
                Stmt::Copy(c) => {
                    let (dst, src) = (self.run(&c.dst, c.len), self.run(&c.src, c.len));
                    self.comment(&c.equation);
                    self.line(&format!("{dst} = {src}"));
                }
                Stmt::Product(p) => self.product(p),
            }
        }
    }

    fn comment(&mut self, equation: &str) {
        for line in equation.lines() {
            self.line(&format!("// {line}"));
        }
    }

    fn repeat(&mut self, l: &Loop) {
        let count = match l.count {
            Count::Const(n) => n.to_string(),
            Count::Tokens => "T".into(),
            Count::Past => "K + T".into(),
        };
        let order = match l.order {
            Order::Ascending => "",
            Order::Descending => ", last first",
        };
        self.line(&format!("for {} in 0..{count}{order}", self.var(l.var)));
        self.depth += 1;
        self.block(&l.body);
        self.depth -= 1;
    }

    fn product(&mut self, p: &Product) {
        let matrix = |m: &Matrix, rows: usize, cols: usize| {
            let (r, c) = (m.row_stride, m.col_stride);
            format!("{}({rows}x{cols} by {r}, {c})", self.access(&m.start))
        };
        let factor = |f: &Factor| match f {
            Factor::Const(c) => c.to_string(),
            Factor::Load(a) => self.access(a),
        };
        let c = matrix(&p.c, p.m, p.n);
        let line = format!(
            "{c} = {} * {c} + {} * {}{} @ {}",
            factor(&p.beta),
            factor(&p.alpha),
            if p.triangular { "lower " } else { "" },
            matrix(&p.a, p.m, p.k),
            matrix(&p.b, p.k, p.n)
        );
        self.comment(&p.equation);
        self.line(&line);
    }

    fn nest(&mut self, nest: &Nest) {
        self.comment(&nest.equation);
        if !nest.loops.is_empty() {
            self.line(&format!("at {}", self.axes(&nest.loops)));
        }
        self.depth += 1;
        let shared = shared(nest);
        let reading = Reading { nest, shared: &shared };
        let owners = nest.owners().unwrap_or_default();
        for (at, _) in nest.exprs.iter().enumerate().filter(|(at, _)| shared[*at]) {
            let within = owners.get(at).copied().flatten().and_then(|r| nest.reductions.get(r.0 as usize));
            let within = within.map_or(String::new(), |r| format!(" for {}", self.axes(&r.loops)));
            let value = self.open(&reading, ExprId(at as u32));
            self.line(&format!("let e{at}{within} = {value}"));
        }
        for store in &nest.stores {
            let value = self.value(&reading, store.value);
            self.line(&format!("{} = {value}", self.access(&store.target)));
        }
        self.depth -= 1;
    }

    /// The expression by its name where it has one.
    fn value(&self, reading: &Reading<'_>, id: ExprId) -> String {
        match reading.shared.get(id.0 as usize) {
            Some(true) => format!("e{}", id.0),
            Some(false) | None => self.open(reading, id),
        }
    }

    fn open(&self, reading: &Reading<'_>, id: ExprId) -> String {
        let Some(expr) = reading.nest.exprs.get(id.0 as usize) else {
            return "?".into();
        };
        let value = |id: &ExprId| self.value(reading, *id);
        match expr {
            Expr::Const(c) => c.to_string(),
            Expr::Load(access) => self.access(access),
            Expr::Index(var) => self.var(*var),
            Expr::Scalar(s) => scalar(*s).into(),
            Expr::Fn1(Fn1::Neg, a) => format!("-{}", value(a)),
            Expr::Fn1(f, a) => format!("{f}({})", value(a)),
            Expr::Fn2(f @ (Fn2::Min | Fn2::Max), a, b) => {
                format!("{}({}, {})", f.spelling(), value(a), value(b))
            }
            Expr::Fn2(f, a, b) => format!("({} {} {})", value(a), f.spelling(), value(b)),
            Expr::Select { cmp, a, b, yes, no } => format!(
                "(if {} {} {} then {} else {})",
                value(a),
                cmp.spelling(),
                value(b),
                value(yes),
                value(no)
            ),
            Expr::Reduced(r) => match reading.nest.reductions.get(r.0 as usize) {
                None => "?".into(),
                Some(reduction) => format!(
                    "{}({}: {})",
                    op(reduction.op),
                    self.axes(&reduction.loops),
                    value(&reduction.value)
                ),
            },
        }
    }

    fn axes(&self, axes: &[Axis]) -> String {
        let all: Vec<String> = axes.iter().map(|a| format!("{} < {}", self.var(a.var), a.extent)).collect();
        all.join(", ")
    }

    fn run(&self, start: &Access, len: usize) -> String {
        format!("{}..+{len}", self.access(start))
    }

    fn access(&self, access: &Access) -> String {
        let name = self.program.array(access.array).map_or("?", |a| &a.name);
        format!("{name}[{}]", self.affine(&access.offset))
    }

    fn affine(&self, offset: &Affine) -> String {
        let mut terms: Vec<String> = offset
            .terms()
            .map(|(v, c)| if c == 1 { self.var(v) } else { format!("{c}*{}", self.var(v)) })
            .collect();
        if offset.constant != 0 || terms.is_empty() {
            terms.push(offset.constant.to_string());
        }
        terms.join(" + ")
    }

    fn var(&self, var: crate::ir::VarId) -> String {
        self.program.vars.get(var.0 as usize).map_or_else(|| "?".into(), |v| v.name.clone())
    }
}

/// How deep an expression is written before a part of it gets a name.
const DEEP: usize = 12;

/// A nest with the expressions that get a name of their own, because they are used more than once or
/// would be written too deep.
struct Reading<'n> {
    nest: &'n Nest,
    shared: &'n [bool],
}

fn shared(nest: &Nest) -> Vec<bool> {
    let mut uses = vec![0usize; nest.exprs.len()];
    let reduced = nest.reductions.iter().map(|r| r.value);
    let stored = nest.stores.iter().map(|s| s.value);
    let operands = nest.exprs.iter().flat_map(Expr::operands);
    for id in operands.chain(reduced).chain(stored) {
        if let Some(count) = uses.get_mut(id.0 as usize) {
            *count += 1;
        }
    }
    let mut depths: Vec<usize> = Vec::with_capacity(uses.len());
    let mut named = Vec::with_capacity(uses.len());
    for (expr, count) in nest.exprs.iter().zip(uses) {
        let reduced = match expr {
            Expr::Reduced(r) => nest.reductions.get(r.0 as usize).map(|r| r.value),
            Expr::Const(_) | Expr::Load(_) | Expr::Index(_) | Expr::Scalar(_) => None,
            Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select { .. } => None,
        };
        let below = expr.operands().into_iter().chain(reduced);
        let depth = below.filter_map(|o| depths.get(o.0 as usize)).max().map_or(0, |d| d + 1);
        let name = worth_naming(expr) && (count > 1 || depth == DEEP);
        depths.push(if name { 0 } else { depth });
        named.push(name);
    }
    named
}

fn worth_naming(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) | Expr::Load(_) | Expr::Index(_) | Expr::Scalar(_) => false,
        Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select { .. } | Expr::Reduced(_) => true,
    }
}

fn scalar(s: Scalar) -> &'static str {
    match s {
        Scalar::Tokens => "T",
        Scalar::Kept => "K",
        Scalar::First => "first",
        Scalar::Head => "head",
        Scalar::Heads => "heads",
        Scalar::Layer => "layer",
        Scalar::Layers => "layers",
    }
}

fn op(op: Op) -> &'static str {
    match op {
        Op::Sum => "sum",
        Op::Max => "max",
        Op::Min => "min",
    }
}

#[cfg(test)]
mod tests;
