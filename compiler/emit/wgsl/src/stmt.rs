//! Statements that all invocations of a workgroup share: points handed out to lanes in turn.

use crate::function::Function;
use crate::lanes;
use crate::shader::Emitter;
use crate::stage::Each;
use crate::text::{Piece, Strength, float};
use crate::{Block, LANES};
use miras_base::Diagnostic;
use miras_kernel::{Access, Apply, Copy, Factor, Matrix, Op, Product, Stmt};

/// The number of an invocation in its workgroup, in the text.
const LANE: &str = "lane";

/// The number of a lane among those that share a point's sums.
pub(crate) const PART: &str = "part";

/// The number of a point that is alone.
const FIRST: &str = "0u";

impl Emitter<'_> {
    pub(crate) fn phase(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        match stmt {
            Stmt::Loop(_) => Err(Diagnostic::bug("a loop is no phase")),
            Stmt::Nest(n) => self.nest(n),
            Stmt::Apply(a) => self.apply(a),
            Stmt::Copy(c) => self.copy(c),
            Stmt::Product(p) => self.product(p),
        }
    }

    fn apply(&mut self, a: &Apply) -> Result<(), Diagnostic> {
        self.w.comment(&a.equation);
        let function = self.functions.name(Function::One(a.function), &mut self.names);
        let point = self.points(a.len);
        let value = self.get(&a.src, &[(1, &point)])?;
        let target = self.element(&a.dst, &[(1, &point)])?;
        self.put(a.dst.array, &target, &Piece::call(&function, &[&value]));
        self.end_points(&point);
        Ok(())
    }

    fn copy(&mut self, c: &Copy) -> Result<(), Diagnostic> {
        self.w.comment(&c.equation);
        let point = self.points(c.len);
        let value = self.get(&c.src, &[(1, &point)])?;
        let target = self.element(&c.dst, &[(1, &point)])?;
        self.put(c.dst.array, &target, &value);
        self.end_points(&point);
        Ok(())
    }

    fn product(&mut self, p: &Product) -> Result<(), Diagnostic> {
        self.w.comment(&p.equation);
        let lanes = match self.each {
            Each::Task => lanes::of_product(p),
            Each::Token | Each::Parts(_) => 1,
        };
        let points = p.m * p.n;
        let point = if lanes > 1 { self.open_shared(points, lanes) } else { self.points(points) };
        let [row, column, inner, sum] = ["row", "column", "inner", "sum"].map(|n| self.names.claim(n));
        let (across, along) = match p.n {
            1 => (point.clone(), FIRST.to_string()),
            n => (format!("{point} / {n}"), format!("{point} % {n}")),
        };
        self.w.line(format!("let {row} = {across};"));
        self.w.line(format!("let {column} = {along};"));
        self.w.line(format!("var {sum} = 0.0f;"));
        let last = if p.triangular { format!("min({row} + 1u, {}u)", p.k) } else { format!("{}", p.k) };
        let (first, step) = if lanes > 1 { (PART, lanes) } else { (FIRST, 1) };
        self.w.open(format!("for (var {inner} = {first}; {inner} < {last}; {inner} += {step}u) {{"));
        let a = self.matrix(&p.a, &row, &inner)?;
        let b = self.matrix(&p.b, &inner, &column)?;
        self.w.line(format!("{sum} += {a} * {b};"));
        self.w.close();
        if lanes > 1 {
            self.gather(&sum, Op::Sum, lanes, true);
        }
        self.product_store(p, &row, &column, &sum)?;
        if lanes > 1 {
            self.w.close();
            self.close_shared();
        } else {
            self.end_points(&point);
        }
        for name in [row, column, inner, sum] {
            self.names.release(&name);
        }
        Ok(())
    }

    pub(crate) fn product_store(
        &mut self,
        p: &Product,
        row: &str,
        column: &str,
        sum: &str,
    ) -> Result<(), Diagnostic> {
        let target = self.matrix(&p.c, row, column)?;
        let mut value = Piece::atom(sum);
        if p.alpha != Factor::Const(1.0) {
            value = Piece::binary("*", &self.factor(&p.alpha)?, &value);
        }
        if p.beta != Factor::Const(0.0) {
            let before = Piece::binary("*", &self.factor(&p.beta)?, &Piece::atom(&target));
            value = Piece::binary("+", &before, &value);
        }
        self.put(p.c.start.array, &target, &value);
        Ok(())
    }

    /// Opens a block in which several lanes share the sums of each point, and gives the point's number by name. The
    /// number of a lane among those of its point is `part`; lanes to spare have one that no other has.
    pub(crate) fn open_shared(&mut self, points: usize, lanes: usize) -> String {
        self.partial = true;
        self.w.open("{");
        if points == 1 {
            self.w.line(format!("let {PART} = {LANE};"));
            return FIRST.to_string();
        }
        let point = if points * lanes == LANES as usize {
            format!("{LANE} / {lanes}")
        } else {
            format!("min({LANE} / {lanes}, {}u)", points - 1)
        };
        self.w.line(format!("let point = {point};"));
        self.w.line(format!("let {PART} = {LANE} - point * {lanes};"));
        "point".to_string()
    }

    /// Adds up, in order, the parts of a sum that the lanes of a point have: by all of them, or, of the last sum, by the
    /// first one alone, which opens a block.
    pub(crate) fn gather(&mut self, sum: &str, op: Op, lanes: usize, last: bool) {
        self.w.line(format!("partial[{LANE}] = {sum};"));
        self.w.line("workgroupBarrier();");
        if last {
            self.w.open(format!("if ({PART} == 0) {{"));
        } else {
            self.w.line(format!("{sum} = partial[{LANE} - {PART}];"));
        }
        self.w.open(format!("for (var other = 1u; other < {lanes}; other++) {{"));
        let other = format!("partial[{LANE} - {PART} + other]");
        self.w.line(match op {
            Op::Sum => format!("{sum} += {other};"),
            Op::Max => format!("{sum} = max({sum}, {other});"),
            Op::Min => format!("{sum} = min({sum}, {other});"),
        });
        self.w.close();
        if !last {
            self.w.line("workgroupBarrier();");
        }
    }

    /// Closes the block: the next sums may use the same memory.
    pub(crate) fn close_shared(&mut self) {
        self.w.close();
        self.w.line("workgroupBarrier();");
    }

    pub(crate) fn matrix(&self, m: &Matrix, row: &str, column: &str) -> Result<String, Diagnostic> {
        self.element(&m.start, &[(stride(m.row_stride), row), (stride(m.col_stride), column)])
    }

    fn factor(&self, f: &Factor) -> Result<Piece, Diagnostic> {
        match f {
            Factor::Const(c) => crate::expr::constant(*c),
            Factor::Load(access) => Ok(Piece::atom(self.element(access, &[])?)),
        }
    }

    /// Opens a block that is entered for each point, by one lane or by the invocation at hand, and gives the point's
    /// number by name.
    pub(crate) fn points(&mut self, count: usize) -> String {
        const ALL: usize = LANES as usize;
        if let Some(point) = self.chained() {
            return point;
        }
        match (self.each, count) {
            (Each::Token, 1) => self.w.open("{"),
            (Each::Token, n) => return self.point("0u", n, "1u"),
            (Each::Task | Each::Parts(_), 1) => self.w.open("if (lane == 0) {"),
            (Each::Task | Each::Parts(_), ALL) => self.w.open("{"),
            (Each::Task | Each::Parts(_), n) if n < ALL => self.w.open(format!("if (lane < {n}) {{")),
            (Each::Task | Each::Parts(_), n) => return self.point(LANE, n, &format!("{LANES}u")),
        }
        if count == 1 { FIRST.to_string() } else { LANE.to_string() }
    }

    fn point(&mut self, first: &str, count: usize, step: &str) -> String {
        let point = self.names.claim("p");
        self.w.open(format!("for (var {point} = {first}; {point} < {count}; {point} += {step}) {{"));
        point
    }

    pub(crate) fn end_points(&mut self, point: &str) {
        if self.chained().is_some() {
            return;
        }
        self.w.close();
        if point != LANE && point != FIRST {
            self.names.release(point);
        }
    }

    /// The number in an element of an array; where statements follow one another at a point, as one of them has named it.
    pub(crate) fn get(&self, access: &Access, more: &[(i64, &str)]) -> Result<Piece, Diagnostic> {
        match self.known(access.array) {
            Some(name) => Ok(Piece::atom(name)),
            None => Ok(Piece::atom(self.element(access, more)?)),
        }
    }

    /// An element of an array, `more` being further terms of its place.
    pub(crate) fn element(&self, access: &Access, more: &[(i64, &str)]) -> Result<String, Diagnostic> {
        let at = access.array.0 as usize;
        let (Some(place), Some(start)) = (self.layout.places.get(at), self.starts.get(at)) else {
            return Err(Diagnostic::bug("an access names an array that does not exist"));
        };
        let arena = match place.block {
            Block::Given => "given",
            Block::Work => "work",
        };
        let mut offset = start.clone();
        for (var, coefficient) in access.offset.terms() {
            let name =
                self.vars.get(&var).ok_or_else(|| Diagnostic::bug("a place uses a variable out of scope"))?;
            offset.push_str(&term(coefficient, name));
        }
        for (coefficient, name) in more.iter().filter(|(_, name)| *name != FIRST) {
            offset.push_str(&term(*coefficient, name));
        }
        offset.push_str(&number(access.offset.constant));
        Ok(format!("{arena}[{offset}]"))
    }
}

/// ` + coefficient * name`; u32 arithmetic wraps, so larger coefficients count modulo 2^32, and the sum of a
/// verified place is right.
fn term(coefficient: i64, name: &str) -> String {
    match (coefficient, sign(coefficient), modulo(coefficient.unsigned_abs())) {
        (0, _, _) => String::new(),
        (1 | -1, sign, _) => format!(" {sign} {name}"),
        (_, sign, size) => format!(" {sign} {name} * {size}"),
    }
}

fn number(constant: i64) -> String {
    match constant {
        0 => String::new(),
        c => format!(" {} {}", sign(c), modulo(c.unsigned_abs())),
    }
}

fn sign(c: i64) -> char {
    if c < 0 { '-' } else { '+' }
}

fn modulo(size: u64) -> u64 {
    size & u64::from(u32::MAX)
}

fn stride(s: usize) -> i64 {
    i64::try_from(s).unwrap_or(i64::MAX)
}

/// An accumulator's start.
pub(crate) fn start(op: Op) -> String {
    match op {
        Op::Sum => "0.0f".to_string(),
        // Not an infinity, which WGSL cannot write; every reduction has a value.
        Op::Max => float(f32::MIN).at(Strength::Loose),
        Op::Min => float(f32::MAX).text,
    }
}
