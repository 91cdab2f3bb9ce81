//! Running a derived layer: which backend and schedule, then bind and run.

use crate::programs::{KERNEL, Programs, backward, limit, programs};
use base::Diagnostic;
use base::diagnostic::code;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use driver::{Made, Outcome, Session};
use miras_base as base;
use miras_cpu as cpu;
use miras_driver as driver;
use miras_gpu as gpu;
use miras_host as host;
use miras_kernel as kernel;
use miras_reference as reference;
use miras_rule as rule;
use miras_schedule as schedule;
use miras_tasks as tasks;
use miras_tasks::Runs;
use miras_tensor as tensor;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Where a layer can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The best that is there
    Auto,
    /// Graphics processor
    Gpu,
    /// Compiled for this processor, float32
    Cpu,
    /// The definition executed directly, float64
    Reference,
}

/// Backends that are set side by side; `auto` takes several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared(pub Backend);

impl ValueEnum for Compared {
    fn value_variants<'a>() -> &'a [Compared] {
        const ALL: [Compared; 4] = [
            Compared(Backend::Auto),
            Compared(Backend::Gpu),
            Compared(Backend::Cpu),
            Compared(Backend::Reference),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = self.0.to_possible_value()?;
        Some(match self.0 {
            Backend::Auto => value.help("The CPU, and the GPU where there is one"),
            Backend::Gpu | Backend::Cpu | Backend::Reference => value,
        })
    }
}

/// Orders in time by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScheduleName {
    /// In chunks of tokens
    Chunked,
    /// Token by token
    Recurrent,
}

/// What the user asks of a run.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Where.
    pub backend: Backend,
    /// In which order; None: the best that is there.
    pub schedule: Option<ScheduleName>,
    /// Tokens in a chunk; None: the layer's own number. It has no meaning for the recurrent schedule.
    pub chunk: Option<u32>,
    /// Whether gradients are computed.
    pub grad: bool,
    /// Whether tensors that are no inputs are passed over.
    pub allow_extra: bool,
    /// How the gpu backend's kernels share the work out; None: as the sizes say.
    pub structure: Option<gpu::Structure>,
}

/// Results, and what actually ran.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The tensors of OUT.
    pub results: host::Bundle,
    /// What ran.
    pub account: Account,
}

/// What actually ran.
#[derive(Clone, Debug)]
pub struct Account {
    /// Never `Auto`.
    pub backend: Backend,
    /// The adapter, for the gpu backend.
    pub adapter: Option<String>,
    /// How the gpu backend's kernels share the work out: several launches where any of them did.
    pub structure: Option<gpu::Structure>,
    /// Width of its numbers.
    pub width: host::Width,
    /// The order in time.
    pub schedule: host::Schedule,
    /// How the recurrence depends on the weights.
    pub class: rule::ClassKind,
    /// Rows, heads, tokens.
    pub sizes: [usize; 3],
    /// dk and dv.
    pub dims: Vec<(String, u64)>,
    /// Streams, where the input is packed.
    pub segments: Option<usize>,
    /// Whether chunks are a form of the recurrence itself, or freeze gradients at their starts; None: no chunks.
    pub exact: Option<bool>,
    /// The limit for which tokens went one after the other where the plan takes blocks of them; None: as planned.
    pub fallback: Option<String>,
    /// Time to compile.
    pub compiling: Duration,
    /// Time to run.
    pub running: Duration,
}

/// Runs a layer on tensors.
///
/// # Errors
/// E0402 where the backend cannot do what is asked; E05xx where the tensors do not fit; E0602 where
/// the machine does not suffice.
pub fn execute(
    session: &mut Session<'_>,
    rule: rule::UpdateRule,
    data: &host::Bundle,
    asked: &Asked,
) -> Outcome<Finished> {
    asked.check()?;
    session.plan(rule, asked.request())?.then(|plan| {
        let job = Job { plan, data, asked };
        match asked.backend {
            Backend::Reference => job.by_reference(),
            backend @ (Backend::Gpu | Backend::Cpu | Backend::Auto) => job.by_program(session, backend),
        }
    })
}

/// What the rooms before a backend have settled.
struct Job<'a> {
    plan: schedule::Plan,
    data: &'a host::Bundle,
    asked: &'a Asked,
}

impl Job<'_> {
    fn bind(&self, width: host::Width) -> Result<host::Bound, Vec<Diagnostic>> {
        let chunk = self.plan.schedule.chunk();
        let schedule = chunk.map_or(host::Schedule::Recurrent, host::Schedule::Chunked);
        let options = host::BindOptions {
            width,
            schedule,
            grad: self.asked.grad,
            allow_extra: self.asked.allow_extra,
            ..host::BindOptions::default()
        };
        host::bind(&self.plan.rule, self.data, &options)
    }

    fn by_reference(&self) -> Outcome<Finished> {
        let bound = self.bind(host::Width::F64)?;
        let begun = Instant::now();
        let results = reference::run(&self.plan.rule, &bound)?;
        let account = Account::new(Backend::Reference, &self.plan, &bound, [Duration::ZERO, begun.elapsed()]);
        Ok(Made::new(Finished { results, account }, bound.notes))
    }

    /// By a kernel program. The data is checked before any device is asked for.
    fn by_program(&self, session: &mut Session<'_>, backend: Backend) -> Outcome<Finished> {
        let bound = self.bind(host::Width::F32)?;
        match backend {
            Backend::Gpu => {
                let adapter = gpu::choose(&gpu::Choice::Any).map_err(one)?;
                self.by_gpu(session, bound, &adapter)
            }
            Backend::Auto => match gpu::choose(&gpu::Choice::Auto) {
                Ok(adapter) => self.by_gpu(session, bound, &adapter),
                Err(_) => self.by_cpu(session, bound),
            },
            Backend::Cpu | Backend::Reference => self.by_cpu(session, bound),
        }
    }

    fn by_cpu(&self, session: &mut Session<'_>, bound: host::Bound) -> Outcome<Finished> {
        self.by_device(session, bound, Backend::Cpu, cpu::Compiled::new)
    }

    fn by_gpu(
        &self,
        session: &mut Session<'_>,
        bound: host::Bound,
        adapter: &gpu::Adapter,
    ) -> Outcome<Finished> {
        let device = gpu::Device::open(adapter, gpu::Ask::Most).map_err(one)?;
        let tasks = bound.streams.len() * bound.heads;
        let used = Cell::new(gpu::Structure::OneKernel);
        let compile = |program: &kernel::Verified<kernel::Program>| {
            let structure = self.asked.structure.unwrap_or_else(|| gpu::structure(&device, program, tasks));
            let compiled = gpu::Compiled::new(&device, program, structure)?;
            used.set(used.get().max(compiled.module().structure));
            Ok(compiled)
        };
        let mut made = self.by_device(session, bound, Backend::Gpu, compile)?;
        made.value.account.adapter = Some(device.description());
        made.value.account.structure = Some(used.get());
        Ok(made)
    }

    /// By whatever a device makes of the programs.
    fn by_device<R: Runs>(
        &self,
        session: &mut Session<'_>,
        bound: host::Bound,
        backend: Backend,
        compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
    ) -> Outcome<Finished> {
        let begun = Instant::now();
        let ran = match (self.asked.grad, self.plan.rule.layer.memory.history) {
            (false, _) => self.forwards(session, &bound, compile),
            (true, false) => self.gradients(session, &bound, backend, compile),
            (true, true) => self.history_gradients(session, &bound, compile),
        };
        ran?.then(|ran| {
            let compiling = ran.compiled.saturating_duration_since(begun);
            let times = [compiling, begun.elapsed().saturating_sub(compiling)];
            let account =
                Account { fallback: ran.fallback, ..Account::new(backend, &self.plan, &bound, times) };
            Ok(Made::new(Finished { results: ran.results, account }, bound.notes))
        })
    }

    fn forwards<R: Runs>(
        &self,
        session: &mut Session<'_>,
        bound: &host::Bound,
        compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
    ) -> Outcome<Ran> {
        let rule = &self.plan.rule;
        let by_token = |program: &R| {
            let run = |tasks: &mut [tasks::Task<'_>]| program.run(tasks);
            tasks::execute(program.program(), rule, bound, run)
        };
        programs(session, &self.plan, bound)?.then(|programs| match programs.made(compile)? {
            Programs::Whole(program, why) => Ran::of(why, || by_token(&program)),
            Programs::Pieces(pieces) => {
                let by_blocks = || tasks::execute_pieces(&pieces, rule, bound);
                Ran::unless_limited(by_blocks, || by_token(&pieces.start))
            }
        })
    }

    fn gradients<R: Runs>(
        &self,
        session: &mut Session<'_>,
        bound: &host::Bound,
        backend: Backend,
        compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
    ) -> Outcome<Ran> {
        let rule = &self.plan.rule;
        let most = match backend {
            Backend::Gpu => KERNEL,
            Backend::Cpu | Backend::Auto | Backend::Reference => usize::MAX,
        };
        backward(session, &self.plan, bound, most)?.then(|programs| {
            match programs.made(|programs| compiled(programs, &compile))? {
                Programs::Whole(programs, why) => Ran::of(why, || tasks::gradients(&programs, rule, bound)),
                Programs::Pieces(pieces) => {
                    let by_blocks = || tasks::gradients_in_pieces(&pieces, rule, bound);
                    Ran::unless_limited(by_blocks, || tasks::gradients(&pieces.start, rule, bound))
                }
            }
        })
    }

    fn history_gradients<R: Runs>(
        &self,
        session: &mut Session<'_>,
        bound: &host::Bound,
        compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
    ) -> Outcome<Ran> {
        session.history_back(&self.plan, &sizes(bound))?.then(|programs| {
            let programs = compiled_history(&programs, compile).map_err(one)?;
            Ran::of(None, || tasks::history_gradients(&programs, &self.plan.rule, bound))
        })
    }
}

/// What a device gave.
struct Ran {
    results: host::Bundle,
    /// When its programs were compiled.
    compiled: Instant,
    fallback: Option<String>,
}

impl Ran {
    fn of(fallback: Option<String>, run: impl FnOnce() -> Result<host::Bundle, Diagnostic>) -> Outcome<Ran> {
        let compiled = Instant::now();
        Ok(Made::new(Ran { results: run().map_err(one)?, compiled, fallback }, Vec::new()))
    }

    /// By blocks; where a limit of the device stands against them, all tokens one after the other.
    fn unless_limited(
        by_blocks: impl FnOnce() -> Result<host::Bundle, Diagnostic>,
        by_token: impl FnOnce() -> Result<host::Bundle, Diagnostic>,
    ) -> Outcome<Ran> {
        let compiled = Instant::now();
        match by_blocks().map_err(one) {
            Ok(results) => Ok(Made::new(Ran { results, compiled, fallback: None }, Vec::new())),
            Err(errors) => match limit(&errors) {
                Some(why) => Ran::of(Some(why), by_token),
                None => Err(errors),
            },
        }
    }
}

impl Asked {
    /// Refuses a chunk length beside the schedule that has no chunks.
    ///
    /// # Errors
    /// E0512.
    pub fn check(&self) -> Result<(), Vec<Diagnostic>> {
        match (self.schedule, self.chunk) {
            (Some(ScheduleName::Recurrent), Some(chunk)) => {
                let message = format!("`--chunk {chunk}` has no meaning with `--schedule recurrent`");
                let help = "remove one of the two: the recurrent schedule goes token by token";
                Err(one(Diagnostic::new(code::BAD_OPTION, message).with_help(help)))
            }
            _ => Ok(()),
        }
    }

    /// The schedule as the compiler is asked for it. A chunk length alone asks for chunks.
    pub fn request(&self) -> schedule::Request {
        match (self.schedule, self.chunk) {
            (Some(ScheduleName::Recurrent), _) => schedule::Request::Recurrent,
            (Some(ScheduleName::Chunked), chunk) => schedule::Request::Chunked(chunk),
            (None, Some(chunk)) => schedule::Request::Chunked(Some(chunk)),
            (None, None) => schedule::Request::Default,
        }
    }
}

impl Account {
    fn new(backend: Backend, plan: &schedule::Plan, bound: &host::Bound, times: [Duration; 2]) -> Account {
        let exact = plan.schedule.chunk().map(|_| plan.schedule.exact());
        let [compiling, running] = times;
        Account {
            backend,
            adapter: None,
            structure: None,
            width: bound.width,
            schedule: bound.schedule,
            exact,
            class: plan.rule.class.kind,
            fallback: None,
            sizes: [bound.batch, bound.heads, bound.tokens],
            dims: bound.dims.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
            segments: bound.packed.then_some(bound.streams.len()),
            compiling,
            running,
        }
    }
}

/// The environment variable that chooses the structure of the gpu backend's kernels, for tests and measurements.
pub const STRUCTURE: &str = "MIRAS_GPU_STRUCTURE";

/// The structure that [`STRUCTURE`] asks for.
///
/// # Errors
/// E0512 where it is none.
pub(crate) fn forced_structure() -> Result<Option<gpu::Structure>, Diagnostic> {
    let Some(wanted) = std::env::var_os(STRUCTURE).filter(|w| !w.is_empty()) else { return Ok(None) };
    match gpu::Structure::ALL.into_iter().find(|s| wanted == s.name()) {
        Some(structure) => Ok(Some(structure)),
        None => {
            let message = format!("`{STRUCTURE}` is `{}`, which is no structure", wanted.to_string_lossy());
            let names = gpu::Structure::ALL.map(|s| format!("`{}`", s.name())).join(" or ");
            Err(Diagnostic::new(code::BAD_OPTION, message)
                .with_help(format!("set it to {names}, or unset it")))
        }
    }
}

pub(crate) fn sizes(bound: &host::Bound) -> tensor::Sizes {
    tensor::Sizes { dims: bound.dims.clone() }
}

pub(crate) fn start(bound: &host::Bound) -> tensor::Start {
    if bound.continued { tensor::Start::State } else { tensor::Start::Weights }
}

/// Every program of a run with gradients, compiled for a device.
fn compiled<R>(
    programs: &driver::Backward,
    compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
) -> Result<tasks::Programs<R>, Diagnostic> {
    Ok(tasks::Programs {
        start: compile(&programs.start)?,
        advance: compile(&programs.advance)?,
        tape: programs.tape.as_ref().map(&compile).transpose()?,
        back: compile(&programs.back)?,
        before: compile(&programs.before)?,
        states: programs.states.clone(),
    })
}

/// The same for a memory that keeps its past.
fn compiled_history<R>(
    [forward, queries, past]: &[kernel::Verified<kernel::Program>; 3],
    compile: impl Fn(&kernel::Verified<kernel::Program>) -> Result<R, Diagnostic>,
) -> Result<tasks::HistoryPrograms<R>, Diagnostic> {
    Ok(tasks::HistoryPrograms {
        forward: compile(forward)?,
        queries: compile(queries)?,
        past: compile(past)?,
    })
}

pub(crate) fn one(diagnostic: Diagnostic) -> Vec<Diagnostic> {
    vec![diagnostic]
}
