//! The tree as text to look at (`miras show ast`): one construct a line, indented, expressions with all
//! their parentheses. Places are not shown, so two trees that differ only in places print the same.

use crate::ast::{self, ExprKind, StmtKind};
use std::fmt::Write;

/// The whole file.
pub fn file(file: &ast::File) -> String {
    let mut printer = Printer::default();
    for used in &file.uses {
        printer.line(&format!("use {:?}", used.path));
    }
    for item in &file.items {
        printer.item(item);
    }
    if let Some(layer) = &file.anonymous {
        printer.line("layer (anonymous)");
        printer.stmts(&layer.stmts);
    }
    printer.text
}

/// One expression, on one line unless it holds a block.
pub fn expr(expr: &ast::Expr) -> String {
    let mut printer = Printer::default();
    printer.expr(expr)
}

#[derive(Default)]
struct Printer {
    text: String,
    depth: usize,
}

impl Printer {
    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.depth);
    }

    fn item(&mut self, item: &ast::Item) {
        match item {
            ast::Item::Definition(d) => self.definition(d),
            ast::Item::Function(f) => {
                self.doc(&f.doc);
                let body = self.expr(&f.body);
                self.line(&format!("fn {}({}) = {body}", f.name.text, names(&f.params)));
            }
            ast::Item::Layer(l) => {
                self.doc(&l.doc);
                let params = self.params(&l.params);
                self.line(&format!("layer {}{params}", l.name.text));
                self.stmts(&l.body.stmts);
            }
            ast::Item::Alias(a) => {
                self.doc(&a.doc);
                let args = self.args(&a.args);
                self.line(&format!("layer {} = {}({args})", a.name.text, a.base.text));
            }
        }
    }

    fn doc(&mut self, doc: &[String]) {
        for line in doc {
            self.line(format!("// {line}").trim_end());
        }
    }

    fn definition(&mut self, d: &ast::Definition) {
        self.doc(&d.doc);
        let mut head = format!("{} {}{}", d.kind.word(), d.name.text, self.params(&d.params));
        if let Some(domain) = &d.domain {
            let args = self.args(&domain.args);
            let _ = write!(head, " on {}({args})", domain.name.text);
        }
        self.line(&head);
        self.stmts(&d.body);
    }

    fn params(&mut self, params: &[ast::ParamDef]) -> String {
        if params.is_empty() {
            return String::new();
        }
        let each: Vec<_> = params.iter().map(|p| self.param(p)).collect();
        format!("({})", each.join(", "))
    }

    fn param(&mut self, param: &ast::ParamDef) -> String {
        let mut text = param.name.text.clone();
        if let Some(k) = &param.kind {
            let _ = write!(text, ": {}", kind(k));
        }
        if let Some(default) = &param.default {
            let _ = write!(text, " = {}", self.expr(default));
        }
        text
    }

    fn args(&mut self, args: &[ast::Arg]) -> String {
        let each: Vec<_> = args
            .iter()
            .map(|a| {
                let value = self.expr(&a.value);
                a.name.as_ref().map_or(value.clone(), |n| format!("{} = {value}", n.text))
            })
            .collect();
        each.join(", ")
    }

    fn stmts(&mut self, stmts: &[ast::Stmt]) {
        self.depth += 1;
        for stmt in stmts {
            self.stmt(stmt);
        }
        self.depth -= 1;
    }

    fn stmt(&mut self, stmt: &ast::Stmt) {
        let line = match &stmt.kind {
            StmtKind::Let { name, value } => format!("let {} = {}", name.text, self.expr(value)),
            StmtKind::Assign { name, value } => format!("{} = {}", name.text, self.expr(value)),
            StmtKind::Define { name, params, value } => {
                format!("{}({}) = {}", name.text, names(params), self.expr(value))
            }
            StmtKind::Next { name, value } => format!("{}' = {}", name.text, self.expr(value)),
            StmtKind::Dual { name, value } => format!("dual {}' = {}", name.text, self.expr(value)),
            StmtKind::Declare(declaration) => self.declaration(declaration),
            StmtKind::History { names: kept } => format!("history {}", names(kept)),
            StmtKind::Require { conditions } => format!("require {}", requirements(conditions)),
            StmtKind::Clause { key, value } => format!("{}: {}", key.text, self.expr(value)),
            StmtKind::For { var, range, body } => {
                let dots = if range.inclusive { "..=" } else { ".." };
                let (from, to) = (self.expr(&range.from), self.expr(&range.to));
                self.line(&format!("for {} in {from}{dots}{to}", var.text));
                return self.stmts(body);
            }
        };
        self.line(&line);
    }

    fn declaration(&mut self, d: &ast::Declaration) -> String {
        let mut text = format!("{} {}", d.role.word(), d.name.text);
        if let Some(index) = &d.index {
            let _ = write!(text, "[{}]", self.expr(index));
        }
        if d.kind.is_some() || d.shape.is_some() {
            text.push(':');
        }
        if let Some(k) = &d.kind {
            let _ = write!(text, " {}", kind(k));
        }
        if let Some(shape) = &d.shape {
            let dims: Vec<_> = shape.dims.iter().map(|e| self.expr(e)).collect();
            let _ = write!(text, " [{}]", dims.join(", "));
        }
        if let Some(init) = &d.init {
            let _ = write!(text, " = {}", self.expr(init));
        }
        text
    }

    fn expr(&mut self, expr: &ast::Expr) -> String {
        match &expr.kind {
            ExprKind::Number { text, .. } => text.clone(),
            ExprKind::Name(name) => name.text.clone(),
            ExprKind::Primed(name) => format!("{}'", name.text),
            ExprKind::Call { callee, args } => format!("{}({})", callee.text, self.args(args)),
            ExprKind::Index { base, index } => format!("{}[{}]", self.expr(base), self.expr(index)),
            ExprKind::Member { base, field } => format!("{}.{}", self.expr(base), field.text),
            ExprKind::Unary { op: ast::UnaryOp::Neg, operand } => format!("(-{})", self.expr(operand)),
            ExprKind::Binary { op, left, right, .. } => {
                format!("({} {} {})", self.expr(left), op.symbol(), self.expr(right))
            }
            ExprKind::If { cond, then, otherwise } => {
                format!("(if {} then {} else {})", self.expr(cond), self.expr(then), self.expr(otherwise))
            }
            ExprKind::Block { stmts, result } => self.block(stmts, result),
        }
    }

    /// A block within the line that holds it: its statements on lines of their own.
    fn block(&mut self, stmts: &[ast::Stmt], result: &ast::Expr) -> String {
        let mut inside = Printer { text: String::new(), depth: self.depth };
        inside.stmts(stmts);
        inside.depth += 1;
        let result = inside.expr(result);
        inside.line(&result);
        format!("{{\n{}{:indent$}}}", inside.text, "", indent = 2 * self.depth)
    }
}

fn names(names: &[ast::Ident]) -> String {
    let texts: Vec<_> = names.iter().map(|n| n.text.as_str()).collect();
    texts.join(", ")
}

fn kind(kind: &ast::Kind) -> String {
    match kind {
        ast::Kind::Named(name) => name.text.clone(),
        ast::Kind::Enum { words, .. } => format!("{{{}}}", names(words)),
    }
}

fn requirements(conditions: &[ast::Requirement]) -> String {
    let each: Vec<_> =
        conditions.iter().map(|c| format!("{}({})", c.predicate.text, names(&c.subjects))).collect();
    each.join(", ")
}
