//! Spoilt texts of the library: any text is answered, in bounded time, without a panic.

mod common;

use common::{describe, load_with};
use miras_spec::Library;
use std::time::{Duration, Instant};

/// Numbers that are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Words, numbers and marks of a text, with what lies between them.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(token) if word(c) && word(last) => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = c;
    }
    tokens
}

fn without_comments(text: &str) -> String {
    text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn spoilt_texts_are_answered() {
    let files: Vec<(String, String)> =
        miras_stdlib::files().map(|(path, text)| (path, without_comments(text))).collect();
    let pool: Vec<String> =
        files.iter().flat_map(|(_, t)| tokens(t)).filter(|t| !t.trim().is_empty()).chain(extra()).collect();
    let mut numbers = Numbers(7);
    let mut codes = std::collections::BTreeMap::new();
    let (mut good, mut bad) = (0, 0);
    for round in 0..1500 {
        let (_, definition) = &files[numbers.below(files.len())];
        let mut spoilt = tokens(definition);
        for _ in 0..=numbers.below(3) {
            let at = visible(&spoilt, &mut numbers);
            match numbers.below(24) {
                0 => drop(spoilt.remove(at)),
                1 => spoilt.insert(at, pool[numbers.below(pool.len())].clone()),
                2..=22 => spoilt[at] = alike(&pool, &spoilt[at], &mut numbers),
                _ => {
                    let other = visible(&spoilt, &mut numbers);
                    spoilt.swap(at, other);
                }
            }
        }
        let text = spoilt.concat();
        let name = definition.split_whitespace().nth(1).unwrap_or("").split(['(', '{']).next().unwrap_or("");
        let layer = match definition.split_whitespace().next().unwrap_or("") {
            "bias" => format!("memory: mlp(2); bias: {name}; retention: l2; algo: momentum"),
            "memory" => format!("memory: {name}; bias: l2; retention: l2; algo: momentum"),
            "retention" => format!("memory: mlp(2); bias: huber; retention: {name}; algo: gd"),
            "algo" => format!("memory: matrix; bias: l2; retention: none; algo: {name}"),
            _ => String::new(),
        };
        let own = format!(" {name}");
        let frame: Vec<&str> = FRAME
            .split("\n\n")
            .filter(|d| !d.trim_start().split(['(', '{']).next().unwrap_or("").trim().ends_with(&own))
            .collect();
        let library = Library::from_texts([("frame.miras", frame.concat()), ("spoilt.miras", text)]);
        let started = Instant::now();
        let mut loaded = load_with(&layer, &library, &[]);
        let named = if layer.is_empty() { Some(name) } else { None };
        match loaded.elaborate(named, &[]) {
            Ok(layer) => {
                describe(&layer);
                good += 1;
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                assert!(problems.iter().all(|d| d.code.0 != "E0901"), "{}", loaded.show(&problems));
                *codes.entry(problems[0].code.0).or_insert(0) += 1;
                bad += 1;
            }
        }
        let taken = started.elapsed();
        assert!(taken < Duration::from_secs(30), "round {round} took {taken:?}");
    }
    assert!(good > 150 && bad > 300, "{good} {bad} {codes:?}");
}

/// The position of a token that is not a space.
fn visible(tokens: &[String], numbers: &mut Numbers) -> usize {
    let start = numbers.below(tokens.len());
    (start..tokens.len()).find(|i| !tokens[*i].trim().is_empty()).unwrap_or(0)
}

/// A token of the pool of the same kind: a word for a word, a number for a number, an operator for an
/// operator. Keywords and brackets stay, so that most texts get past the grammar.
fn alike(pool: &[String], old: &str, numbers: &mut Numbers) -> String {
    const KEYWORDS: [&str; 14] = [
        "let", "for", "in", "if", "then", "else", "dual", "state", "weight", "slow", "require", "history",
        "layer", "fn",
    ];
    let kind = |t: &str| match t.chars().next() {
        Some(c) if c.is_ascii_alphabetic() && !KEYWORDS.contains(&t) => Some(0),
        Some(c) if c.is_ascii_digit() => Some(1),
        Some('+' | '-' | '*' | '/' | '@' | '^') => Some(2),
        Some(_) | None => None,
    };
    let start = numbers.below(pool.len());
    let found =
        pool[start..].iter().chain(&pool[..start]).find(|t| kind(t).is_some() && kind(t) == kind(old));
    found.cloned().unwrap_or_else(|| old.to_string())
}

/// Partners for the spoilt definition; one of its own name is left out.
const FRAME: &str = "

    memory matrix { weight W: [dv, dk] = 0; read(x) = W @ x; }

    memory mlp(depth: nat = 2) {
      for l in 1..=depth { weight W[l]: [if l == depth then dv else 4 * dk, if l == 1 then dk else 4 * dk]; }
      read(x) = { let h = x; for l in 1..depth { h = gelu(W[l] @ h); } x + layernorm(W[depth] @ h) };
    }

    memory cache { history k, v; }

    bias l2 { loss = sum((y - v)^2) / 2; }

    bias huber(delta: positive = learned) {
      loss = sum(if abs(y - v) <= delta then (y - v)^2 / 2 else delta * (abs(y - v) - delta / 2));
    }

    retention none { local(W, P) = sum((W - P)^2) / 2; }

    retention l2(alpha: unit = learned) {
      local(W, P) = (1 - alpha) * sum((W - P)^2) / 2;
      global(W) = alpha * sum(W^2) / 2;
    }

    algo gd(eta: positive = learned, at: {previous, retained} = previous) {
      direction = -eta * grad(if at == retained then retained(W) else W);
    }

    algo momentum(eta: positive = learned, mu: unit = learned) {
      state S = zeros(W); S' = mu * S - eta * grad(W); direction = S';
    }
";

fn extra() -> impl Iterator<Item = String> {
    [
        "1000000000",
        "1e308",
        "0",
        "1..=depth",
        "dk",
        "head",
        "learned",
        "trained",
        "bregman",
        "@",
        "softmax",
        "eye",
        "'",
    ]
    .into_iter()
    .map(str::to_string)
}
