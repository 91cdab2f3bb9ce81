//! `miras verify`.

use super::session;
use crate::backend::{Asked, Backend, ScheduleName, execute};
use crate::console::Console;
use crate::options::Verify;
use crate::{DONE, FAULT, subject};
use base::Diagnostic;
use driver::{Outcome, Session};
use miras_base as base;
use miras_driver as driver;
use miras_gpu as gpu;
use miras_host as host;
use miras_rule as rule;
use miras_schedule as schedule;
use miras_spec as spec;
use miras_verify as check;
use miras_verify::Runner;

/// Verifies a layer; status 1 where a promise is broken.
pub(super) fn verify(options: &Verify, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    match work(options, &mut session, console) {
        Ok(0) => DONE,
        Ok(_) => FAULT,
        Err(errors) => console.tell(&errors, session.sources()).max(FAULT),
    }
}

/// The number of broken promises.
fn work(
    options: &Verify,
    session: &mut Session<'_>,
    console: &mut Console<'_>,
) -> Result<usize, Vec<Diagnostic>> {
    let rule = rule(options, session)?;
    console.tell(&rule.said, session.sources());
    let rule = rule.value;
    let request = schedule::Request::Chunked(options.chunk);
    let plan = session.plan(rule.clone(), request)?.value;
    let (chunk, exact) = match plan.schedule {
        schedule::Schedule::Recurrent => (rule.layer.chunk, true),
        schedule::Schedule::ChunkedExact(c) => (c, true),
        schedule::Schedule::ChunkedFrozen(c) => (c, false),
    };
    let (data, said) = data(options, &rule, chunk)?;
    let (mut backends, absent) = backends(options, &rule);
    let case = check::Case { rule: &rule, data: &data, chunk, exact };
    let report = check::verify(&case, &mut backends, &absent)?;
    console.say(&report.text());
    if let Some(said) = said {
        console.say(&format!("({said}, since larger ones make this layer chaotic on it)\n"));
    }
    Ok(report.broken())
}

fn rule(options: &Verify, session: &mut Session<'_>) -> Outcome<rule::UpdateRule> {
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    subject.then(|subject| session.rule(&subject.program, &choice))
}

/// The data given, or synthetic data for two chunks and a few tokens on which the layer is not chaotic; with
/// what is to be said about it.
fn data(
    options: &Verify,
    rule: &rule::UpdateRule,
    chunk: u32,
) -> Result<(host::Bundle, Option<String>), Vec<Diagnostic>> {
    if let Some(path) = &options.inputs {
        let data = host::read(path).map_err(one)?;
        let kept = data.iter().filter(|(name, _)| !name.starts_with("grad."));
        return Ok((kept.map(|(name, t)| (name, host::Tensor::clone(t))).collect(), None));
    }
    let tokens = options.tokens.unwrap_or(chunk.min(128) * 2 + 3);
    let wanted = host::Synthetic {
        seed: options.seed,
        batch: options.batch as usize,
        heads: options.heads as usize,
        tokens: tokens as usize,
        dk: options.dk as usize,
        dv: options.dv as usize,
        grad: false,
    };
    let data = host::synthetic(rule, &wanted).map_err(one)?;
    let mut factor = 1.0;
    loop {
        let calmer = check::calmed(rule, &data, factor);
        if factor <= SMALLEST_STEPS || check::amplification(rule, &calmer)? <= CALM {
            let said = format!("synthetic data with step sizes and forgetting x {factor}");
            return Ok((calmer, (factor < 1.0).then_some(said)));
        }
        factor /= 2.0;
    }
}

/// A rounding of the inputs that grows by more than this makes figures that say nothing: the memory is chaotic,
/// and synthetic data takes smaller steps.
const CALM: f64 = 32.0;

/// Where that ends.
const SMALLEST_STEPS: f64 = 1.0 / 256.0;

/// What can run here, and what cannot with the reason.
#[allow(clippy::type_complexity)]
fn backends(options: &Verify, rule: &rule::UpdateRule) -> (Vec<Box<dyn Runner>>, Vec<(String, String)>) {
    let asked = |backend| options.backend == Backend::Auto || options.backend == backend;
    let mut there: Vec<Box<dyn Runner>> = Vec::new();
    let mut absent = Vec::new();
    let made = |backend, name| Box::new(Compiled { backend, name, rule: rule.clone() });
    if asked(Backend::Cpu) {
        there.push(made(Backend::Cpu, "cpu".into()));
    }
    if asked(Backend::Gpu) {
        match gpu::choose(&gpu::Choice::Any) {
            Ok(adapter) => there.push(made(Backend::Gpu, format!("gpu, {}", adapter.description()))),
            Err(why) => absent.push(("gpu".to_string(), why.message)),
        }
    }
    (there, absent)
}

/// A backend that runs kernel programs.
struct Compiled {
    backend: Backend,
    name: String,
    rule: rule::UpdateRule,
}

impl Runner for Compiled {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(
        &mut self,
        data: &host::Bundle,
        schedule: host::Schedule,
        grad: bool,
    ) -> Result<host::Bundle, Vec<Diagnostic>> {
        let (schedule, chunk) = match schedule {
            host::Schedule::Recurrent => (ScheduleName::Recurrent, None),
            host::Schedule::Chunked(c) => (ScheduleName::Chunked, Some(c)),
        };
        let asked = Asked { backend: self.backend, schedule: Some(schedule), chunk, grad, allow_extra: true };
        let mut session = Session::new(spec::Library::standard());
        Ok(execute(&mut session, self.rule.clone(), data, &asked)?.value.results)
    }
}

fn one(diagnostic: Diagnostic) -> Vec<Diagnostic> {
    vec![diagnostic]
}
