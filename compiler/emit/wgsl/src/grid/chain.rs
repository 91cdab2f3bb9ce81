//! Statements that follow one another at a point: numbers go on by name, and only what others need is stored.

use crate::fence::touched;
use crate::shader::Emitter;
use crate::text::Piece;
use miras_base::Diagnostic;
use miras_kernel::{ArrayId, Factor, Product, Role, Stmt, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// The number of the point at hand in the text.
pub(super) const POINT: &str = "point";

/// What is known of the arrays at the point at hand, while statements follow one another there.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Names of the numbers that the statements so far have given to arrays.
    known: BTreeMap<ArrayId, String>,
    /// Names of indices, by what they are.
    indices: BTreeMap<String, String>,
    /// All names that were given at the point.
    names: Vec<String>,
    /// Which statement is the last one to store to an array, and whether anybody needs it.
    last: BTreeMap<ArrayId, (usize, bool)>,
    /// The number of the statement at hand.
    at: usize,
}

impl<'p> Emitter<'p> {
    /// Statements at one point, after a product's sum where there is one, whose row, column and
    /// sum have these names.
    pub(super) fn chain_all(
        &mut self,
        product: Option<(&Product, [&str; 3])>,
        statements: &[&'p Stmt],
    ) -> Result<(), Diagnostic> {
        self.chain = Some(self.new_chain(product.map(|(p, _)| p), statements));
        if let Some((p, [row, column, sum])) = product {
            self.product_store(p, row, column, sum)?;
        }
        for (at, stmt) in statements.iter().enumerate() {
            if let Some(chain) = &mut self.chain {
                chain.at = at + 1;
            }
            self.phase(stmt)?;
        }
        let names = self.chain.take().map(|c| c.names).unwrap_or_default();
        names.iter().for_each(|name| self.names.release(name));
        Ok(())
    }

    fn new_chain(&self, product: Option<&Product>, statements: &[&'p Stmt]) -> Chain {
        let mut last: BTreeMap<ArrayId, usize> = BTreeMap::new();
        last.extend(product.map(|p| (p.c.start.array, 0)));
        for (at, stmt) in statements.iter().enumerate() {
            last.extend(touched(stmt).writes.into_iter().map(|a| (a, at + 1)));
        }
        let inside = |s: &Stmt| {
            statements.iter().any(|own| std::ptr::eq(*own, s))
                || matches!((s, product), (Stmt::Product(p), Some(own)) if std::ptr::eq(p, own))
        };
        let mut read = BTreeSet::new();
        read_outside(&self.program.body, &inside, &mut read);
        // What is read here before it is written is of an earlier turn.
        let mut written: BTreeSet<ArrayId> = BTreeSet::new();
        for touched in statements.iter().map(|s| touched(s)) {
            let own = product.filter(|_| written.is_empty()).map(|p| p.c.start.array);
            written.extend(own);
            read.extend(touched.reads.difference(&written));
            written.extend(touched.writes);
        }
        read.extend(product.filter(|p| p.beta != Factor::Const(0.0)).map(|p| p.c.start.array));
        let needed = |a: &ArrayId| {
            read.contains(a) || self.program.array(*a).is_none_or(|array| array.role != Role::Scratch)
        };
        let last = last.into_iter().map(|(a, at)| (a, (at, needed(&a)))).collect();
        Chain { last, ..Chain::default() }
    }

    /// The number that a statement of the chain has given to an element's array.
    pub(crate) fn known(&self, array: ArrayId) -> Option<&str> {
        self.chain.as_ref()?.known.get(&array).map(String::as_str)
    }

    /// The name of the point's number, where statements follow one another at a point.
    pub(crate) fn chained(&self) -> Option<String> {
        self.chain.as_ref().map(|_| POINT.to_string())
    }

    /// Stores a number; in a chain, later statements take it as it is, and it is stored only if anybody else needs it.
    pub(crate) fn put(&mut self, array: ArrayId, target: &str, value: &Piece) {
        let Some(chain) = &self.chain else {
            self.w.line(format!("{target} = {};", value.text));
            return;
        };
        let (last, needed) = chain.last.get(&array).copied().unwrap_or((0, true));
        let stored = chain.at == last && needed;
        let wish = self.layout.places.get(array.0 as usize).map_or("value", |p| &p.name);
        let name = self.names.claim(&format!("{wish}_here"));
        self.w.line(format!("let {name} = {};", value.text));
        if stored {
            self.w.line(format!("{target} = {name};"));
        }
        if let Some(chain) = &mut self.chain {
            chain.known.insert(array, name.clone());
            chain.names.push(name);
        }
    }

    /// Names an index of the point at hand, unless it has a name.
    pub(crate) fn index(&mut self, var: VarId, value: &str) {
        if let Some(name) = self.chain.as_ref().and_then(|c| c.indices.get(value)) {
            self.vars.insert(var, name.clone());
            return;
        }
        let name = self.bind(var);
        self.w.line(format!("let {name} = {value};"));
        if let Some(chain) = &mut self.chain {
            chain.indices.insert(value.to_string(), name.clone());
            chain.names.push(name);
        }
    }

    /// Whether a name stays taken while statements follow one another at a point.
    pub(crate) fn stays(&self, name: &str) -> bool {
        self.chain.as_ref().is_some_and(|c| c.indices.values().any(|n| n == name))
    }

    /// Gives names back that were given at a point; where others follow there, when all are done.
    pub(crate) fn leave(&mut self, names: Vec<String>) {
        match &mut self.chain {
            Some(chain) => chain.names.extend(names),
            None => names.iter().for_each(|name| self.names.release(name)),
        }
    }
}

/// The arrays that statements read, but for some statements.
fn read_outside(body: &[Stmt], inside: &impl Fn(&Stmt) -> bool, read: &mut BTreeSet<ArrayId>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(l) => read_outside(&l.body, inside, read),
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) if inside(stmt) => {}
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => {
                read.extend(touched(stmt).reads);
            }
        }
    }
}
