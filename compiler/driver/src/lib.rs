//! # miras-driver: the pipeline on one page
//!
//! **Purpose.** The order of the rooms, once. Whoever wants a layer, a rule, a plan, a graph or a program asks
//! a [`Session`]; it runs the rooms up to there and nothing behind.
//!
//! ```text
//! text -> syntax -> spec -> rule -> schedule -> tensor -> kernel
//!          Tree    Layer  UpdateRule  Plan      Graph    Program
//! ```
//!
//! **Takes** texts, a way to read used files, and the sizes of a run. **Gives** each room's data with what is
//! to be said about it ([`Made`]), or the diagnostics that stopped it.
//!
//! **May touch** every room of the compiler. **Must not** read files, open devices or decide what a room
//! should decide.
//!
//! **Invariants.** A room is given its left neighbour's data and nothing else. What a room said is handed on
//! once, with its data or with the errors. Observers see data as it is made and cannot change it.

mod artefact;
mod made;
mod text;

pub use artefact::{Artefact, Observer, Stage};
pub use made::{Made, Outcome};

use miras_base::{Diagnostic, FileId, SourceMap};
use miras_kernel as kernel;
use miras_rule as rule;
use miras_schedule as schedule;
use miras_spec as spec;
use miras_syntax as syntax;
use miras_tensor as tensor;

/// One compilation: the texts it has read so far, the library, and who is watching.
pub struct Session<'a> {
    sources: SourceMap,
    library: spec::Library,
    observer: Option<&'a mut dyn Observer>,
}

/// Which layer of a program is wanted, and with which changes.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Its name; None: the program's only one.
    pub layer: Option<String>,
    /// Pairs of a name and a value in the language, as [`spec::Program::elaborate`] takes them.
    pub overrides: Vec<(String, String)>,
}

/// The programs of a stream with its gradients: those of [`tensor::Backward`].
#[derive(Clone, Debug)]
pub struct Backward {
    /// What comes before the first token.
    pub start: kernel::Verified<kernel::Program>,
    /// A stretch of tokens; of blocks also the carries before each.
    pub advance: kernel::Verified<kernel::Program>,
    /// The carries before each token of a stretch; None where going back does not read them, and of blocks.
    pub tape: Option<kernel::Verified<kernel::Program>>,
    /// A stretch backwards.
    pub back: kernel::Verified<kernel::Program>,
    /// Back through what comes before the first token.
    pub before: kernel::Verified<kernel::Program>,
    /// Which carry each state handed on is.
    pub states: Vec<(String, usize)>,
}

impl<'a> Session<'a> {
    /// A session with a library.
    pub fn new(library: spec::Library) -> Session<'a> {
        Session { sources: SourceMap::new(), library, observer: None }
    }

    /// Shows everything that is made to an observer.
    #[must_use]
    pub fn observed(mut self, observer: &'a mut dyn Observer) -> Session<'a> {
        self.observer = Some(observer);
        self
    }

    /// The texts that diagnostics point into.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Adds a text under a name for messages.
    pub fn add(&mut self, name: &str, text: &str) -> FileId {
        self.sources.add(name, text)
    }

    // The rooms, from left to right.

    /// text -> syntax: one file's tree.
    ///
    /// # Errors
    /// E00xx where the text does not follow the grammar.
    pub fn parse(&mut self, file: FileId) -> Outcome<syntax::ast::File> {
        let text = self.sources.file(file).text.clone();
        let (tree, said) = syntax::parse(file, &text);
        self.finish(Made::unless_wrong(tree, said)?, |tree| Artefact::Tree(tree))
    }

    /// text -> syntax -> spec: a root file, the files that it uses, and the library.
    ///
    /// # Errors
    /// E00xx, E01xx where some text cannot be read whole or contradicts itself.
    pub fn load(&mut self, root: FileId, read: &mut spec::Reader<'_>) -> Outcome<spec::Program> {
        let (program, said) = spec::Program::load(&mut self.sources, root, &self.library, read);
        Made::unless_wrong(program, said)
    }

    /// text -> syntax -> spec: the library alone.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub fn load_library(&mut self) -> Outcome<spec::Program> {
        let (program, said) = spec::Program::of_library(&mut self.sources, &self.library);
        Made::unless_wrong(program, said)
    }

    /// spec: one layer, resolved, typed and elaborated.
    ///
    /// # Errors
    /// E01xx for names and arguments, E02xx for kinds and shapes.
    pub fn elaborate(&mut self, program: &spec::Program, choice: &Choice) -> Outcome<spec::Layer> {
        let name = choice.layer.as_deref();
        let (layer, said) = program.elaborate(&mut self.sources, name, &choice.overrides)?;
        self.finish(Made::new(layer, said), |layer| Artefact::Layer(layer))
    }

    /// spec and rule: the user's definitions that no layer of theirs chooses; how many there are, and what is wrong.
    pub fn check_alone(&mut self, program: &spec::Program) -> (usize, Vec<Diagnostic>) {
        program.check_alone(&mut self.sources, &mut |layer| rule::derive(layer).err().unwrap_or_default())
    }

    /// spec -> rule: gradients, closed forms and class.
    ///
    /// # Errors
    /// E03xx where something has no derivative or no closed form.
    pub fn derive(&mut self, layer: spec::Layer) -> Outcome<rule::UpdateRule> {
        let rule = rule::derive(layer)?;
        let said = rule.warnings.clone();
        self.finish(Made::new(rule, said), |rule| Artefact::Rule(rule))
    }

    /// rule -> schedule: an order in time.
    ///
    /// # Errors
    /// E0512 for a chunk of 0 tokens.
    pub fn plan(&mut self, rule: rule::UpdateRule, request: schedule::Request) -> Outcome<schedule::Plan> {
        let plan = schedule::plan(rule, request).map_err(one)?;
        self.finish(Made::new(plan, Vec::new()), |plan| Artefact::Plan(plan))
    }

    /// schedule -> tensor: the graph of one task.
    ///
    /// # Errors
    /// E0402 for a construct that cannot be lowered.
    pub fn graph(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
        start: tensor::Start,
    ) -> Outcome<tensor::Verified> {
        let graph = tensor::lower(plan, sizes, start).and_then(tensor::verify).map_err(one)?;
        self.finish(Made::new(graph, Vec::new()), |graph| Artefact::Graph(graph.graph()))
    }

    /// tensor -> kernel: loops and products over arrays. `name` is the layer's.
    ///
    /// # Errors
    /// E0402 for a program beyond the limits of the verifier.
    pub fn program(
        &mut self,
        graph: &tensor::Verified,
        name: &str,
    ) -> Outcome<kernel::Verified<kernel::Program>> {
        let program = kernel::lower::lower(graph, name).and_then(kernel::verify).map_err(one)?;
        self.finish(Made::new(program, Vec::new()), |program| Artefact::Program(program))
    }

    // Several rooms at once.

    /// spec -> rule: one layer's update rule.
    ///
    /// # Errors
    /// As [`Session::elaborate`] and [`Session::derive`].
    pub fn rule(&mut self, program: &spec::Program, choice: &Choice) -> Outcome<rule::UpdateRule> {
        let layer = self.elaborate(program, choice)?;
        layer.then(|layer| self.derive(layer))
    }

    /// schedule -> tensor -> kernel: the program of one task.
    ///
    /// # Errors
    /// As [`Session::graph`] and [`Session::program`].
    pub fn compile(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
        start: tensor::Start,
    ) -> Outcome<kernel::Verified<kernel::Program>> {
        let graph = self.graph(plan, sizes, start)?;
        graph.then(|graph| self.program(&graph, &plan.rule.layer.name))
    }

    /// schedule -> tensor -> kernel: the programs of one task with its gradients. `declared` is that of
    /// [`tensor::by_token`].
    ///
    /// # Errors
    /// E0402 for a construct that cannot be lowered or a program beyond the limits of the verifier.
    pub fn backward(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
        start: tensor::Start,
        declared: &[bool],
    ) -> Outcome<Backward> {
        let graph = tensor::by_token(plan, sizes, start, declared).and_then(tensor::verify).map_err(one)?;
        let stream = tensor::backward(&graph, tensor::Tape::Apart).map_err(one)?;
        self.stream(&stream, &plan.rule.layer.name)
    }

    /// [`Session::backward`] where the tokens of the programs are whole blocks, which go on from states; None where
    /// the plan has no such form.
    ///
    /// # Errors
    /// As [`Session::backward`].
    pub fn backward_blocks(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
    ) -> Outcome<Option<Backward>> {
        let Some(graph) = tensor::lower_blocks(plan, sizes).map_err(one)? else {
            return Ok(Made::new(None, Vec::new()));
        };
        let graph = tensor::verify(graph).map_err(one)?;
        let stream = tensor::backward(&graph, tensor::Tape::Along).map_err(one)?;
        self.stream(&stream, &format!("{} in blocks", plan.rule.layer.name))?
            .then(|programs| Ok(Made::new(Some(programs), Vec::new())))
    }

    /// tensor -> kernel: the programs of a stream with its gradients.
    fn stream(&mut self, stream: &tensor::Backward, layer: &str) -> Outcome<Backward> {
        let mut said = Vec::new();
        let mut program = |graph: &tensor::Verified, what: &str| {
            self.observe(&Artefact::Graph(graph.graph()));
            let name = format!("{layer}, {what}");
            self.program(graph, &name).map(|made| made.heard(&mut said))
        };
        let backward = Backward {
            start: program(&stream.start, "start")?,
            advance: program(&stream.advance, "forward")?,
            tape: stream.tape.as_ref().map(|tape| program(tape, "tape")).transpose()?,
            back: program(&stream.back, "backward")?,
            before: program(&stream.before, "back through the start")?,
            states: stream.states.clone(),
        };
        Ok(Made::new(backward, said))
    }

    /// schedule -> tensor -> kernel: the programs of one task of a memory that keeps its past, with gradients.
    ///
    /// # Errors
    /// As [`Session::backward`].
    pub fn history_back(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
    ) -> Outcome<[kernel::Verified<kernel::Program>; 3]> {
        let forward = tensor::lower(plan, sizes, tensor::Start::Weights).map_err(one)?;
        let back = tensor::history_back(plan, sizes).map_err(one)?;
        let mut said = Vec::new();
        let mut program = |graph: tensor::Graph, what: &str| {
            let graph = tensor::verify(graph).map_err(one)?;
            self.observe(&Artefact::Graph(graph.graph()));
            let name = format!("{}, {what}", plan.rule.layer.name);
            self.program(&graph, &name).map(|made| made.heard(&mut said))
        };
        let programs = [
            program(forward, "forward")?,
            program(back.queries, "backward for each token")?,
            program(back.past, "backward for each past token")?,
        ];
        Ok(Made::new(programs, said))
    }

    /// schedule -> tensor -> kernel: the program of one task whose tokens are whole blocks, which goes on from
    /// states; None where the plan has no such form.
    ///
    /// # Errors
    /// As [`Session::graph`] and [`Session::program`].
    pub fn compile_blocks(
        &mut self,
        plan: &schedule::Plan,
        sizes: &tensor::Sizes,
    ) -> Outcome<Option<kernel::Verified<kernel::Program>>> {
        let Some(graph) = tensor::lower_blocks(plan, sizes).map_err(one)? else {
            return Ok(Made::new(None, Vec::new()));
        };
        let graph = tensor::verify(graph).map_err(one)?;
        let graph = self.finish(Made::new(graph, Vec::new()), |graph| Artefact::Graph(graph.graph()))?;
        graph.then(|graph| {
            self.program(&graph, &plan.rule.layer.name)?.then(|p| Ok(Made::new(Some(p), Vec::new())))
        })
    }

    fn observe(&mut self, artefact: &Artefact<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.made(artefact, &self.sources);
        }
    }

    fn finish<T>(&mut self, made: Made<T>, artefact: impl FnOnce(&T) -> Artefact<'_>) -> Outcome<T> {
        self.observe(&artefact(&made.value));
        Ok(made)
    }
}

fn one(diagnostic: Diagnostic) -> Vec<Diagnostic> {
    vec![diagnostic]
}
