//! Blocks of tokens computed together equal the same tokens one after the other, in float64: the recurrence for
//! exact classes, the frozen chunk token by token for the others.

use miras_base::DimEnv;
use miras_driver::{Choice, Session};
use miras_schedule::{Form, Plan, Request};
use miras_spec as spec;
use miras_tensor as tensor;
use std::collections::BTreeMap;
use tensor::eval::{Run, eval};
use tensor::ir::{Graph, Origin, Size};

/// In which form each layer's blocks must be computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Want {
    Products,
    Gradients,
    Tokens,
}

use Want::{Gradients, Products, Tokens};

/// Every layer of the library, and others of each kind.
const LAYERS: &[(&str, Want)] = &[
    ("layer x = linear_attention;", Products),
    ("layer x = retnet;", Products),
    ("layer x = lightning;", Products),
    ("layer x = mamba2;", Products),
    ("layer x = gla;", Products),
    ("layer x = hgrn2;", Products),
    ("layer x = dfw;", Products),
    ("layer x = mamba;", Tokens),
    ("layer x = deltanet;", Products),
    ("layer x = gated_deltanet;", Products),
    ("layer x = deltaproduct(n = 3);", Products),
    ("layer x = longhorn;", Products),
    ("layer x = rwkv7;", Products),
    ("layer x = mesa;", Tokens),
    ("layer x = ttt_linear;", Products),
    ("layer x = ttt_mlp;", Products),
    ("layer x = titans_lmm;", Products),
    ("layer x = titans_lmm(depth = 3);", Products),
    ("layer x = yaad;", Products),
    ("layer x = yaad_printed;", Products),
    ("layer x = moneta;", Products),
    ("layer x = memora;", Gradients),
    (
        "memory: matrix; bias: dot; retention: l2(alpha = learned(per = value)); algo: gd(eta = learned(per = key))",
        Products,
    ),
    ("memory: matrix; bias: dot; retention: l2; algo: multi(n = 2)", Products),
    ("memory: matrix; bias: dot; retention: l2; algo: gd; read: before", Products),
    ("memory: matrix; bias: l2; retention: l2; algo: gd; read: before", Products),
    (
        "memory: matrix; bias: l2; retention: l2(alpha = learned(per = key)); algo: gd(at = retained)",
        Products,
    ),
    (
        "memory: matrix; bias: l2; retention: l2(alpha = learned(per = value)); algo: gd(at = retained)",
        Products,
    ),
    (
        "memory: matrix; bias: l2; retention: l2(alpha = learned(per = value)); algo: gd(eta = learned(per = key))",
        Products,
    ),
    ("memory: matrix; bias: l2; retention: l2(alpha = learned(per = entry)); algo: gd", Tokens),
    ("memory: matrix; bias: l2; retention: none; algo: gd(eta = learned(per = entry))", Tokens),
    ("memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: momentum; read: before", Products),
    (
        "memory: mlp(2, expand = 2); bias: l2; retention: l2(alpha = learned(per = channel)); \
      algo: momentum(eta = learned(per = channel), mu = learned)",
        Products,
    ),
    (
        "memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: momentum(eta = learned(per = channel))",
        Products,
    ),
    ("memory: matrix; bias: huber(delta = 0.5); retention: ball(radius = 0.3); algo: gd", Products),
    ("memory: matrix; bias: lp(p = 3); retention: lq; algo: momentum", Products),
    ("memory: matrix; bias: huber(delta = 0.5); retention: elastic(gamma = 0.01); algo: gd", Gradients),
    ("memory: matrix; bias: huber(delta = 0.5); retention: elastic_lazy(gamma = 0.01); algo: gd", Gradients),
    ("memory: matrix; bias: huber(delta = 0.5); retention: sigmoid; algo: momentum", Gradients),
    ("memory: matrix; bias: huber(delta = 0.5); retention: lq_exact(q = 3); algo: gd", Gradients),
    ("memory: matrix; bias: huber(delta = 0.5); retention: elastic_smooth(gamma = 0.1); algo: gd", Gradients),
    (
        "memory: matrix; bias: huber(delta = 0.5); retention: l2(alpha = learned(per = entry)); algo: gd",
        Gradients,
    ),
    (
        "algo nesterov(eta: positive = learned, mu: unit = learned) { state S = zeros(W); \
      S' = mu * S - eta * grad(W); direction = mu * S' - eta * grad(W); } \
      memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: nesterov;",
        Products,
    ),
    (
        "algo normed(eta: positive = learned) { direction = -eta * grad(W) / max(norm(grad(W), 2), 1e-3); } \
      memory: mlp(2, expand = 2); bias: l2; retention: l2; algo: normed;",
        Gradients,
    ),
    ("memory: matrix; bias: huber(delta = 0.5); retention: l2; algo: multi(n = 3)", Products),
    (
        "memory: mlp(2, expand = 2); bias: lp(p = 3); retention: l2(alpha = learned(per = channel)); \
      algo: multi(n = 2)",
        Products,
    ),
    ("memory: matrix; bias: huber(delta = 0.5); retention: ball(radius = 0.3); algo: multi(n = 2)", Products),
    ("memory: matrix; bias: l2; retention: sigmoid; algo: multi(n = 2)", Gradients),
    (
        "algo heavy(eta: positive = learned, mu: unit = learned) { repeat: 2; state S = zeros(W); \
      S' = mu * S - eta * grad(W); direction = S'; } \
      memory: matrix; bias: huber(delta = 0.5); retention: l2; algo: heavy;",
        Gradients,
    ),
    (
        "memory shifted { let hidden = 2 * dk; weight A: [hidden, dk]; weight a: [hidden]; weight B: [dv, hidden]; \
      weight b: [dv]; read(x) = B @ gelu(A @ x + a) + b; } \
      memory: shifted; bias: l2; retention: l2; algo: momentum",
        Products,
    ),
    (
        "memory shifted { let hidden = 2 * dk; weight A: [hidden, dk]; weight a: [hidden]; weight B: [dv, hidden]; \
      weight b: [dv]; read(x) = B @ gelu(A @ x + a) + b; } \
      memory: shifted; bias: huber(delta = 0.5); retention: ball(radius = 0.7); algo: multi(n = 2); read: before",
        Products,
    ),
    (
        "memory scaled { weight W: [dv, dk]; weight w: [dv]; read(x) = w * tanh(W @ x) + x; } \
      memory: scaled; bias: l2; retention: lq; algo: gd",
        Products,
    ),
    (
        "memory turned { weight W: [dk, dv]; read(x) = transpose(W) @ x; } \
      memory: turned; bias: l2; retention: l2(alpha = 0.2); algo: gd",
        Products,
    ),
    (
        "memory turned { weight W: [dv, dk]; read(x) = transpose(W) @ x; } \
      memory: turned; bias: huber(delta = 0.5); retention: l2(alpha = learned(per = key)); algo: gd",
        Products,
    ),
    (
        "memory turned { weight W: [dv, dk]; read(x) = transpose(W) @ x; } \
      memory: turned; bias: huber(delta = 0.5); retention: l2(alpha = learned(per = value)); algo: momentum",
        Products,
    ),
    (
        "memory twice { weight W: [dv, dk]; read(x) = W @ W @ x; } \
      memory: twice; bias: l2; retention: l2; algo: momentum",
        Products,
    ),
    (
        "memory tied { weight W: [dv, dk]; slow A: [dv, dk] = eye(dv); slow g: [dv] = 1; \
      read(x) = (row(g) * W - 0.5 * transpose(W) + A @ W) @ tanh(W @ x); } \
      memory: tied; bias: l2; retention: l2; algo: gd",
        Products,
    ),
    (
        "memory summed { weight W: [dv, dk]; read(x) = W @ x + sum(W^2); } \
      memory: summed; bias: l2; retention: l2; algo: gd",
        Tokens,
    ),
    (
        "algo gated(beta: positive = learned) { \
      direction = outer(beta * (v - retained(W) @ k), k); } \
      memory: matrix; bias: l2; retention: l2; algo: gated;",
        Products,
    ),
];

fn plan(text: &str, request: Request) -> Plan {
    let mut session = Session::new(spec::Library::standard());
    let root = session.add("a.miras", text);
    let program = session.load(root, &mut |_| Err("nothing is used".into())).expect("loads").value;
    let rule = session.rule(&program, &Choice::default()).unwrap_or_else(|e| panic!("{text}: {e:?}")).value;
    session.plan(rule, request).expect("plans").value
}

/// Numbers in [-1, 1), the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Inputs that both graphs take: keys of unit length, gates where nothing explodes, and hard resets among them.
fn inputs(graph: &Graph, tokens: usize, chunk: usize, size: usize) -> BTreeMap<String, Vec<f64>> {
    let mut random = Random(7);
    let mut all = BTreeMap::new();
    for input in &graph.inputs {
        let fixed: usize = (graph.value(input.value).axes.iter())
            .map(|a| match graph.axis(*a).size {
                Size::Fixed(n) => n,
                Size::Tokens | Size::Past => 1,
            })
            .product();
        let count = if input.origin == Origin::Token { fixed * tokens } else { fixed };
        let mut value = |i: usize| match input.tensor.as_str() {
            "@closes" => f64::from(u8::from((i + 1).is_multiple_of(chunk))),
            "@fresh" => f64::from(u8::from(i.is_multiple_of(chunk))),
            "retention.alpha" if i % 11 == 5 => 1.0,
            "retention.alpha" | "input.a" | "input.b" => 0.15 + 0.1 * random.next(),
            "algo.mu" => 0.6 + 0.3 * random.next(),
            "algo.eta" | "algo.beta" | "input.dt" => 0.2 + 0.1 * random.next(),
            name if name.contains("threshold") => 0.0,
            name if name.starts_with("state.") => 0.3 * random.next(),
            _ => random.next(),
        };
        let mut values: Vec<f64> = (0..count).map(&mut value).collect();
        if matches!(input.tensor.as_str(), "q" | "k" | "input.kappa") {
            for row in values.chunks_mut(size) {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter_mut().for_each(|x| *x /= norm);
            }
        }
        all.insert(input.tensor.clone(), values);
    }
    let anchors: Vec<(String, Vec<f64>)> = (all.iter())
        .filter_map(|(n, v)| Some((format!("state.anchor.{}", n.strip_prefix("state.memory.")?), v.clone())))
        .collect();
    all.extend(
        anchors.into_iter().filter(|(n, _)| graph.inputs.iter().any(|i| i.tensor == *n)).collect::<Vec<_>>(),
    );
    all
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let most = b.iter().fold(1e-300_f64, |m, x| m.max(x.abs()));
    a.iter()
        .zip(b)
        .fold(0.0_f64, |m, (x, y)| if (x - y).is_nan() { f64::INFINITY } else { m.max((x - y).abs()) })
        / most
}

/// Compares `blocks` blocks of a layer with its tokens one by one.
fn compare(text: &str, want: Want, chunk: u32, blocks: usize) {
    let plan = plan(text, Request::Chunked(Some(chunk)));
    let form = match plan.blocks.form {
        Form::Affine(_) | Form::Frozen(_) => Products,
        Form::Gradients => Gradients,
        Form::TokenByToken(_) => Tokens,
    };
    assert_eq!(form, if chunk == 1 { Tokens } else { want }, "{text}: {}", plan.certificate);
    let size = 4;
    let sizes = tensor::Sizes { dims: DimEnv::from([("dk".into(), size), ("dv".into(), size)]) };
    let Some(graph) = tensor::lower_blocks(&plan, &sizes).expect("lowers") else {
        assert_eq!(form, Tokens);
        return;
    };
    let graph = tensor::verify(graph).expect("a graph");
    let single = tensor::lower(&plan, &sizes, tensor::Start::State).and_then(tensor::verify).expect("lowers");
    let tokens = blocks * plan.blocks.tokens as usize;
    let inputs = inputs(single.graph(), tokens, chunk as usize, size as usize);
    let run = |tokens| Run { tokens, kept: 0, place: [1, 4, 0, 1], inputs: inputs.clone() };
    let expected = eval(single.graph(), &run(tokens)).expect("evaluates");
    let found = eval(graph.graph(), &run(blocks)).expect("evaluates");
    for (name, values) in &found {
        let error = far(values, &expected[name]);
        assert!(error < 1e-12, "{text}, chunk {chunk}: {name} is off by {error:e}\n{}", plan.certificate);
    }
    assert!(found.contains_key("o") && found.len() >= 2);
}

#[test]
fn small_blocks_equal_their_tokens() {
    for (text, want) in LAYERS {
        for chunk in [1, 2, 5] {
            compare(text, *want, chunk, 3);
        }
    }
}

#[test]
fn chunks_in_parts_equal_their_tokens() {
    for (text, want) in LAYERS {
        compare(text, *want, 32, 2);
    }
}

#[test]
fn whole_chunks_equal_their_tokens() {
    for (text, want) in LAYERS.iter().filter(|(_, want)| *want == Products) {
        compare(text, *want, 64, 1);
    }
}

#[test]
fn no_block_leaves_the_state_as_it_is() {
    for (text, want) in LAYERS {
        compare(text, *want, 4, 0);
    }
}
