//! `miras run`.

use super::{class, session};
use crate::backend::{Account, Asked, Backend, ScheduleName, execute, forced_structure};
use crate::console::Console;
use crate::options::Run;
use crate::{DONE, subject};
use base::Diagnostic;
use base::diagnostic::code;
use driver::Session;
use miras_base as base;
use miras_driver as driver;
use miras_gpu as gpu;
use miras_host as host;
use std::path::Path;
use std::time::Duration;

/// Runs a layer: what can be refused without reading the data is refused first.
pub(super) fn run(options: &Run, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    match work(options, &mut session, console) {
        Ok(()) => DONE,
        Err(errors) => console.tell(&errors, session.sources()),
    }
}

fn work(options: &Run, session: &mut Session<'_>, console: &mut Console<'_>) -> Result<(), Vec<Diagnostic>> {
    let asked = Asked {
        backend: options.backend,
        schedule: options.schedule,
        chunk: options.chunk,
        grad: options.grad,
        allow_extra: options.allow_extra,
        structure: forced_structure().map_err(one)?,
    };
    asked.check()?;
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    let mut rule = subject.then(|subject| session.rule(&subject.program, &choice))?;
    if asked.schedule == Some(ScheduleName::Recurrent) {
        // It speaks of chunks.
        rule.said.retain(|d| d.code != code::UNIT_KEYS);
    }
    console.tell(&rule.said, session.sources());
    let pending = output(options)?;
    let data = host::read(&options.inputs).map_err(one)?;
    let finished = execute(session, rule.value, &data, &asked)?;
    console.tell(&finished.said, session.sources());
    let finished = finished.value;
    console.tell(host::not_finite(&finished.results).as_slice(), session.sources());
    pending.commit(&finished.results).map_err(one)?;
    console.say(&told(&finished.account));
    console.say(&written(&finished.results, &options.out));
    Ok(())
}

/// Opens the output before the work is done, so that nothing is computed for nothing.
fn output(options: &Run) -> Result<host::Pending, Vec<Diagnostic>> {
    for (path, what) in [(&options.inputs, "the inputs"), (&options.layer.file, "the program")] {
        if same(path, &options.out) {
            let message = format!("cannot write `{}`: it holds {what}", options.out.display());
            return Err(one(
                Diagnostic::new(code::WRITE_FILE, message).with_help("give `--out` another path")
            ));
        }
    }
    host::Pending::open(&options.out).map_err(one)
}

/// Whether two paths lead to one existing file.
fn same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (std::fs::metadata(a), std::fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Which backend, schedule and class ran, on what, for how long.
fn told(account: &Account) -> String {
    let backend = match (account.backend, &account.adapter) {
        (Backend::Cpu, _) => "cpu".to_string(),
        (Backend::Reference, _) => "reference".to_string(),
        (Backend::Gpu | Backend::Auto, Some(adapter)) => format!("gpu, {adapter}"),
        (Backend::Gpu | Backend::Auto, None) => "gpu".to_string(),
    };
    let schedule = match (account.schedule, account.exact) {
        (host::Schedule::Recurrent, _) => "recurrent".to_string(),
        (host::Schedule::Chunked(c), Some(false)) => {
            format!("chunked({c}), gradients frozen at each chunk's start")
        }
        (host::Schedule::Chunked(c), _) => format!("chunked({c}), equal to recurrent"),
    };
    let schedule = match &account.fallback {
        Some(why) => format!("{schedule}, its tokens one after the other: {why}"),
        None => schedule,
    };
    let [b, h, t] = account.sizes;
    let mut sizes = format!("B {b}, H {h}, T {t}");
    for (name, n) in &account.dims {
        sizes += &format!(", {name} {n}");
    }
    if let Some(segments) = account.segments {
        sizes += &format!(", {segments} segments");
    }
    let compiling = match account.compiling {
        Duration::ZERO => String::new(),
        time => format!(", after {} to compile", short(time)),
    };
    let kernels = match account.structure {
        Some(structure) => format!("kernels   {structure} for each {}\n", per(structure)),
        None => String::new(),
    };
    format!(
        "backend   {backend} ({})\n{kernels}schedule  {schedule}\nclass     {}\nsizes     {sizes}\ntime      {}{compiling}\n",
        account.width.name(),
        class(account.class),
        short(account.running)
    )
}

/// What a structure has kernels for.
fn per(structure: gpu::Structure) -> &'static str {
    match structure {
        gpu::Structure::OneKernel => "part of the stream",
        gpu::Structure::SeveralLaunches => "block of tokens",
    }
}

/// What the output file holds.
fn written(results: &host::Bundle, out: &Path) -> String {
    let mut text = format!("wrote     {}\n", out.display());
    let longest = results.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, tensor) in results.iter() {
        text += &format!("          {name:longest$}  {:?}\n", tensor.shape);
    }
    text
}

/// Three digits and a unit.
fn short(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

fn one(diagnostic: Diagnostic) -> Vec<Diagnostic> {
    vec![diagnostic]
}
