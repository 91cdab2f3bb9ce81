//! `plan.json`: how a program that knows nothing of Miras runs the kernels.
//!
//! Every formula is text over `B` (streams), `H` (heads), `T` (tokens of each) and `K` (tokens of each that were kept
//! from before the run, of a layer with a history; 0 for others), in a row of the table of tasks also `b` and `h`,
//! with `+ - * /`, `min`, `max`, `ceil` and `floor`. All buffers are float32 or uint32, little-endian.
//!
//! To run a plan: make one buffer per entry of `bindings`, of `size` bytes (at least 4); put each tensor of `buffers` that
//! is given at its `offset`; fill the table of tasks, a row for each stream b and head h in the order
//! `b * H + h`; then make the `launches` in order, each finished before the next. Of a launch with `turns`, one
//! dispatch makes those from `first` to `stop` (not included): dispatch again and again with `first` = the last
//! `stop` until `stop` = `turns`, never more than `window` at once, as drivers may stop long loops.
//! A step of `launches` that has a `repeat` is no launch: all of its own `launches` are to be made in order, `turns` times,
//! with the uniform field of that name 0, 1, ... up to `turns` - 1 (its value is given as `turn of` the name; where a field
//! is that of a repetition that the launch is not inside of, any number will do).
//! Then read the tensors that were written. With T = 0 nothing is launched and states do not change.
//!
//! In a plan by blocks a token is a block of `block` tokens of the stream: `T` counts blocks, and tensors of tokens have a
//! block's tokens, perhaps in parts, as the first axes after `T`; whole blocks lie as their tokens do in a tensor of
//! tokens. Such a plan goes on from states. Where chunks freeze gradients, a block is a chunk, and begins where one does;
//! other layers may begin a block anywhere. Tokens before and after whole blocks are those of the plan token by token,
//! which reads and writes the same states.
//!
//! A layer with a history reads `@past.k` and `@past.v`, [B, H, K + T, ...]: the K tokens kept from before, then those
//! of the run. A layer whose chunks freeze gradients reads two inputs, [B, H, T], that say where chunks lie: `@closes`,
//! 1 at a token that completes a chunk, counted from the stream's start, and `@fresh`, 1 at one that opens a chunk and,
//! unless the state has tensors `state.anchor.start.*`, at the first of the run; both are 0 elsewhere.

use crate::layout::{Block, FIXED_UNIFORMS, Rows, TASK_FIELDS};
use crate::{Each, GIVEN, LANES, Launches, Module, RUN, Stage, TASKS, Turns, WORK};
use miras_base::Diagnostic;
use miras_kernel::{Program, Role};
use serde::{Deserialize, Serialize};

/// The turns of loops that one invocation may make in a launch; llvmpipe stops silently after 65,535.
pub const MAX_TURNS: u64 = 60_000;

/// Workgroups along one axis that every device allows.
pub const MAX_GROUPS: u32 = 65_535;

/// The whole plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// `miras-plan-2`
    pub format: String,
    /// The layer's name.
    pub layer: String,
    /// `one-kernel`, or `several-launches` for each turn of the loop over tokens.
    pub structure: String,
    /// Tokens of a stream that one token of the plan stands for: more than 1 in a plan by blocks.
    pub block: usize,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The bindings of group 0.
    pub bindings: Vec<Binding>,
    /// The tensors in the two arenas.
    pub buffers: Vec<Buffer>,
    /// The fields of one row of the table of tasks, 4 bytes each, in order.
    pub tasks: Vec<Field>,
    /// The fields of the uniform block, 4 bytes each, in order.
    pub uniforms: Vec<Field>,
    /// What to launch, in order.
    pub launches: Vec<Step>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A launch.
    Launch(Launch),
    /// Launches to be made again and again.
    Repeat(Repeat),
}

/// Launches to be made again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The uniform field that tells the kernels which turn it is, from 0.
    pub repeat: String,
    /// How often.
    pub turns: String,
    /// What, in order.
    pub launches: Vec<Step>,
}

/// A binding of group 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Its number.
    pub binding: u32,
    /// Its name in the text.
    pub name: String,
    /// `read-only-storage`, `storage` or `uniform`.
    pub kind: String,
    /// Bytes.
    pub size: String,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its name in the specification.
    pub name: String,
    /// What it holds, where that is known.
    pub doc: String,
    /// `input` (per token), `past` (per token of the past), `given` (per head), `state-in`, `state-out`, `output` (per token) or `scratch`.
    pub role: String,
    /// The binding whose arena it lies in.
    pub binding: u32,
    /// Sizes of its axes, slowest first.
    pub shape: Vec<String>,
    /// Number of its first element in the arena.
    pub offset: String,
}

/// A number that the host provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name in the text.
    pub name: String,
    /// `u32` or `f32`.
    pub r#type: String,
    /// Its value.
    pub value: String,
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The entry point.
    pub entry: String,
    /// Workgroups along x, y and z.
    pub groups: [String; 3],
    /// Turns of its loop, where it has one: `first` and `stop` say which of them are made.
    pub turns: Option<String>,
    /// The most turns of one dispatch; at least 1.
    pub window: Option<String>,
}

/// The plan of a module, one token of which stands for `block` tokens of a stream.
pub fn plan(program: &Program, module: &Module, block: usize) -> Plan {
    let mut ends = [String::from("0"), String::from("0")];
    let buffers: Vec<Buffer> = program
        .arrays
        .iter()
        .enumerate()
        .filter_map(|(at, _)| buffer(program, module, at, &mut ends))
        .collect();
    let [given, work] = ends;
    let bytes = |elements: &str| format!("4 * ({elements})");
    let binding = |binding, name: &str, kind: &str, size: String| Binding {
        binding,
        name: name.into(),
        kind: kind.into(),
        size,
    };
    let bindings = vec![
        binding(GIVEN, "given", "read-only-storage", bytes(&given)),
        binding(WORK, "work", "storage", bytes(&work)),
        binding(RUN, "run", "uniform", (4 * module.layout.uniforms().count()).to_string()),
        binding(TASKS, "tasks", "read-only-storage", format!("B * H * {}", 4 * TASK_FIELDS.len())),
    ];
    Plan {
        format: "miras-plan-2".into(),
        layer: program.name.clone(),
        structure: module.structure.name().into(),
        block,
        workgroup_size: LANES,
        bindings,
        uniforms: uniforms(module, &buffers),
        buffers,
        tasks: tasks(),
        launches: module.passes.iter().flat_map(|pass| steps(module, &pass.launches)).collect(),
    }
}

/// The plan as text.
///
/// # Errors
/// E0901 where it cannot be written.
pub fn json(plan: &Plan) -> Result<String, Diagnostic> {
    let text = serde_json::to_string_pretty(plan);
    text.map(|t| t + "\n").map_err(|e| Diagnostic::bug(format!("a plan cannot be written: {e}")))
}

fn buffer(program: &Program, module: &Module, at: usize, ends: &mut [String; 2]) -> Option<Buffer> {
    let (array, place) = (program.arrays.get(at)?, module.layout.places.get(at)?);
    let role = match array.role {
        Role::TokenInput { .. } => "input",
        Role::PastInput { .. } => "past",
        Role::HeadInput => "given",
        Role::StateIn => "state-in",
        Role::StateOut => "state-out",
        Role::TokenOutput { .. } => "output",
        Role::Scratch => "scratch",
    };
    let mut shape: Vec<String> = match place.rows {
        Rows::Token => vec!["B".into(), "H".into(), tokens("T", array.role.entries())],
        Rows::Past => vec!["B".into(), "H".into(), tokens("(K + T)", array.role.entries())],
        Rows::Head => vec!["H".into()],
        Rows::Task => vec!["B".into(), "H".into()],
    };
    shape.extend(array.shape.iter().map(ToString::to_string));
    let (binding, end) = match place.block {
        Block::Given => (GIVEN, &mut ends[0]),
        Block::Work => (WORK, &mut ends[1]),
    };
    let offset = end.clone();
    let size = shape.join(" * ");
    *end = if offset == "0" { size } else { format!("{offset} + {size}") };
    Some(Buffer {
        name: array.name.clone(),
        doc: array.doc.clone(),
        role: role.into(),
        binding,
        shape,
        offset,
    })
}

fn tokens(count: &str, entries: Option<usize>) -> String {
    match entries {
        Some(n) if n > 1 => format!("{count} * {n}"),
        Some(_) | None => count.into(),
    }
}

fn field(name: &str, kind: &str, value: impl Into<String>) -> Field {
    Field { name: name.into(), r#type: kind.into(), value: value.into() }
}

fn tasks() -> Vec<Field> {
    let whole = ["(b * H + h) * T", "T", "(b * H + h) * (K + T)", "K", "h"];
    let real = ["position of the stream's first token", "h", "H", "number of the layer", "number of layers"];
    let values = whole.into_iter().chain(real);
    TASK_FIELDS.into_iter().zip(values).map(|((name, kind), value)| field(name, kind, value)).collect()
}

fn uniforms(module: &Module, buffers: &[Buffer]) -> Vec<Field> {
    let turns = ["first turn".to_string(), "turn after the last".into(), "0".into()];
    let values = ["B * H".to_string(), groups_x()].into_iter().chain(turns);
    let fixed = FIXED_UNIFORMS.into_iter().zip(values).map(|(name, value)| field(name, "u32", value));
    let rounds = module.layout.rounds.iter().map(|name| field(name, "u32", format!("turn of {name}")));
    let fixed = fixed.chain(rounds);
    let starts = module.layout.places.iter().zip(buffers);
    fixed.chain(starts.map(|(place, buffer)| field(&place.name, "u32", buffer.offset.clone()))).collect()
}

fn groups_x() -> String {
    format!("min(B * H, {MAX_GROUPS})")
}

fn steps(module: &Module, launches: &[Launches]) -> Vec<Step> {
    let step = |launches: &Launches| match launches {
        Launches::Stage(at) => module.stages.get(*at).map(|stage| Step::Launch(launch(stage))),
        Launches::Repeat(repeat) => Some(Step::Repeat(Repeat {
            repeat: module.layout.rounds.get(repeat.round)?.clone(),
            turns: turns(repeat.turns)?,
            launches: steps(module, &repeat.body),
        })),
    };
    launches.iter().filter_map(step).collect()
}

fn turns(turns: Turns) -> Option<String> {
    match turns {
        Turns::Once => None,
        Turns::Const(n) => Some(n.to_string()),
        Turns::Tokens(_) => Some("T".to_string()),
        Turns::Past => Some("K + T".to_string()),
    }
}

fn launch(stage: &Stage) -> Launch {
    let turns = turns(stage.turns);
    let window = turns.as_ref().map(|_| match stage.cost.constant() {
        Some(cost) => (MAX_TURNS / cost.saturating_add(1)).max(1).to_string(),
        None => format!("max(1, floor({MAX_TURNS} / ({} + 1)))", stage.cost.formula()),
    });
    let tiles = match stage.each {
        Each::Task => "1".to_string(),
        Each::Token => format!("ceil(T / {LANES})"),
        Each::Parts(n) => n.to_string(),
    };
    let groups = [groups_x(), format!("ceil(B * H / {MAX_GROUPS})"), tiles];
    Launch { entry: stage.entry.clone(), groups, turns, window }
}
