//! `miras bench`.

use super::session;
use crate::backend::{Account, Asked, Backend, ScheduleName, execute, forced_structure};
use crate::console::Console;
use crate::options::Bench;
use crate::{DONE, FAULT, subject};
use base::Diagnostic;
use driver::Session;
use miras_base as base;
use miras_driver as driver;
use miras_gpu as gpu;
use miras_host as host;
use miras_rule as rule;
use std::time::Duration;

/// Times a layer.
pub(super) fn bench(options: &Bench, console: &mut Console<'_>) -> u8 {
    let mut session = session();
    match work(options, &mut session, console) {
        Ok(()) => DONE,
        Err(errors) => console.tell(&errors, session.sources()).max(FAULT),
    }
}

fn work(
    options: &Bench,
    session: &mut Session<'_>,
    console: &mut Console<'_>,
) -> Result<(), Vec<Diagnostic>> {
    let subject = subject::load(session, &options.layer.file)?;
    let choice = subject.value.choice(&options.layer);
    let rule = subject.then(|subject| session.rule(&subject.program, &choice))?.value;
    let wanted = host::Synthetic {
        seed: 0,
        batch: options.batch as usize,
        heads: options.heads as usize,
        tokens: options.tokens as usize,
        dk: options.dk as usize,
        dv: options.dv as usize,
        grad: options.grad,
    };
    let data = host::synthetic(&rule, &wanted).map_err(|d| vec![d])?;
    let structure = forced_structure().map_err(|d| vec![d])?;
    let mut rows: Vec<Row> = contestants(options, structure).map(Row::of).collect();
    // One round more: the first warms caches and is not counted.
    for round in 0..=options.runs {
        for row in &mut rows {
            row.run(session, &rule, &data, round > 0)?;
        }
    }
    console.say(&table(&rows, options));
    Ok(())
}

/// What is timed: each backend by each schedule.
fn contestants(options: &Bench, structure: Option<gpu::Structure>) -> impl Iterator<Item = Asked> {
    let real = || gpu::choose(&gpu::Choice::Auto).is_ok();
    let backends = match options.backend.0 {
        Backend::Auto if real() => vec![Backend::Cpu, Backend::Gpu],
        Backend::Auto => vec![Backend::Cpu],
        backend => vec![backend],
    };
    let (chunk, grad) = (options.chunk, options.grad);
    let orders = [(ScheduleName::Recurrent, None), (ScheduleName::Chunked, chunk)];
    backends.into_iter().flat_map(move |backend| {
        orders.map(|(order, chunk)| Asked {
            backend,
            schedule: Some(order),
            chunk,
            grad,
            allow_extra: false,
            structure,
        })
    })
}

/// One contestant with its times so far.
struct Row {
    asked: Asked,
    times: Vec<Duration>,
    account: Option<Account>,
}

impl Row {
    fn of(asked: Asked) -> Row {
        Row { asked, times: Vec::new(), account: None }
    }

    fn run(
        &mut self,
        session: &mut Session<'_>,
        rule: &rule::UpdateRule,
        data: &host::Bundle,
        counts: bool,
    ) -> Result<(), Vec<Diagnostic>> {
        let account = execute(session, rule.clone(), data, &self.asked)?.value.account;
        if counts {
            self.times.push(account.running);
        }
        self.account = Some(account);
        Ok(())
    }

    /// The time in the middle.
    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
    }

    fn fastest(&self) -> f64 {
        self.times.iter().min().map_or(f64::NAN, Duration::as_secs_f64)
    }

    fn text(&self, first: f64, tokens: f64) -> String {
        let Some(account) = &self.account else { return String::new() };
        let backend = match (account.backend, &account.adapter) {
            (Backend::Gpu | Backend::Auto, Some(adapter)) => format!("gpu, {adapter}"),
            (Backend::Gpu | Backend::Auto, None) => "gpu".into(),
            (Backend::Cpu, _) => "cpu".into(),
            (Backend::Reference, _) => "reference".into(),
        };
        let order = match account.schedule {
            host::Schedule::Recurrent => "recurrent".into(),
            host::Schedule::Chunked(c) => format!("chunked({c})"),
        };
        let (median, fastest) = (self.median(), self.fastest());
        let (compiling, rate) = (account.compiling.as_secs_f64() * 1e3, tokens / median);
        format!(
            "{order:14} {:>10.3} {:>10.3} {rate:>12.0} {:>7.2} {compiling:>10.1}  {backend}\n",
            median * 1e3,
            fastest * 1e3,
            median / first
        )
    }
}

fn table(rows: &[Row], options: &Bench) -> String {
    let Bench { batch, heads, tokens, dk, dv, runs, .. } = options;
    let pass = if options.grad { "forward and backward" } else { "forward" };
    let first = rows.first().map_or(f64::NAN, Row::median);
    let all = f64::from(*batch) * f64::from(*tokens);
    let mut text =
        format!("{pass}, B {batch}, H {heads}, T {tokens}, dk {dk}, dv {dv}, {runs} runs of each\n\n");
    text += &format!(
        "{:14} {:>10} {:>10} {:>12} {:>7} {:>10}  backend\n",
        "schedule", "median ms", "best ms", "tokens/s", "ratio", "compile ms"
    );
    for row in rows {
        text += &row.text(first, all);
    }
    text
}
