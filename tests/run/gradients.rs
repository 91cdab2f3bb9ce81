//! Outer gradients of compiled layers: against the reference, in pieces, packed, again, and where they must vanish.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_cli::{Asked, Backend, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_reference::Arithmetic;
use miras_rule::Inside;
use miras_tests::Verdict;
use miras_tests::compare::difference;
use miras_tests::pipeline::{self, Loaded};
use miras_verify::{Reference, Runner, cut, error};
use std::process::ExitCode;

/// Layers of every class, with every kind of map, gate and repetition.
const LAYERS: [(&str, &str); 28] = [
    ("linear", "memory: matrix; bias: dot; retention: l2(alpha = learned(per = key)); algo: gd(eta = 1)"),
    ("delta", "memory: matrix; bias: l2; retention: l2(alpha = learned); algo: gd(at = retained)"),
    ("implicit", "memory: matrix; bias: l2; retention: none; algo: implicit(eta = learned(per = value))"),
    ("newton", "memory: matrix; bias: l2; retention: none; algo: newton(ridge = 0.5, forget = 0.1)"),
    ("multi", "memory: matrix; bias: l2; retention: l2; algo: multi(n = 2)"),
    ("frozen multi", "memory: matrix; bias: huber(delta = 0.5); retention: l2; algo: multi(n = 2)"),
    ("titans", "memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: momentum"),
    ("deep", "memory: mlp(3, expand = 2, act = tanh); bias: l2; retention: l2; algo: momentum"),
    ("kl", "memory: mlp(2, expand = 2); bias: huber(delta = learned); retention: kl; algo: gd"),
    ("channels", "layer y = yaad(chunk = 3);"),
    ("elastic", "memory: matrix; bias: huber(delta = 0.5); retention: elastic(gamma = 0.01); algo: gd"),
    ("smooth", "memory: matrix; bias: l2; retention: elastic_smooth(gamma = 0.1); algo: gd"),
    ("lazy", "memory: matrix; bias: huber(delta = 0.5); retention: elastic_lazy(gamma = 0.01); algo: gd"),
    (
        "lazy gate",
        "input g: positive; memory: matrix; bias: huber(delta = 0.5); retention: elastic_lazy(gamma = 0.01 * g); algo: gd",
    ),
    ("lq", "memory: mlp(2, expand = 2); bias: lp(p = 3); retention: lq; algo: gd"),
    ("exact lq", "memory: matrix; bias: huber(delta = 0.5); retention: lq_exact(1.5); algo: gd"),
    ("sigmoid", "memory: matrix; bias: huber(delta = 0.5); retention: sigmoid; algo: gd"),
    ("ball", "memory: matrix; bias: huber(delta = 0.5); retention: ball(radius = 0.5); algo: momentum"),
    (
        "divergence",
        "fn chi2(t) = (t - 1)^2 / 2; memory: matrix; bias: l2; retention: fdiv(f = chi2, mass = 2); algo: gd",
    ),
    (
        "before",
        "memory: matrix; bias: robust(radius = 0.3); retention: l2; algo: gd(at = retained); read: before",
    ),
    ("linked start", LINKED),
    ("mamba", "layer m = mamba();"),
    ("rwkv", "layer r = rwkv7();"),
    (
        "trained",
        "memory: mlp(1); bias: kl; retention: l2(alpha = trained(init = 0.1)); algo: gd(eta = learned(per = channel))",
    ),
    ("slopes", "memory: matrix; bias: sign(sharpness = 3); retention: sigmoid(alpha = 0.1); algo: momentum"),
    ("cache", "memory: cache; bias: l2; retention: none; algo: nonparametric(kernel = exp(dot(q, k)))"),
    ("window", "layer w = sliding_window(n = 3);"),
    ("hopfield", "memory: cache; bias: l2; retention: none; algo: hopfield(n = 3)"),
];

/// Weights that begin at something trained.
const LINKED: &str = "memory linked(scale: real = trained(init = 0.5)) {
      weight W: [dv, dk] = scale * eye(dv);
      read(x) = W @ x;
    }
    layer l { memory: linked; bias: huber(delta = 0.5); retention: l2; algo: momentum; }";

const TOKENS: usize = 19;
const CHUNK: u32 = 3;

/// Of sums in another order: relative to the largest entry.
const SLACK: f64 = 1e-4;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (name, program) in LAYERS {
        for schedule in [ScheduleName::Recurrent, ScheduleName::Chunked] {
            for (check, work) in CHECKS {
                let title = format!("{name}/{schedule:?}/{check}");
                let hold = move || Run::new(program, schedule).and_then(|mut r| work(&mut r));
                trials.push(Trial::test(title, move || hold().map_err(Failed::from)));
            }
        }
    }
    for (name, work) in VANISHING {
        trials.push(Trial::test(name, move || work().map_err(Failed::from)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Check = fn(&mut Run) -> Verdict;

const CHECKS: [(&str, Check); 7] = [
    ("reference", as_the_reference),
    ("resets", with_resets),
    ("lengths", of_every_length),
    ("pieces", in_pieces),
    ("packed", packed),
    ("again", again),
    ("no tokens", no_tokens),
];

/// A layer with inputs of two rows and two heads.
struct Run {
    loaded: Loaded,
    asked: Asked,
    data: host::Bundle,
}

impl Run {
    fn new(program: &str, schedule: ScheduleName) -> Result<Run, String> {
        let loaded = pipeline::load("layer.miras", program, &Choice::default());
        let loaded = loaded.map_err(|e| pipeline::told(&e))?;
        let wanted =
            host::Synthetic { seed: 5, batch: 2, heads: 2, tokens: TOKENS, dk: 4, dv: 4, grad: true };
        let mut data = host::synthetic(&loaded.rule, &wanted).map_err(|d| d.to_string())?;
        if program == LINKED {
            drop(data.remove("memory.W"));
        }
        let chunk = (schedule == ScheduleName::Chunked).then_some(CHUNK);
        let asked = Asked { schedule: Some(schedule), chunk, grad: true, ..pipeline::asked(Backend::Cpu) };
        Ok(Run { loaded, asked, data })
    }

    fn on(&mut self, data: &host::Bundle) -> Result<host::Bundle, String> {
        let finished = self.loaded.run(data, &self.asked).map_err(|e| pipeline::told(&e))?;
        Ok(finished.results)
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

fn named(results: &host::Bundle, prefix: &str) -> host::Bundle {
    let some = results.iter().filter(|(name, _)| name.starts_with(prefix));
    some.map(|(name, t)| (name, host::Tensor::clone(t))).collect()
}

/// As close as float32 can be asked to be: many times what the reference loses when it rounds every operation.
fn as_the_reference(run: &mut Run) -> Verdict {
    let data = run.data.clone();
    let compiled = run.on(&data)?;
    let schedule = match run.asked.chunk {
        Some(chunk) => host::Schedule::Chunked(chunk),
        None => host::Schedule::Recurrent,
    };
    let by = |arithmetic| {
        let mut reference = Reference { rule: &run.loaded.rule, arithmetic };
        reference.run(&data, schedule, true).map_err(|e| pipeline::told(&e))
    };
    let (expected, rounded) = (by(Arithmetic::Float64)?, by(Arithmetic::RoundedToFloat32)?);
    if expected.iter().count() != compiled.iter().count() {
        return Err("the results have other names".into());
    }
    for (name, tensor) in expected.iter() {
        let lost = rounded.get(name).map_or(0.0, |r| error(r, tensor));
        let allowed = 2e-5 + 32.0 * lost;
        let found = compiled.get(name).map_or(f64::INFINITY, |c| error(c, tensor));
        if found.is_nan() || found > allowed {
            return Err(format!("`{name}` is off by {found:.3e} of its size, allowed {allowed:.3e}"));
        }
    }
    Ok(())
}

/// Some tokens keep nothing of what was before them, some all. Not where the weights are a norm's power of the dual:
/// one that begins anew is so small that the reference itself, rounded to float32, has no digit left.
fn with_resets(run: &mut Run) -> Verdict {
    if run.loaded.rule.retention.iter().any(|r| matches!(r.inside, Inside::FrozenScale(_))) {
        return Ok(());
    }
    change(run, "retention.alpha", |i, x| match i % TOKENS {
        4 | 5 | 12 => 1.0,
        2 | 9 | 14 => 0.0,
        _ => x,
    });
    as_the_reference(run)
}

/// Streams that end before, at and behind the borders of two chunks.
fn of_every_length(run: &mut Run) -> Verdict {
    let whole = run.data.clone();
    for tokens in 0..=2 * CHUNK as usize + 1 {
        run.data = cut::tokens(&run.loaded.rule, &whole, TOKENS, 0..tokens);
        as_the_reference(run).map_err(|wrong| format!("{tokens} tokens: {wrong}"))?;
    }
    Ok(())
}

/// Pieces backwards: the gradients of what one starts from are the cotangents of what the one before hands on.
fn in_pieces(run: &mut Run) -> Verdict {
    let data = run.data.clone();
    let whole = named(&run.on(&data)?, "d.");
    for cuts in [vec![0, 6, TOKENS], vec![0, 4, 4, 11, TOKENS], vec![0, 1, 18, TOKENS]] {
        let found = pieces(run, &cuts)?;
        agree(&whole, &found, SLACK, &format!("cut at {cuts:?}"))?;
    }
    Ok(())
}

fn pieces(run: &mut Run, cuts: &[usize]) -> Result<host::Bundle, String> {
    let mut inputs: Vec<host::Bundle> = Vec::new();
    for pair in cuts.windows(2) {
        let mut piece = cut::tokens(&run.loaded.rule, &run.data, TOKENS, pair[0]..pair[1]);
        if let Some(before) = inputs.last() {
            piece = cut::continued(&piece, &run.on(before)?);
        }
        inputs.push(piece);
    }
    let mut total = host::Bundle::new();
    let mut after = host::Bundle::new();
    for mut piece in inputs.into_iter().rev() {
        for (name, tensor) in after.iter() {
            if let Some(state) = name.strip_prefix("d.state.") {
                piece.insert(format!("grad.state.{state}"), tensor.clone());
            }
        }
        after = run.on(&piece)?;
        for (name, tensor) in after.iter().filter(|(n, _)| n.starts_with("d.") && !n.starts_with("d.state."))
        {
            let sum = match total.get(name) {
                None => host::Tensor::clone(tensor),
                Some(later) if has_tokens(run, name) => cut::joined(tensor, later, 2),
                Some(later) => added(later, tensor),
            };
            total.insert(name, sum);
        }
    }
    Ok(total)
}

/// Whether a gradient is that of an input with an entry for each token.
fn has_tokens(run: &Run, name: &str) -> bool {
    let name = name.strip_prefix("d.").unwrap_or(name);
    let empty = cut::tokens(&run.loaded.rule, &run.data, TOKENS, 0..0);
    empty.get(name).is_some_and(|t| t.shape.get(2) == Some(&0))
}

fn added(a: &host::Tensor, b: &host::Tensor) -> host::Tensor {
    let (x, y) = (a.f64s().unwrap_or_default(), b.f64s().unwrap_or_default());
    host::Tensor::f64(a.shape.clone(), x.iter().zip(y.iter()).map(|(a, b)| a + b).collect())
}

/// Sequences laid end to end: gradients of tokens to the bit, of what heads share the sum.
fn packed(run: &mut Run) -> Verdict {
    let cuts = [0, 0, 1, 8, TOKENS];
    let row = cut::row(&run.loaded.rule, &run.data, 0);
    let mut together = row.clone();
    together.insert("segments", host::Tensor::i64([cuts.len()], cuts.iter().map(|c| *c as i64).collect()));
    let together = named(&run.on(&together)?, "d.");
    let mut shared = host::Bundle::new();
    for (n, pair) in cuts.windows(2).enumerate() {
        let apart = run.on(&cut::tokens(&run.loaded.rule, &row, TOKENS, pair[0]..pair[1]))?;
        for (name, tensor) in named(&apart, "d.").iter() {
            if has_tokens(run, name) {
                let whole = together.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
                let entries = whole.shape[2] / TOKENS;
                let part = cut::along(whole, 2, pair[0] * entries..pair[1] * entries);
                let [part, own] =
                    [part, host::Tensor::clone(tensor)].map(|t| [(name, t)].into_iter().collect());
                agree(&own, &part, 0.0, &format!("segment {n}"))?;
            } else {
                let sum = shared.get(name).map_or_else(|| host::Tensor::clone(tensor), |s| added(s, tensor));
                shared.insert(name, sum);
            }
        }
    }
    agree(&shared, &together, SLACK, "the sum over segments")
}

fn again(run: &mut Run) -> Verdict {
    let data = run.data.clone();
    agree(&run.on(&data)?, &run.on(&data)?, 0.0, "a second run")
}

/// Without tokens the cotangents of states go through, to the bit.
fn no_tokens(run: &mut Run) -> Verdict {
    let before = run.on(&cut::tokens(&run.loaded.rule, &run.data, TOKENS, 0..6))?;
    let mut empty = cut::continued(&cut::tokens(&run.loaded.rule, &run.data, TOKENS, 6..6), &before);
    let floats = |name: &&str| name.starts_with("state.memory") || name.starts_with("state.algo");
    let names: Vec<String> = empty.names().filter(floats).map(String::from).collect();
    let mut expected = host::Bundle::new();
    for name in names {
        let Some(state) = empty.get(&name).cloned() else { continue };
        empty.insert(format!("grad.{name}"), state.clone());
        expected.insert(format!("d.{name}"), state);
    }
    agree(&expected, &run.on(&empty)?, 0.0, "no tokens")
}

type Alone = fn() -> Verdict;

/// Where gradients must be exactly 0, and where they must be numbers.
const VANISHING: [(&str, Alone); 4] = [
    ("at a boundary beside others inside", at_a_boundary),
    ("behind a hard reset", behind_a_hard_reset),
    ("behind clipped errors", behind_clipped_errors),
    ("at singular points", at_singular_points),
];

const BOTH: [ScheduleName; 2] = [ScheduleName::Recurrent, ScheduleName::Chunked];

fn change(run: &mut Run, name: &str, f: impl Fn(usize, f64) -> f64) {
    let Some(tensor) = run.data.get(name).cloned() else { return };
    let values = tensor.f64s().unwrap_or_default().iter().enumerate().map(|(i, x)| f(i, *x)).collect();
    run.data.insert(name, host::Tensor::f64(tensor.shape.clone(), values));
}

fn zero_before(results: &host::Bundle, names: &[&str], token: usize) -> Verdict {
    for name in names {
        let tensor = results.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
        let part = match tensor.shape.len() {
            3 if name.starts_with("d.memory") => host::Tensor::clone(tensor),
            _ => cut::along(tensor, 2, 0..token),
        };
        if part.f64s().unwrap_or_default().iter().any(|x| *x != 0.0) {
            return Err(format!("`{name}` is not zero"));
        }
    }
    Ok(())
}

/// With alpha = 1 at a token nothing before it is retained, so no gradient of what is read later reaches it.
fn behind_a_hard_reset() -> Verdict {
    for schedule in BOTH {
        for algo in [
            "bias: dot; retention: l2; algo: gd(eta = 1)",
            "bias: l2; retention: l2; algo: gd(at = retained)",
        ] {
            let mut run = Run::new(&format!("memory: matrix; {algo}"), schedule)?;
            let reset = 7;
            change(&mut run, "retention.alpha", |i, x| if i % TOKENS == reset { 1.0 } else { x });
            change(&mut run, "grad.o", |i, x| if (i / 4) % TOKENS < reset { 0.0 } else { x });
            let weights = host::Tensor::f64([2, 4, 4], vec![0.3; 32]);
            run.data.insert("memory.W", weights);
            let data = run.data.clone();
            zero_before(&run.on(&data)?, &["d.k", "d.v", "d.retention.alpha", "d.memory.W"], reset)?;
        }
    }
    Ok(())
}

/// Where every error is clipped the slope does not depend on what is stored.
fn behind_clipped_errors() -> Verdict {
    for schedule in BOTH {
        let mut run =
            Run::new("memory: matrix; bias: huber(delta = 0.001); retention: none; algo: gd", schedule)?;
        change(&mut run, "v", |_, x| x + 9.0 * x.signum());
        let data = run.data.clone();
        zero_before(&run.on(&data)?, &["d.v"], TOKENS)?;
    }
    Ok(())
}

/// A stream at a chunk's boundary takes no part of a start that is given for the streams beside it: neither its
/// outputs nor its gradients depend on that.
fn at_a_boundary() -> Verdict {
    for program in [
        "memory: matrix; bias: huber(delta = 1); retention: ball(radius = 0.9); algo: momentum",
        "memory: matrix; bias: l2; retention: elastic(gamma = 0.01); algo: gd",
    ] {
        for backend in [Backend::Cpu, Backend::Reference] {
            let mut run = Run::new(program, ScheduleName::Chunked)?;
            run.asked.backend = backend;
            let rule = run.loaded.rule.clone();
            // Row 0 has five tokens behind it, inside a chunk of three; row 1 has six.
            let before = run.on(&cut::tokens(&rule, &run.data, TOKENS, 0..5))?;
            let mut data = cut::continued(&cut::tokens(&rule, &run.data, TOKENS, 5..11), &before);
            data.insert("state.position", host::Tensor::i64([2], vec![5, 6]));
            let together = run.on(&data)?;
            let mut alone = host::Bundle::new();
            for (name, tensor) in cut::row(&rule, &data, 1).iter() {
                let per_row = name.starts_with("state.") && name != "state.chunk";
                if name.starts_with("state.anchor.") {
                    continue;
                }
                alone.insert(name, if per_row { row_of(tensor, 1) } else { host::Tensor::clone(tensor) });
            }
            let alone = run.on(&alone)?;
            for name in ["o", "d.k", "d.v", "d.state.memory.W"] {
                let (Some(a), Some(b)) = (together.get(name), alone.get(name)) else {
                    return Err(format!("`{name}` is missing"));
                };
                let found = row_of(a, 1);
                if let Some(wrong) = difference(&found, b, 1e-6, 1e-9) {
                    return Err(format!("{program}, {backend:?}: `{name}` {wrong}"));
                }
            }
            let start = together.get("d.state.anchor.W").ok_or("no gradient of a chunk's start")?;
            if row_of(start, 1).f64s().unwrap_or_default().iter().any(|x| *x != 0.0) {
                return Err(format!("{program}, {backend:?}: a start that is not read has a gradient"));
            }
        }
    }
    Ok(())
}

fn row_of(tensor: &host::Tensor, row: usize) -> host::Tensor {
    match tensor.i64s() {
        Some(values) => host::Tensor::i64([1], vec![values[row]]),
        None => cut::along(tensor, 0, row..row + 1),
    }
}

/// Errors, weights and duals that are exactly 0 give numbers.
fn at_singular_points() -> Verdict {
    let biases = [
        "l2",
        "lp(p = 1.5)",
        "lp(p = 1)",
        "lp(p = 3)",
        "robust(radius = 0.5)",
        "huber_norm(delta = 0.5)",
        "huber_mix(delta = 0.5)",
        "sign",
        "huber(delta = learned)",
    ];
    let retentions = [
        "none",
        "elastic(gamma = 0.01)",
        "elastic_smooth(gamma = 0.1)",
        "lq",
        "lq_exact(1.5)",
        "elastic_lazy(gamma = 0.01)",
        "ball(radius = 0.5)",
    ];
    for bias in biases {
        for retention in retentions {
            for schedule in BOTH {
                let text = format!("memory: matrix; bias: {bias}; retention: {retention}; algo: momentum");
                let mut run = Run::new(&text, schedule)?;
                // The memory is empty and so is the first value. Its error is 0. (Not more: what has a slope of 1e12
                // there, as docs/mathematics.md wants, has the product of those of several tokens.)
                change(&mut run, "v", |i, x| if (i / 4) % TOKENS < 1 { 0.0 } else { x });
                drop(run.data.remove("memory.W"));
                let data = run.data.clone();
                for (name, tensor) in run.on(&data)?.iter() {
                    if tensor.f64s().unwrap_or_default().iter().any(|x| !x.is_finite()) {
                        return Err(format!("{text}, {schedule:?}: `{name}` is no number"));
                    }
                }
            }
        }
    }
    Ok(())
}
