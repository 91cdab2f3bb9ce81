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
use miras_explain as explain;
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
    let chunk = plan.schedule.chunk().unwrap_or(rule.layer.chunk);
    let (data, said) = data(options, &rule, chunk)?;
    let (mut backends, adapters, absent) = backends(options, &rule);
    let case = check::Case { rule: &rule, data: &data, chunk, exact: plan.schedule.exact() };
    let report = check::verify(&case, &mut backends, &absent)?;
    console.say(&report.text());
    for (name, adapter) in &adapters {
        console.say(&format!("({name}: {adapter})\n"));
    }
    if let Some(said) = said {
        console.say(&format!("({said}, since larger ones make this layer chaotic on it)\n"));
    }
    if let Some(path) = &options.plot {
        host::write_bytes(path, plot(&report).as_bytes()).map_err(one)?;
    }
    Ok(report.broken())
}

/// The error of chunks by their length, as an SVG file.
fn plot(report: &check::Report) -> String {
    let errors = report.curve.iter().map(|point| (point.chunk, point.outputs)).collect();
    explain::Measured { on: String::new(), errors }.chart().file()
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
    let (data, factor) = check::calm(rule, &data)?;
    let said = format!("synthetic data with step sizes and forgetting x {factor}");
    Ok((data, (factor < 1.0).then_some(said)))
}

/// What can run here, the adapters, and what cannot run with the reason.
fn backends(options: &Verify, rule: &rule::UpdateRule) -> (Vec<Box<dyn Runner>>, Named, Named) {
    let asked = |backend| options.backend.0 == Backend::Auto || options.backend.0 == backend;
    let mut there: Vec<Box<dyn Runner>> = Vec::new();
    let (mut adapters, mut absent) = (Named::new(), Named::new());
    let made = |backend, name| Box::new(Compiled { backend, name, rule: rule.clone() });
    if asked(Backend::Cpu) {
        there.push(made(Backend::Cpu, "cpu"));
    }
    if asked(Backend::Gpu) {
        match gpu::choose(&gpu::Choice::Any) {
            Ok(adapter) => {
                adapters.push(("gpu".into(), adapter.description()));
                there.push(made(Backend::Gpu, "gpu"));
            }
            Err(why) => absent.push(("gpu".into(), why.message)),
        }
    }
    (there, adapters, absent)
}

/// Pairs of a name and what is to be said of it.
type Named = Vec<(String, String)>;

/// A backend that runs kernel programs.
struct Compiled {
    backend: Backend,
    name: &'static str,
    rule: rule::UpdateRule,
}

impl Runner for Compiled {
    fn name(&self) -> String {
        self.name.into()
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
        let asked = Asked {
            backend: self.backend,
            schedule: Some(schedule),
            chunk,
            grad,
            allow_extra: true,
            structure: None,
        };
        let mut session = Session::new(spec::Library::standard());
        Ok(execute(&mut session, self.rule.clone(), data, &asked)?.value.results)
    }
}

fn one(diagnostic: Diagnostic) -> Vec<Diagnostic> {
    vec![diagnostic]
}
