//! What the rooms make, as it can be watched and shown.

use crate::text;
use miras_base::SourceMap;
use miras_kernel as kernel;
use miras_rule as rule;
use miras_schedule as schedule;
use miras_spec as spec;
use miras_syntax as syntax;
use miras_tensor as tensor;

/// A room's product.
#[derive(Clone, Copy)]
pub enum Artefact<'a> {
    /// Of syntax.
    Tree(&'a syntax::ast::File),
    /// Of spec.
    Layer(&'a spec::Layer),
    /// Of rule.
    Rule(&'a rule::UpdateRule),
    /// Of schedule.
    Plan(&'a schedule::Plan),
    /// Of tensor.
    Graph(&'a tensor::Graph),
    /// Of kernel.
    Program(&'a kernel::Program),
}

/// A room, by what it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// syntax
    Tree,
    /// spec
    Layer,
    /// rule
    Rule,
    /// schedule
    Plan,
    /// tensor
    Graph,
    /// kernel
    Program,
}

/// Someone who watches what is made.
pub trait Observer {
    /// Called once for each thing made, in order.
    fn made(&mut self, artefact: &Artefact<'_>, sources: &SourceMap);
}

impl Artefact<'_> {
    /// Which room it comes from.
    pub fn stage(&self) -> Stage {
        match self {
            Artefact::Tree(_) => Stage::Tree,
            Artefact::Layer(_) => Stage::Layer,
            Artefact::Rule(_) => Stage::Rule,
            Artefact::Plan(_) => Stage::Plan,
            Artefact::Graph(_) => Stage::Graph,
            Artefact::Program(_) => Stage::Program,
        }
    }

    /// It as text to look at; ends with a line break.
    pub fn text(&self) -> String {
        match self {
            Artefact::Tree(tree) => syntax::print::file(tree),
            Artefact::Layer(layer) => text::layer(layer),
            Artefact::Rule(rule) => text::rule(rule),
            Artefact::Plan(plan) => text::plan(plan),
            Artefact::Graph(graph) => tensor::print::print(graph),
            Artefact::Program(program) => kernel::print::program(program),
        }
    }
}
