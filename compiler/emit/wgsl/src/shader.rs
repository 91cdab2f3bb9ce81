//! The text as a whole: declarations, functions, one entry point per stage.

use crate::fence::{Step, fence, fence_turn, prove, unfenced};
use crate::function::Functions;
use crate::grid::{self, Chain, Node};
use crate::layout::{Block, FIXED_UNIFORMS, Layout, Place, Rows, TASK_FIELDS};
use crate::names::Names;
use crate::stage::{self, Each, Part, Pass, Stage, What};
use crate::structure::Structure;
use crate::text::{Writer, one_line};
use crate::{GIVEN, LANES, RUN, TASKS, WORK};
use miras_base::Diagnostic;
use miras_kernel::{ArrayId, Count, Loop, Order, Program, Role, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// What was written.
pub(crate) struct Written {
    pub wgsl: String,
    pub layout: Layout,
    pub stages: Vec<Stage>,
    pub passes: Vec<Pass>,
    pub structure: Structure,
}

/// The state of writing.
pub(crate) struct Emitter<'p> {
    pub program: &'p Program,
    pub layout: Layout,
    pub names: Names,
    pub functions: Functions,
    /// By array: the identifier of its first element's number for this task.
    pub starts: Vec<String>,
    /// Identifiers of the variables in scope.
    pub vars: BTreeMap<VarId, String>,
    /// What runs together in the entry point at hand.
    pub each: Each,
    /// The variables of loops that the host repeats, in the order of their uniform fields.
    pub rounds: Vec<VarId>,
    /// What is known at the point at hand, where statements follow one another there.
    pub chain: Option<Chain>,
    /// How many entry points of several launches there are.
    pub entries: usize,
    /// Whether any sum is shared, so that there must be memory for its parts.
    pub partial: bool,
    /// The sides of lanes' squares for which there must be memory for tiles.
    pub tiles: BTreeSet<usize>,
    pub w: Writer,
}

pub(crate) fn write(program: &Program, structure: Structure) -> Result<Written, Diagnostic> {
    let nodes = match structure {
        Structure::OneKernel => None,
        Structure::SeveralLaunches => grid::nodes(program),
    };
    match nodes {
        Some(nodes) => several_launches(program, &nodes),
        None => one_kernel(program),
    }
}

fn one_kernel(program: &Program) -> Result<Written, Diagnostic> {
    let (parts, own) = stage::parts(program);
    let mut emitter = Emitter::new(program, &own, &[]);
    let mut stages = Vec::new();
    for part in &parts {
        let wish = stage::wish(program, *part, stages.is_empty());
        let entry = emitter.names.claim(&wish);
        emitter.entry(&entry, *part)?;
        stages.push(stage::stage(entry, *part));
    }
    emitter.finish(Structure::OneKernel, stages, stage::passes(&parts))
}

fn several_launches<'p>(program: &'p Program, nodes: &[Node<'p>]) -> Result<Written, Diagnostic> {
    let mut emitter = Emitter::new(program, &BTreeSet::new(), &grid::rounds(nodes));
    let mut stages = Vec::new();
    let passes = emitter.passes(nodes, &mut stages)?;
    emitter.finish(Structure::SeveralLaunches, stages, passes)
}

fn declarations(program: &Program, layout: &Layout, structure: Structure, w: &mut Writer) {
    let shared_out = match structure {
        Structure::OneKernel => "one workgroup of",
        Structure::SeveralLaunches => "workgroups of",
    };
    let what =
        format!("{}: {shared_out} {LANES} invocations for each task, a (stream, head) pair", program.name);
    w.comment(&what);
    w.line("");
    w.comment("the numbers of this launch; below, where each array begins in its arena");
    w.open("struct Run {");
    for field in FIXED_UNIFORMS {
        w.line(format!("{field}: u32,"));
    }
    for round in &layout.rounds {
        w.line(format!("{round}: u32, // the turn of this repetition"));
    }
    for place in &layout.places {
        w.line(format!("{}: u32,{}", place.name, about(program, place)));
    }
    w.close();
    w.line("");
    w.comment("one task: its first token among those of all tasks, its number of tokens, the same of its past and of");
    w.comment("that the tokens kept from before, its row of given arrays");
    w.open("struct Task {");
    for (field, kind) in TASK_FIELDS {
        w.line(format!("{field}: {kind},"));
    }
    w.close();
    w.line("");
    w.line(format!("@group(0) @binding({GIVEN}) var<storage, read> given: array<f32>;"));
    w.line(format!("@group(0) @binding({WORK}) var<storage, read_write> work: array<f32>;"));
    w.line(format!("@group(0) @binding({RUN}) var<uniform> run: Run;"));
    w.line(format!("@group(0) @binding({TASKS}) var<storage, read> tasks: array<Task>;"));
    w.line("");
}

/// A comment that says what an array is.
fn about(program: &Program, place: &Place) -> String {
    let Some(array) = program.array(place.array) else { return String::new() };
    let arena = match place.block {
        Block::Given => "given",
        Block::Work => "work",
    };
    let mut shape: Vec<String> = array.shape.iter().map(ToString::to_string).collect();
    match place.rows {
        Rows::Token => shape.insert(0, "T".to_string()),
        Rows::Past => shape.insert(0, "K + T".to_string()),
        Rows::Head | Rows::Task => {}
    }
    let name = one_line(&array.name);
    let doc = one_line(&array.doc);
    let doc = if doc.is_empty() { doc } else { format!(": {doc}") };
    format!(" // {arena}: {name} [{}]{doc}", shape.join(", "))
}

impl<'p> Emitter<'p> {
    fn new(program: &'p Program, own: &BTreeSet<ArrayId>, rounds: &[&Loop]) -> Emitter<'p> {
        let mut names = Names::new();
        let name = |l: &&Loop| program.vars.get(l.var.0 as usize).map_or("turn", |v| v.name.as_str());
        let layout = Layout::new(program, own, &rounds.iter().map(name).collect::<Vec<_>>());
        let starts = layout.places.iter().map(|p| names.claim(&format!("{}_at", p.name))).collect();
        Emitter {
            program,
            layout,
            names,
            functions: Functions::default(),
            starts,
            vars: BTreeMap::new(),
            each: Each::Task,
            rounds: rounds.iter().map(|l| l.var).collect(),
            chain: None,
            entries: 0,
            partial: false,
            tiles: BTreeSet::new(),
            w: Writer::default(),
        }
    }

    /// Everything together: declarations, functions of the table, entry points.
    fn finish(
        self,
        structure: Structure,
        stages: Vec<Stage>,
        passes: Vec<Pass>,
    ) -> Result<Written, Diagnostic> {
        let mut head = Writer::default();
        declarations(self.program, &self.layout, structure, &mut head);
        if self.partial {
            head.comment("parts of the sums that lanes share");
            head.line(format!("var<workgroup> partial: array<f32, {LANES}>;"));
            head.line("");
        }
        if !self.tiles.is_empty() {
            head.comment("slabs of a product's operands, by rows and columns of each lane");
            self.tiles.iter().flat_map(|each| grid::memory(*each)).for_each(|line| head.line(line));
            head.line("");
        }
        self.functions.write(&mut head)?;
        let wgsl = head.finish() + self.w.finish().trim_end() + "\n";
        Ok(Written { wgsl, layout: self.layout, stages, passes, structure })
    }

    fn entry(&mut self, entry: &str, part: Part<'_>) -> Result<(), Diagnostic> {
        self.w.line(format!("@compute @workgroup_size({LANES})"));
        self.w.open(format!(
            "fn {entry}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        ));
        self.w.line("let index = group.x + group.y * run.groups;");
        self.w.open("if (index >= run.tasks) {");
        self.w.line("return;");
        self.w.close();
        self.w.line("let task = tasks[index];");
        match part.around {
            None => {
                self.each = Each::Task;
                self.starts_of(part);
                self.w.line("");
                self.shared(part.what)?;
            }
            Some(l) => {
                self.each = Each::Token;
                self.token(l);
                self.starts_of(part);
                self.w.line("");
                self.alone(part.what)?;
                self.unbind(l.var);
            }
        }
        self.w.close();
        self.w.line("");
        Ok(())
    }

    /// What all invocations of a workgroup do together.
    fn shared(&mut self, what: What<'_>) -> Result<(), Diagnostic> {
        match what {
            What::Straight(body) => {
                let steps = fence(body);
                prove(self.program, &steps)?;
                self.steps(&steps)
            }
            What::Loop(l) => self.shared_loop(l),
        }
    }

    /// The turns of a launch that all invocations of a workgroup make together.
    pub(crate) fn shared_loop(&mut self, l: &Loop) -> Result<(), Diagnostic> {
        let whole = [Step::Loop(l, fence_turn(l))];
        prove(self.program, &whole)?;
        let [Step::Loop(_, turn)] = &whole else { return Ok(()) };
        self.windowed(l, turn)
    }

    /// What an invocation does for its token by itself: nobody waits for anybody.
    fn alone(&mut self, what: What<'_>) -> Result<(), Diagnostic> {
        match what {
            What::Straight(body) => self.steps(&unfenced(body)),
            What::Loop(l) => self.windowed(l, &unfenced(&l.body)),
        }
    }

    /// The invocation's token.
    fn token(&mut self, l: &Loop) {
        let var = self.bind(l.var);
        self.w.line(format!("let {var} = run.skip + group.z * {LANES} + lane;"));
        self.w.open(format!("if ({var} >= task.tokens) {{"));
        self.w.line("return;");
        self.w.close();
    }

    /// Where the arrays that the part touches begin, for this task or this token.
    fn starts_of(&mut self, part: Part<'_>) {
        let used = stage::arrays(part);
        for place in self.layout.places.iter().filter(|p| used.contains(&p.array)) {
            let own = self.program.array(place.array).is_some_and(|a| a.role == Role::Scratch);
            let token = part.around.and_then(|l| self.vars.get(&l.var)).filter(|_| own);
            let row = match (place.rows, token) {
                (Rows::Token, Some(token)) => format!("(task.token + {token})"),
                (Rows::Token, None) => "task.token".to_string(),
                (Rows::Past, _) => "task.past".to_string(),
                (Rows::Head, _) => "task.inputs".to_string(),
                (Rows::Task, _) => "index".to_string(),
            };
            let start = &self.starts[place.array.0 as usize];
            self.w.line(format!("let {start} = run.{} + {row} * {};", place.name, place.part));
        }
    }

    /// Where these arrays begin for this task.
    pub(crate) fn starts_of_arrays(&mut self, used: &BTreeSet<ArrayId>) {
        for place in self.layout.places.iter().filter(|p| used.contains(&p.array)) {
            let row = match place.rows {
                Rows::Token => "task.token",
                Rows::Past => "task.past",
                Rows::Head => "task.inputs",
                Rows::Task => "index",
            };
            let start = &self.starts[place.array.0 as usize];
            self.w.line(format!("let {start} = run.{} + {row} * {};", place.name, place.part));
        }
    }

    /// The turns of this launch.
    fn windowed(&mut self, l: &Loop, turn: &[Step<'_>]) -> Result<(), Diagnostic> {
        let all = self.count(l.count);
        self.w.line(format!("let stop = min(run.stop, {all});"));
        self.w.open("for (var turn = run.first; turn < stop; turn++) {");
        let var = self.bind(l.var);
        self.w.line(match l.order {
            Order::Ascending => format!("let {var} = turn;"),
            Order::Descending => format!("let {var} = {all} - 1 - turn;"),
        });
        self.steps(turn)?;
        self.w.close();
        self.unbind(l.var);
        Ok(())
    }

    pub(crate) fn steps(&mut self, steps: &[Step<'_>]) -> Result<(), Diagnostic> {
        for step in steps {
            match step {
                Step::Phase(stmt) => self.phase(stmt)?,
                Step::Loop(l, body) => self.repeat(l, body)?,
                Step::Barrier => self.w.line("storageBarrier();"),
            }
        }
        Ok(())
    }

    fn repeat(&mut self, l: &Loop, body: &[Step<'_>]) -> Result<(), Diagnostic> {
        let var = self.bind(l.var);
        let all = self.count(l.count);
        self.w.open(match l.order {
            Order::Ascending => format!("for (var {var} = 0u; {var} < {all}; {var}++) {{"),
            Order::Descending => format!("for (var {var} = {all}; {var} > 0; ) {{"),
        });
        if l.order == Order::Descending {
            self.w.line(format!("{var} -= 1u;"));
        }
        self.steps(body)?;
        self.w.close();
        self.unbind(l.var);
        Ok(())
    }

    pub(crate) fn count(&self, count: Count) -> String {
        match count {
            Count::Const(n) => format!("{n}u"),
            Count::Tokens => "task.tokens".to_string(),
            Count::Past => "(task.kept + task.tokens)".to_string(),
        }
    }

    /// Brings a variable into scope.
    pub(crate) fn bind(&mut self, var: VarId) -> String {
        let wish = self.program.vars.get(var.0 as usize).map_or("i", |v| &v.name);
        let name = self.names.claim(wish);
        self.vars.insert(var, name.clone());
        name
    }

    pub(crate) fn unbind(&mut self, var: VarId) {
        if let Some(name) = self.vars.remove(&var)
            && !self.stays(&name)
        {
            self.names.release(&name);
        }
    }
}
