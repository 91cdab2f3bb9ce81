//! What elaborated layers are made of.

mod common;

use common::{describe, layer, load, load_with};
use miras_spec::{Kind, Library, Per, Source};

fn lines(text: &str, start: &str) -> Vec<String> {
    describe(&layer(text)).lines().filter(|l| l.starts_with(start)).map(str::to_string).collect()
}

/// Programs of every construct.
const PRINTED: &[&str] = &[
    "memory: mlp(2); bias: huber(delta=learned); retention: kl; algo: gd",
    "layer yaad {
      memory:    mlp(2, expand = 4, act = gelu);
      bias:      huber(delta = learned(per = channel));
      retention: l2(alpha = learned(per = channel));
      algo:      gd(eta = learned(per = channel));
      chunk:     64;
      read:      after;
    }",
    "input dt: [dv]; trained A: [dv, dk]; memory: matrix; bias: dot;
     retention: l2(alpha = 1 - exp(-dt * A)); algo: gd(eta = dt);",
    "layer mine = yaad(chunk = 32);",
];

#[test]
fn printed_programs_elaborate() {
    for text in PRINTED {
        layer(text);
    }
    assert_eq!(layer(PRINTED[3]).chunk, 32);
}

#[test]
fn the_short_form_binds_every_default() {
    let layer = layer(PRINTED[0]);
    let names: Vec<&str> = layer.params.iter().map(|p| p.tensor.as_str()).collect();
    assert_eq!(names, ["memory.gain", "memory.shift", "bias.delta", "retention.alpha", "algo.eta"]);
    assert_eq!(layer.chunk, 64);
    assert!(!layer.read_before);
    assert_eq!(layer.params[3].kind, Kind::Unit);
    assert_eq!(layer.params[3].source, Source::Learned(Per::Token));
    assert_eq!(layer.choices[1].text, "huber(delta = learned)");
    assert_eq!(layer.params[2].asked_by, "bias: huber(delta = learned)");
}

#[test]
fn channel_gates_act_on_the_model_axis() {
    let text = "memory: mlp(2); bias: l2; retention: l2(alpha = learned(per = channel)); algo: gd(eta = 1)";
    let objectives = lines(text, "objective");
    assert!(objectives[0].contains("row(1 - alpha)"), "{objectives:?}");
    assert!(objectives[1].contains("col(1 - alpha)"), "{objectives:?}");
    let single = lines(&text.replace("mlp(2)", "mlp(1)"), "objective");
    assert!(single[0].contains("col(1 - alpha)"), "{single:?}");
}

#[test]
fn a_gate_before_a_sum_weighs_its_entries() {
    let text = "memory: matrix; bias: l2; algo: gd;
        retention: mine(a = learned(per = key), b = learned(per = value));
        retention mine(a: unit, b: positive) { local(W, P) = -(a * (sum(W^2) - sum(P * W)) / b); }";
    let found = lines(text, "objective");
    assert_eq!(
        found[0],
        "objective -(sum(W'^2 * row(a) / col(b)) - sum(W * W' * row(a) / col(b))) : scalar | - | all",
    );
}

#[test]
fn vectors_lie_along_the_axis_of_their_name() {
    let text = "input a: [dv]; input b: [dk]; trained C: [dv, dk]; memory: matrix; bias: l2;
        retention: l2(alpha = a * C * b * c); algo: gd; let c = col(a) * row(b);";
    let objective = &lines(text, "objective")[0];
    assert!(objective.contains("col(a) * C * row(b) * (col(a) * row(b))"), "{objective}");
}

#[test]
fn an_enum_chooses_when_the_program_is_compiled() {
    let at = |word: &str| {
        lines(&format!("memory: matrix; bias: l2; retention: l2; algo: gd(at = {word})"), "point")[0].clone()
    };
    assert!(at("previous").starts_with("point W :"));
    assert!(at("retained").starts_with("point retained(W) :"));
}

#[test]
fn states_follow_the_order_in_which_they_are_renewed() {
    let text = "memory: matrix; bias: l2; retention: none; algo: adam;
        algo adam {
          state V = zeros(W); state M; state n: [1] = 1;
          M' = 0.9 * M + grad(W);
          V' = 0.99 * V + grad(W)^2 + 0 * M';
          n' = n + 1;
          direction = -M' / sqrt(V');
        }";
    let states = lines(text, "state");
    assert!(states[0].starts_with("state M.W M State(0)"), "{states:?}");
    assert!(states[1].starts_with("state V.W V State(1)"), "{states:?}");
    assert!(states[2].starts_with("state n n State(2)"), "{states:?}");
}

#[test]
fn sums_of_rows_and_columns_are_vectors() {
    let with = |read: &str| {
        layer(&format!(
            "memory: m; bias: l2; retention: none; algo: gd;
             memory m {{ weight W: [dv, dk] = 0; read(x) = {read}; }}"
        ))
    };
    assert!(with("sum(W, row)").constraints.is_empty());
    assert_eq!(with("sum(W, column)").constraints.len(), 1);
    assert!(with("sum(W, all) * W @ x + sum(W) * W @ x").constraints.is_empty());
}

#[test]
fn gradients_are_taken_once_for_each_point() {
    let text = "memory: matrix; bias: l2; retention: none; algo: two;
        algo two { direction = grad(W) + grad(W - 0.1 * grad(W)) + grad(W); }";
    assert_eq!(lines(text, "point").len(), 2);
}

#[test]
fn steps_and_histories() {
    let multi =
        layer("memory: matrix; bias: l2; retention: l2(alpha = learned); algo: multi(n = 3, eta = learned)");
    assert_eq!(multi.repeats(), 3);
    let repeated: Vec<bool> = multi.params.iter().map(|p| p.repeated).collect();
    assert_eq!(repeated, [false, true]);
    let window = describe(&layer("layer mine = sliding_window(5);"));
    assert!(window.contains("window Some(5)"), "{window}");
    let hopfield = describe(&layer("layer mine = hopfield(n = 3);"));
    assert!(hopfield.contains("refinements 2"), "{hopfield}");
}

#[test]
fn overrides_reach_every_level() {
    let mut loaded = load("layer mine = titans_lmm(3, chunk = 16);");
    let plain = loaded.elaborate(None, &[]).unwrap();
    assert_eq!((plain.memory.weights.len(), plain.chunk), (3, 16));
    let set = [
        ("chunk", "8"),
        ("depth", "1"),
        ("retention.alpha", "0.1"),
        ("read", "before"),
        ("bias", "huber(2)"),
    ];
    let changed = loaded.elaborate(None, &set).unwrap();
    assert_eq!((changed.memory.weights.len(), changed.chunk, changed.read_before), (1, 8, true));
    assert_eq!(changed.choices[2].text, "l2(alpha = 0.1)");
    assert_eq!(changed.choices[1].definition, "huber");
    let named = loaded.elaborate(Some("yaad"), &[("memory.expand", "2")]).unwrap();
    assert_eq!(named.memory.weights[0].shape.0[0].formula(), "2*dk");
}

#[test]
fn a_layers_own_parameter_may_be_learned() {
    let text = "layer mine(rate: positive = learned(per = key)) {
        memory: matrix; bias: l2; retention: none; algo: gd(eta = rate); }";
    let mut loaded = load(text);
    let learned = loaded.elaborate(None, &[]).unwrap();
    assert_eq!(learned.params[0].tensor, "algo.eta");
    assert_eq!(learned.params[0].source, Source::Learned(Per::Key));
    assert!(loaded.elaborate(None, &[("rate", "0.5")]).unwrap().params.is_empty());
}

#[test]
fn constraints_carry_both_places() {
    let mut loaded = load("memory: mlp(2); bias: l2; retention: none; algo: gd");
    let layer = loaded.elaborate(None, &[]).unwrap();
    assert_eq!(layer.constraints.len(), 1);
    let required = &layer.constraints[0];
    assert_eq!(required.constraint.left.formula(), "dk");
    assert_eq!(required.constraint.right.formula(), "dv");
    let text = |i: usize| loaded.sources.text(required.places[i].0.unwrap());
    assert_eq!(text(0), "x");
    assert!(text(1).starts_with("gain * layernorm"), "{}", text(1));
}

#[test]
fn used_files_give_definitions() {
    let main = "use \"sub/bias.miras\"; memory: matrix; bias: mine(f = half); retention: none; algo: gd; fn half(x) = x / 2;";
    let files = [
        (
            "sub/bias.miras",
            "use \"more.miras\"; use \"more.miras\"; bias mine(f: fn) { loss = sum(f(square(y - v))); }",
        ),
        ("sub/more.miras", "use \"bias.miras\"; fn square(x) = x^2;"),
    ];
    let mut loaded = load_with(main, &Library::standard(), &files);
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let layer = loaded.elaborate(None, &[]).unwrap();
    assert!(describe(&layer).contains("loss sum((y - v)^2 / 2)"));
}

#[test]
fn library_texts_see_the_librarys_names_only() {
    let text = "fn gelu(x) = x; memory matrix { weight W: [dk]; read(x) = W * x; }
        layer mine = yaad(chunk = 8);";
    let mut loaded = load(text);
    let shadows = loaded.problems.iter().filter(|d| d.code.0 == "W0101").count();
    assert_eq!(shadows, 2);
    let layer = loaded.elaborate(None, &[]).unwrap();
    assert!(describe(&layer).contains("gelu(W[1] @ x)"));
}

#[test]
fn predicates_look_at_structure() {
    let frame = |bias: &str, memory: &str, retention: &str| {
        format!(
            "memory: m; bias: b; retention: r; algo: newton(ridge = 0.5);
             memory m {{ {memory} }} bias b {{ {bias} }} retention r {{ {retention} }}"
        )
    };
    let (loss, read, keep) =
        ("loss = norm(y - v)^2 / 2 + sum(v);", "weight U: [dv, dk] = 0; read(q) = U @ q + 0;", "W' = u + W;");
    layer(&frame(loss, read, keep));
    let refused = [
        frame("loss = sum((y - v)^2);", read, keep),
        frame("loss = sum(abs(y - v) * abs(y - v)) / 2;", read, keep),
        frame("loss = sum((y - v)^2) / 2; slope = tanh(y - v);", read, keep),
        frame(loss, "weight U: [dv, dk]; read(q) = U @ q + q;", keep),
        frame(loss, "weight U: [dv, dk]; read(q) = 2 * (U @ q);", keep),
        frame(loss, "weight U: [dv, dk]; read(q) = U @ tanh(q);", keep),
        frame(loss, read, "W' = 0.9 * W + u;"),
        frame(loss, read, "local(W, P) = sum((W - P)^2);"),
    ];
    for text in refused {
        let mut loaded = load(&text);
        let problems = loaded.elaborate(None, &[]).unwrap_err();
        assert!(problems.iter().any(|d| d.code.0 == "E0303"), "{text}\n{}", loaded.show(&problems));
    }
}

/// docs/mathematics.md, sigmoid: logit W' = (1 - alpha) logit W + u makes the objective's slope equal to u.
#[test]
fn the_fermi_dirac_objective_has_its_closed_form() {
    let layer = layer("memory: matrix; bias: l2; retention: sigmoid(alpha = 0.3); algo: gd");
    let retention = &layer.retention[0];
    let miras_spec::Form::Objective { local: Some(local), global: Some(global), .. } = retention.form else {
        panic!("not an objective")
    };
    let (old, u) = (0.2_f64, 0.7_f64);
    let theta = 0.7 * (old / (1.0 - old)).ln() + u;
    let new = 1.0 / (1.0 + (-theta).exp());
    let objective = |w: f64| {
        let mut env = miras_term::Env::default();
        env.dims.insert("dk".into(), 1);
        env.dims.insert("dv".into(), 1);
        env.vars.insert(layer.memory.weights[0].var, miras_term::Tensor::matrix(1, 1, vec![old]));
        env.vars.insert(retention.new_weight, miras_term::Tensor::matrix(1, 1, vec![w]));
        layer.terms.eval(&[local, global], &env).unwrap().iter().map(|t| t.data[0]).sum::<f64>()
    };
    let slope = (objective(new + 1e-6) - objective(new - 1e-6)) / 2e-6;
    assert!((slope - u).abs() < 1e-8, "{slope}");
}

#[test]
fn a_single_repeated_step_comes_after_retention() {
    let with =
        |algo: &str| describe(&layer(&format!("memory: matrix; bias: l2; retention: l2; algo: {algo};")));
    let steps = |text: String| -> Vec<String> {
        text.lines()
            .filter(|l| l.starts_with("point") || l.starts_with("direction"))
            .map(String::from)
            .collect()
    };
    assert_eq!(steps(with("multi(1)")), steps(with("gd(at = retained)")));
}

#[test]
fn a_point_at_a_new_state_is_written_out() {
    let text = "memory: matrix; bias: l2; retention: none; algo: mean;
        algo mean { state S = zeros(W); S' = S / 2 + W; direction = -grad(S'); }";
    assert!(
        lines(text, "point").iter().all(|l| l.contains("S.W / 2 + W") || l.contains("S / 2 + W")),
        "{:?}",
        lines(text, "point")
    );
}
