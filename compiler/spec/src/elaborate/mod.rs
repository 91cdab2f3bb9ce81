//! From a layer's text to a [`Layer`]: names resolved, parameters bound, loops unrolled, shapes checked.

mod algo;
mod bias;
mod bind;
mod body;
mod clause;
mod declare;
mod domain;
mod form;
mod meant;
mod memory;
mod requirement;
mod retention;
mod setting;
mod simplex;
mod state;
mod stepping;
mod structure;
mod supplied;

pub(crate) use setting::{Setting, read_overrides};

use crate::eval::{Budget, Eval, Scope, Tensor, Value};
use crate::layer::{Layer, Param, Point, Ranged, Required, Weight};
use crate::program::{LayerItem, Origin, Program};
use base::{Diagnostic, Dim, SourceMap};
use body::Body;
use clause::Clause;
use miras_base as base;
use miras_syntax::ast::StmtKind;
use miras_term::{Place, Role, Shape, Terms, VarId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The layer that was asked for.
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) item: LayerItem,
    pub(crate) origin: Origin,
}

/// What an elaboration works on.
pub(crate) struct Builder<'a> {
    pub(crate) program: &'a Program,
    pub(crate) sources: &'a SourceMap,
    pub(crate) terms: Terms,
    /// One entry for each of the arena's constraints.
    pub(crate) constraints: Vec<Required>,
    pub(crate) params: Vec<Param>,
    pub(crate) ranges: Vec<Ranged>,
    /// The values of each clause's parameters as text, by the clause's key.
    pub(crate) arguments: BTreeMap<&'static str, Vec<(String, String)>>,
    pub(crate) weights: Vec<Weight>,
    pub(crate) budget: Budget,
    /// Warnings.
    pub(crate) said: Vec<Diagnostic>,
    /// Functions being applied, outermost first.
    pub(crate) calls: Vec<(String, Origin)>,
    /// The weights that an objective is about; set while one is read.
    pub(crate) objective: Vec<VarId>,
    /// Set while an algorithm is read.
    pub(crate) algo: Option<AlgoContext>,
    query: VarId,
    key: VarId,
    value: VarId,
}

/// What `W`, `grad` and `retained` mean in an algorithm.
pub(crate) struct AlgoContext {
    pub(crate) weights: Rc<[Tensor]>,
    pub(crate) retained: Vec<VarId>,
    pub(crate) points: Vec<Point>,
}

/// Elaborates one layer with its settings: the layer and its notes, or all errors that could be found.
pub(crate) fn layer(
    program: &Program,
    sources: &SourceMap,
    chosen: Chosen,
    settings: &[Setting],
) -> Result<(Layer, Vec<Diagnostic>), Vec<Diagnostic>> {
    let body = body::collect(program, chosen, settings)?;
    let mut builder = Builder::new(program, sources);
    let built = builder.build(&body)?;
    Ok((built, builder.said))
}

impl<'a> Builder<'a> {
    pub(crate) fn new(program: &'a Program, sources: &'a SourceMap) -> Builder<'a> {
        let mut terms = Terms::new();
        let (dk, dv) = (Shape::vector(Dim::dk()), Shape::vector(Dim::dv()));
        let query = terms.add_var("q", Role::Query, dk.clone(), None);
        let key = terms.add_var("k", Role::Key, dk, None);
        let value = terms.add_var("v", Role::Value, dv, None);
        Builder {
            program,
            sources,
            terms,
            constraints: Vec::new(),
            params: Vec::new(),
            ranges: Vec::new(),
            arguments: BTreeMap::new(),
            weights: Vec::new(),
            budget: Budget::default(),
            said: Vec::new(),
            calls: Vec::new(),
            objective: Vec::new(),
            algo: None,
            query,
            key,
            value,
        }
    }

    fn build(&mut self, body: &Body) -> Result<Layer, Vec<Diagnostic>> {
        let scope = self.layer_scope(body).map_err(|d| vec![*d])?;
        let mut problems: Vec<Diagnostic> = Vec::new();
        let mut resolve = |i: usize| keep(self.resolve_clause(&body.choices[i], i), &mut problems);
        let resolved = [resolve(0), resolve(1), resolve(2), resolve(3)];
        let (chunk, read_before) = (self.chunk(body, &scope), self.read_before(body));
        let chunk = keep(chunk, &mut problems);
        let read_before = keep(read_before, &mut problems);
        let [memory, bias, retention, algo] = &resolved;
        let built_memory = memory.as_ref().and_then(|c| keep(self.memory(c, &scope), &mut problems));
        let built_bias = bias.as_ref().and_then(|c| keep(self.bias(c, &scope), &mut problems));
        let mut built_retention = None;
        let mut built_algo = None;
        if built_memory.is_some() {
            built_retention = retention.as_ref().and_then(|c| keep(self.retention(c, &scope), &mut problems));
            if let (Some(m), Some(a), Some(built)) = (memory, algo, &built_memory) {
                let fits = check_pair(built.history, m, a).and_then(|()| self.algorithm(a, &scope));
                built_algo = keep(fits, &mut problems);
            }
        }
        let parts = (built_memory, built_bias, built_retention, built_algo, chunk, read_before);
        let (Some(memory), Some(bias), Some(retention), Some(algo), Some(chunk), Some(read_before)) = parts
        else {
            return Err(problems);
        };
        let [Some(c0), Some(c1), Some(c2), Some(c3)] = resolved else { return Err(problems) };
        if !problems.is_empty() {
            return Err(problems);
        }
        self.note_constraints(&[], body.span);
        let layer = Layer {
            name: body.name.clone(),
            span: Some(body.span),
            terms: std::mem::take(&mut self.terms),
            query: self.query,
            key: self.key,
            value: self.value,
            params: std::mem::take(&mut self.params),
            ranges: std::mem::take(&mut self.ranges),
            memory,
            bias,
            retention: retention.weights,
            algo,
            choices: [&c0, &c1, &c2, &c3].map(|c| c.choice(self.arguments.remove(c.key).unwrap_or_default())),
            read_before,
            chunk,
            constraints: std::mem::take(&mut self.constraints),
        };
        requirement::check(&layer, &[c0, c1, c2, c3], retention.probe.as_ref())?;
        check_repeats(&layer)?;
        Ok(layer)
    }

    /// The names that every text sees: sizes and the layer's place.
    pub(crate) fn base_scope(&mut self, origin: Origin) -> Scope {
        let mut scope = Scope::new(origin);
        scope.bind("dk", Value::Size(Dim::dk()));
        scope.bind("dv", Value::Size(Dim::dv()));
        for (name, place) in [
            ("head", Place::Head),
            ("heads", Place::Heads),
            ("layer", Place::Layer),
            ("layers", Place::Layers),
        ] {
            let term = self.terms.place(place);
            scope.bind(name, Value::Tensor(Tensor::plain(term)));
        }
        scope.bind("true", Value::Bool(true));
        scope.bind("false", Value::Bool(false));
        scope
    }

    /// Binds q, k and v.
    pub(crate) fn bind_token(&mut self, scope: &mut Scope) {
        for (name, var) in [("q", self.query), ("k", self.key), ("v", self.value)] {
            let term = self.terms.use_var(var);
            scope.bind(name, Value::Tensor(Tensor::plain(term)));
        }
    }

    /// A name for the i-th weight's companion in formulas: `u`, `u[1]`, `u_U`.
    pub(crate) fn weight_label(&self, base: String, i: usize) -> String {
        let display = self.weights.get(i).map_or("", |w| w.display.as_str());
        match display.find('[') {
            _ if self.weights.len() <= 1 => base,
            Some(at) => format!("{base}{}", &display[at..]),
            None => format!("{base}_{display}"),
        }
    }
}

/// The value, or None and one more problem.
fn keep<T>(result: Eval<T>, problems: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|d| problems.push(*d)).ok()
}

/// A history and weights need algorithms of their own kinds, which their bodies show.
fn check_pair(history: bool, memory: &Clause, algo: &Clause) -> Eval<()> {
    let gives = |part: &str| {
        let mut body = algo.definition.body.iter();
        body.any(|stmt| matches!(&stmt.kind, StmtKind::Assign { name, .. } if name.text == part))
    };
    let (m, a) = (&memory.definition.name.text, &algo.definition.name.text);
    let (message, help) = match history {
        true if gives("direction") => (
            format!("the memory `{m}` keeps a history and has no weights for `{a}` to step"),
            "choose an algo that weighs the history, or a memory with weights",
        ),
        false if gives("weigh") && !gives("direction") => (
            format!("`{a}` weighs a history, which the memory `{m}` does not keep"),
            "choose a memory that keeps a history, or an algo that steps along a direction",
        ),
        true | false => return Ok(()),
    };
    let diagnostic = Diagnostic::new(base::diagnostic::code::REFUSED_PAIR, message)
        .at(memory.span, "this memory")
        .at(algo.span, "this algo")
        .with_help(help);
    Err(Box::new(diagnostic))
}

/// With several steps per token a token has several keys and values, which retention cannot use: it acts once.
fn check_repeats(layer: &Layer) -> Result<(), Vec<Diagnostic>> {
    if layer.repeats() == 1 {
        return Ok(());
    }
    let used = layer.retention.iter().any(|r| {
        let vars = layer.terms.vars_of(&form::terms_of(&r.form));
        vars.contains(&layer.key) || vars.contains(&layer.value)
    });
    if !used {
        return Ok(());
    }
    let [_, _, retention, algo] = &layer.choices;
    let message = format!(
        "`{}` takes {} keys and values per token, and the retention, which acts once, depends on them",
        algo.definition,
        layer.repeats()
    );
    let diagnostic = Diagnostic::new(base::diagnostic::code::REFUSED_PAIR, message)
        .at_opt(retention.span, "depends on `k` or `v`")
        .at_opt(algo.span, "several keys per token")
        .with_help("declare an input for what the retention needs: `input name: [dk];`");
    Err(vec![diagnostic])
}
