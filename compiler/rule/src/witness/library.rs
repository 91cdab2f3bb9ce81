//! Every layer and bias of the library: gradients against differences, classes as docs/mathematics.md names them.

use crate::algebra::Facts;
use crate::calculus::witness::spread_numbers;
use crate::derive;
use crate::gradient::witness::layer_error;
use crate::rule::{ClassKind, UpdateRule};
use miras_base::diagnostic::code;
use miras_base::{DimEnv, SourceMap};
use miras_spec::{Kind, Layer, Library, Program};
use miras_term::{Env, PrintOptions, Role, Tensor, print, print_within};
use std::collections::HashMap;

/// One clause text, or a library layer by name.
pub(super) enum From<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn elaborated(from: &From<'_>) -> Layer {
    let mut sources = SourceMap::default();
    let library = Library::standard();
    let refuse = &mut |path: &str| Err(format!("{path} is not there"));
    let (text, name) = match from {
        From::Text(text) => (*text, None),
        From::Name(name) => ("", Some(*name)),
    };
    let program = match name {
        Some(_) => Program::of_library(&mut sources, &library).0,
        None => {
            let root = sources.add("test.miras", text);
            Program::load(&mut sources, root, &library, refuse).0
        }
    };
    match program.elaborate(&mut sources, name, &[]) {
        Ok((layer, _)) => layer,
        Err(problems) => panic!("{text}{name:?}: {problems:?}"),
    }
}

pub(super) fn rule_of(from: &From<'_>) -> UpdateRule {
    derive(elaborated(from)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Values for every variable: gates inside their ranges, dk = dv = 4.
fn values(layer: &Layer, seed: u64) -> Env {
    let dims = DimEnv::from([("dk".into(), 4), ("dv".into(), 4)]);
    let mut env = Env { dims, head: 1, heads: 4, layer: 0, layers: 1, vars: HashMap::new() };
    for (id, var) in layer.terms.vars() {
        if var.role == Role::Bound {
            continue;
        }
        let shape = layer.terms.sizes(&var.shape, &env).expect("sizes");
        let mut data = spread_numbers(u64::from(id.0) * 31 + seed, shape.iter().product());
        if layer.param_of(id).is_some_and(|p| p.kind != Kind::Real) {
            data.iter_mut().for_each(|x| *x = 0.25 + 0.5 * x.abs());
        }
        env.vars.insert(id, Tensor { shape, data });
    }
    env
}

fn library_layers() -> Vec<String> {
    let mut sources = SourceMap::default();
    let (program, problems) = Program::of_library(&mut sources, &Library::standard());
    assert!(problems.is_empty(), "{problems:?}");
    program.library_layers().into_iter().map(|l| l.name).collect()
}

/// Gradients agree with differences wherever the slope is derived.
fn gradient_holds(mut layer: Layer, what: &str) {
    if layer.bias.slope.is_some() || layer.memory.weights.is_empty() {
        return;
    }
    for seed in [3, 77] {
        let error = layer_error(&mut layer, &values, seed);
        assert!(error < 2e-6, "{what}: {error:e}");
    }
}

#[test]
fn every_layer_has_the_gradient_of_its_loss() {
    let names = library_layers();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        gradient_holds(elaborated(&From::Name(&name)), &name);
    }
}

const BIASES: [&str; 9] = [
    "dot",
    "l2",
    "lp(3)",
    "lp(1.5, eps = 0.1)",
    "huber",
    "huber(delta = learned(per = channel))",
    "huber_norm",
    "robust",
    "kl",
];

#[test]
fn every_bias_has_its_gradient_through_every_memory() {
    for bias in BIASES {
        for memory in ["matrix", "vector", "mlp(1)", "mlp(2)", "mlp(3)"] {
            let text = format!("memory: {memory}; bias: {bias}; retention: none; algo: gd;");
            gradient_holds(elaborated(&From::Text(&text)), &text);
        }
    }
}

#[test]
fn every_bias_has_the_slope_of_the_table() {
    let expected = [
        ("dot", "-v"),
        ("l2", "y - v"),
        ("lp(3)", "(y - v)^2 * sign(y - v)"),
        ("lp(2)", "y - v"),
        ("huber", "max(min(y - v, delta), -delta)"),
        ("huber_norm", "(y - v) * (delta / max(delta, norm(y - v, 2)))"),
        ("robust", "y - v + radius * ((y - v) / max(norm(y - v, 2), 1e-12))"),
        ("kl", "softmax_row(y) - softmax_row(v)"),
        ("sign", "tanh(10 * (y - v))"),
    ];
    for (bias, slope) in expected {
        let mut layer =
            elaborated(&From::Text(&format!("memory: matrix; bias: {bias}; retention: none; algo: gd;")));
        let facts = Facts::of_params(&layer.params);
        let derived = crate::gradient::slope(&mut layer, &facts).expect("a slope").terms[0];
        assert_eq!(print(&layer.terms, derived, &PrintOptions::default()), slope, "{bias}");
    }
}

/// docs/mathematics.md's classes of the named systems.
const CLASSES: [(&str, ClassKind); 24] = [
    ("deltanet", ClassKind::Delta),
    ("deltaproduct", ClassKind::Delta),
    ("dfw", ClassKind::Linear),
    ("gated_deltanet", ClassKind::Delta),
    ("gla", ClassKind::Linear),
    ("hgrn2", ClassKind::Linear),
    ("hopfield", ClassKind::NonParametric),
    ("lightning", ClassKind::Linear),
    ("linear_attention", ClassKind::Linear),
    ("longhorn", ClassKind::Delta),
    ("mamba", ClassKind::Linear),
    ("mamba2", ClassKind::Linear),
    ("memora", ClassKind::DualLinear),
    ("mesa", ClassKind::TokenByToken),
    ("moneta", ClassKind::DualLinear),
    ("retnet", ClassKind::Linear),
    ("rwkv7", ClassKind::Delta),
    ("sliding_window", ClassKind::NonParametric),
    ("softmax_attention", ClassKind::NonParametric),
    ("titans_lmm", ClassKind::DualLinear),
    ("ttt_linear", ClassKind::DualLinear),
    ("ttt_mlp", ClassKind::DualLinear),
    ("yaad", ClassKind::DualLinear),
    ("yaad_printed", ClassKind::DualLinear),
];

#[test]
fn every_named_system_has_its_class() {
    let names = library_layers();
    assert_eq!(names, CLASSES.map(|(name, _)| name));
    for (name, class) in CLASSES {
        let rule = rule_of(&From::Name(name));
        assert_eq!(rule.class.kind, class, "{name}: {}", rule.class.reason);
        assert!(rule.derivation.steps.len() >= 3, "{name}");
    }
}

#[test]
fn retention_decides_the_class_where_the_gradient_does_not() {
    let classes = [
        ("none", ClassKind::Delta),
        ("l2", ClassKind::Delta),
        ("kl", ClassKind::DualLinear),
        ("sigmoid", ClassKind::DualLinear),
        ("elastic", ClassKind::DualLinear),
        ("elastic_lazy", ClassKind::DualLinear),
        ("elastic_smooth", ClassKind::General),
        ("lq", ClassKind::DualLinear),
        ("lq_exact(1.5)", ClassKind::DualLinear),
        ("ball", ClassKind::DualLinear),
    ];
    for (retention, class) in classes {
        let rule =
            rule_of(&From::Text(&format!("memory: matrix; bias: l2; retention: {retention}; algo: gd;")));
        assert_eq!(rule.class.kind, class, "{retention}: {}", rule.class.reason);
    }
}

#[test]
fn a_weak_signal_is_warned_of_in_a_program() {
    let of = |mass: &str| {
        let text = format!("memory: mlp(2); bias: l2; retention: kl(mass = {mass}); algo: gd;");
        rule_of(&From::Text(&text)).warnings.iter().any(|w| w.code == code::WEAK_SIGNAL)
    };
    assert!(of("1"));
    assert!(!of("16"));
}

/// A rule is closed: in each place only the roles that `rule.rs` names.
#[test]
fn rules_use_only_the_variables_of_their_places() {
    for name in library_layers() {
        let rule = rule_of(&From::Name(&name));
        let terms = rule.terms();
        let token = |r: Role| matches!(r, Role::Query | Role::Key | Role::Value | Role::Parameter(_));
        let check = |id, place: &str, allowed: &dyn Fn(Role) -> bool| {
            for v in terms.vars_of(&[id]) {
                let role = terms.var(v).role;
                assert!(token(role) || allowed(role), "{name}, {place}: {role:?}");
            }
        };
        for g in &rule.gradients {
            let weights = |r: Role| matches!(r, Role::Weight(_));
            check(g.answer, "answer", &weights);
            for sum in &g.by_weight {
                check(sum.whole.expect("a gradient"), "gradient", &weights);
            }
        }
        for r in &rule.retention {
            let carried = terms.var(r.carried).role;
            check(r.advance, "advance", &|r| r == carried || matches!(r, Role::Update(_)));
            for map in r.value.iter().chain(&r.finish) {
                check(*map, "map", &|r| r == carried || matches!(r, Role::Bound));
            }
        }
    }
}

#[test]
fn a_weight_that_is_used_thrice_has_three_products_and_every_name_once() {
    let text = "memory m { weight W: [dv, dk]; read(x) = W @ unit(transpose(W) @ (W @ x)); }
        memory: m; bias: robust; retention: ball; algo: gd;";
    let rule = rule_of(&From::Text(text));
    assert_eq!(rule.gradients[0].by_weight[0].products.len(), 3);
    let mut names: Vec<&str> = rule.gradients[0].named.iter().map(|n| n.name.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    gradient_holds(elaborated(&From::Text(text)), text);
}

#[test]
fn a_point_after_the_retention_of_a_dual_depends_on_the_weights() {
    let text = "memory: matrix; bias: sign; retention: lq_exact(1.5); algo: gd(at = retained);";
    let rule = rule_of(&From::Text(text));
    assert_eq!(rule.class.kind, ClassKind::DualLinear);
    assert!(rule.class.reason.contains("depend on the weights. A chunk"), "{}", rule.class.reason);
}

#[test]
fn shared_parts_of_a_kernel_are_read_once() {
    let text = "algo deep { weigh = { let s = exp(dot(q, k)); for i in 0..400 { s = s * s; } s }; }
        memory: cache; bias: l2; retention: none; algo: deep;";
    let rule = rule_of(&From::Text(text));
    let answer = rule.answer.as_ref().expect("an answer");
    assert!(rule.terms().reachable(&[answer.log_kernel]).len() < 20);
}

#[test]
fn formulas_of_deep_reads_and_losses_stay_readable() {
    let residual = "memory m { for l in 1..=30 { weight W[l]: [dk, dk]; }
          read(x) = { let h = x; for l in 1..=30 { h = h + tanh(W[l] @ h); } h }; }
        memory: m; bias: l2; retention: none; algo: gd;";
    let squared = "bias deep { let e = y - v; for i in 0..40 { e = sin(e) * e + e; } loss = sum(e); }
        memory: matrix; bias: deep; retention: none; algo: gd;";
    for text in [residual, squared] {
        let rule = rule_of(&From::Text(text));
        let names: HashMap<_, _> = rule.gradients[0].named.iter().map(|n| (n.term, n.name.clone())).collect();
        for equation in rule.derivation.steps.iter().flat_map(|s| &s.equations) {
            let mut names = names.clone();
            if names.get(&equation.right) == Some(&equation.left) {
                names.remove(&equation.right);
            }
            let signs = print_within(rule.terms(), equation.right, &PrintOptions { names }, 1 << 14).len();
            assert!(signs < 1 << 13, "{} = ... has {signs} signs", equation.left);
        }
    }
}
