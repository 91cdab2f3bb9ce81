//! One semantics (docs/mathematics.md): however a stream is cut, packed or put into a batch, it gives the same.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_gpu::Structure;
use miras_host as host;
use miras_tests::Verdict;
use miras_tests::compare::difference;
use miras_tests::pipeline::{self, Loaded};
use miras_verify::cut;
use std::process::ExitCode;

/// Layers of every class, with every kind of map that a chunk treats differently.
const LAYERS: [(&str, &str); 16] = [
    ("linear", "memory: matrix; bias: dot; retention: l2(alpha = learned(per = key)); algo: gd(eta = 1)"),
    ("delta", "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(at = retained)"),
    ("implicit", "memory: matrix; bias: l2; retention: none; algo: implicit(eta = learned(per = value))"),
    ("newton", "memory: matrix; bias: l2; retention: none; algo: newton"),
    ("multi", "memory: matrix; bias: l2; retention: l2; algo: multi(n = 2)"),
    ("titans", "memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: momentum"),
    ("short", "memory: mlp(2, expand = 2); bias: huber(delta = learned); retention: kl; algo: gd"),
    ("elastic", "memory: matrix; bias: huber(delta = 1); retention: elastic(gamma = 0.01); algo: gd"),
    ("lazy", "memory: matrix; bias: huber(delta = 1); retention: elastic_lazy(gamma = 0.01); algo: gd"),
    (
        "lazy gate",
        "input g: positive; memory: matrix; bias: huber(delta = 1); retention: elastic_lazy(gamma = 0.01 * g); algo: gd",
    ),
    (
        "lq gate",
        "input p: positive; memory: mlp(2, expand = 2); bias: l2; retention: lq(q = 2 + p); algo: gd",
    ),
    ("lq", "memory: mlp(2, expand = 2); bias: lp(p = 3); retention: lq; algo: gd"),
    ("sigmoid", "memory: matrix; bias: huber(delta = 1); retention: sigmoid; algo: gd"),
    ("ball", "memory: matrix; bias: huber(delta = 1); retention: ball(radius = 0.5); algo: gd"),
    ("cache", "memory: cache; bias: l2; retention: none; algo: nonparametric(kernel = exp(dot(q, k)))"),
    ("window", "layer w = sliding_window(n = 3);"),
];

const TOKENS: usize = 7;
const CHUNK: u32 = 3;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (name, program) in LAYERS {
        for backend in [Backend::Reference, Backend::Cpu] {
            for schedule in [ScheduleName::Recurrent, ScheduleName::Chunked] {
                for (check, work) in CHECKS {
                    let name = format!("{name}/{}/{}/{check}", word(backend), order(schedule));
                    let case = Case { program, backend, schedule, structure: None };
                    trials.push(Trial::test(name, move || case.hold(work).map_err(Failed::from)));
                }
            }
        }
    }
    trials.extend(on_the_gpu());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A few layers on the GPU, chunked, in either structure of its kernels; fewer checks, as kernels are compiled for each
/// run.
fn on_the_gpu() -> Vec<Trial> {
    let absent = !miras_tests::adapter_or_required();
    let rows = [
        ("delta", Structure::OneKernel),
        ("delta", Structure::SeveralLaunches),
        ("titans", Structure::SeveralLaunches),
        ("short", Structure::OneKernel),
    ];
    let mut trials = Vec::new();
    for (layer, structure) in rows {
        for (_, program) in LAYERS.into_iter().filter(|(name, _)| *name == layer) {
            for (check, work) in &CHECKS[2..] {
                let name = format!("{layer}/gpu, {structure}/chunked/{check}");
                let (backend, schedule) = (Backend::Gpu, ScheduleName::Chunked);
                let case = Case { program, backend, schedule, structure: Some(structure) };
                let trial = Trial::test(name, move || case.hold(*work).map_err(Failed::from));
                trials.push(trial.with_ignored_flag(absent));
            }
        }
    }
    trials
}

type Check = fn(&mut Run) -> Verdict;

const CHECKS: [(&str, Check); 6] = [
    ("any two pieces", two_pieces),
    ("token by token", token_by_token),
    ("no tokens", no_tokens),
    ("packed", packed),
    ("rows apart", rows_apart),
    ("the future", the_future),
];

fn word(backend: Backend) -> &'static str {
    match backend {
        Backend::Reference => "reference",
        Backend::Cpu => "cpu",
        Backend::Auto | Backend::Gpu => "another",
    }
}

fn order(schedule: ScheduleName) -> &'static str {
    match schedule {
        ScheduleName::Recurrent => "recurrent",
        ScheduleName::Chunked => "chunked",
    }
}

struct Case {
    program: &'static str,
    backend: Backend,
    schedule: ScheduleName,
    /// Of the gpu backend.
    structure: Option<Structure>,
}

/// A layer with inputs of two rows and two heads.
struct Run {
    loaded: Loaded,
    asked: Asked,
    data: host::Bundle,
}

impl Case {
    fn hold(&self, check: Check) -> Verdict {
        let loaded = pipeline::load("layer.miras", self.program, &Choice::default());
        let loaded = loaded.map_err(|e| pipeline::told(&e))?;
        let wanted =
            host::Synthetic { seed: 3, batch: 2, heads: 2, tokens: TOKENS, dk: 4, dv: 4, grad: false };
        let data = host::synthetic(&loaded.rule, &wanted).map_err(|d| d.to_string())?;
        let chunk = (self.schedule == ScheduleName::Chunked).then_some(CHUNK);
        let (schedule, structure) = (Some(self.schedule), self.structure);
        let asked = Asked { schedule, chunk, structure, ..pipeline::asked(self.backend) };
        let mut run = Run { loaded, asked, data };
        check(&mut run)
    }
}

impl Run {
    fn on(&mut self, data: &host::Bundle) -> Result<host::Bundle, String> {
        let finished = self.loaded.run(data, &self.asked).map_err(|e| pipeline::told(&e))?;
        Ok(finished.results)
    }

    /// How far other cuts may differ: float64 is as good as exact, float32 has a few roundings.
    fn slack(&self) -> f64 {
        match self.asked.backend {
            Backend::Reference => 1e-12,
            Backend::Cpu | Backend::Gpu | Backend::Auto => 2e-5,
        }
    }

    fn piece(
        &mut self,
        range: std::ops::Range<usize>,
        before: Option<&host::Bundle>,
    ) -> Result<host::Bundle, String> {
        let mut piece = cut::tokens(&self.loaded.rule, &self.data, TOKENS, range);
        if let Some(results) = before {
            piece = cut::continued(&piece, results);
        }
        self.on(&piece)
    }
}

/// All of `a` is in `b`, within the slack; to the bit where it is 0.
fn agree(a: &host::Bundle, b: &host::Bundle, slack: f64, what: &str) -> Verdict {
    for (name, tensor) in a.iter() {
        let other = b.get(name).ok_or_else(|| format!("{what}: `{name}` is missing"))?;
        if let Some(wrong) = difference(other, tensor, slack, slack * 1e-2) {
            return Err(format!("{what}: `{name}` {wrong}"));
        }
    }
    Ok(())
}

fn answers(results: &host::Bundle) -> Result<host::Tensor, String> {
    results.get("o").map(|t| host::Tensor::clone(t)).ok_or_else(|| "`o` is missing".into())
}

fn only(name: &str, tensor: host::Tensor) -> host::Bundle {
    [(name, tensor)].into_iter().collect()
}

fn states(results: &host::Bundle) -> host::Bundle {
    let states = results.iter().filter(|(name, _)| name.starts_with("state."));
    states.map(|(name, t)| (name, host::Tensor::clone(t))).collect()
}

fn two_pieces(run: &mut Run) -> Verdict {
    let (whole, slack) = (run.piece(0..TOKENS, None)?, run.slack());
    for at in 0..=TOKENS {
        let first = run.piece(0..at, None)?;
        let second = run.piece(at..TOKENS, Some(&first))?;
        let joined = cut::joined(&answers(&first)?, &answers(&second)?, 2);
        agree(&only("o", answers(&whole)?), &only("o", joined), slack, &format!("cut at {at}"))?;
        agree(&states(&whole), &second, slack, &format!("cut at {at}"))?;
    }
    Ok(())
}

fn token_by_token(run: &mut Run) -> Verdict {
    let (whole, slack) = (run.piece(0..TOKENS, None)?, run.slack());
    let mut last = run.piece(0..1, None)?;
    let mut all = answers(&last)?;
    for t in 1..TOKENS {
        last = run.piece(t..t + 1, Some(&last))?;
        all = cut::joined(&all, &answers(&last)?, 2);
    }
    agree(&only("o", answers(&whole)?), &only("o", all), slack, "token by token")?;
    agree(&states(&whole), &last, slack, "token by token")
}

/// Without tokens the state is handed on as it is, to the bit.
fn no_tokens(run: &mut Run) -> Verdict {
    let before = run.piece(0..4, None)?;
    let after = run.piece(4..4, Some(&before))?;
    agree(&states(&before), &after, 0.0, "no tokens")
}

/// Sequences laid end to end give what they give apart, to the bit.
fn packed(run: &mut Run) -> Verdict {
    let cuts = [0, 0, 1, 4, TOKENS];
    let row = cut::row(&run.loaded.rule, &run.data, 0);
    let mut together = row.clone();
    together.insert("segments", host::Tensor::i64([cuts.len()], cuts.iter().map(|c| *c as i64).collect()));
    let together = run.on(&together)?;
    let whole = answers(&together)?;
    for (n, pair) in cuts.windows(2).enumerate() {
        let apart = run.on(&cut::tokens(&run.loaded.rule, &row, TOKENS, pair[0]..pair[1]))?;
        let part = cut::along(&whole, 2, pair[0]..pair[1]);
        agree(&only("o", answers(&apart)?), &only("o", part), 0.0, &format!("segment {n}"))?;
        let memory = |b: &host::Bundle| -> host::Bundle {
            let kept = states(b);
            let kept = kept
                .iter()
                .filter(|(name, _)| name.starts_with("state.memory") || name.starts_with("state.algo"));
            kept.map(|(name, t)| (name, host::Tensor::clone(t))).collect()
        };
        let of_segment: host::Bundle =
            memory(&together).iter().map(|(name, t)| (name, cut::along(t, 0, n..n + 1))).collect();
        agree(&memory(&apart), &of_segment, 0.0, &format!("segment {n}"))?;
    }
    Ok(())
}

/// A row of a batch gives what it gives alone, to the bit; and so does a second run.
fn rows_apart(run: &mut Run) -> Verdict {
    let data = run.data.clone();
    let together = run.on(&data)?;
    agree(&together, &run.on(&data)?, 0.0, "a second run")?;
    let whole = answers(&together)?;
    for row in 0..2 {
        let alone = run.on(&cut::row(&run.loaded.rule, &data, row))?;
        let part = cut::along(&whole, 0, row..row + 1);
        agree(&only("o", answers(&alone)?), &only("o", part), 0.0, &format!("row {row}"))?;
    }
    Ok(())
}

/// What comes after a token changes nothing at or before it, to the bit.
fn the_future(run: &mut Run) -> Verdict {
    let whole = answers(&run.piece(0..TOKENS, None)?)?;
    for t in 0..TOKENS - 1 {
        let mut other = run.data.clone();
        for name in ["q", "k", "v"] {
            let Some(tensor) = run.data.get(name) else { continue };
            let entries = tensor.shape[2] / TOKENS;
            let kept = cut::along(tensor, 2, 0..(t + 1) * entries);
            let changed = cut::along(tensor, 2, (t + 1) * entries..tensor.shape[2]);
            let values = changed.f64s().unwrap_or_default().iter().map(|x| 0.5 - x).collect();
            let changed = host::Tensor::f64(changed.shape.clone(), values);
            other.insert(name, cut::joined(&kept, &changed, 2));
        }
        let other = answers(&run.on(&other)?)?;
        let before = |o: &host::Tensor| only("o", cut::along(o, 2, 0..t + 1));
        agree(&before(&whole), &before(&other), 0.0, &format!("after token {t}"))?;
    }
    Ok(())
}
