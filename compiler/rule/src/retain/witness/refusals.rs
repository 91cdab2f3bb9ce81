//! What is refused, and that the refusal says which step failed and what can be done.

use super::world::{refusal, solve};
use miras_base::diagnostic::code;

fn says(definitions: &str, clause: &str, words: &[&str]) {
    let d = refusal(definitions, clause);
    assert_eq!(d.code, code::NOT_SOLVED, "{d}");
    let text = format!("{}\n{}\n{}", d.message, d.notes.join("\n"), d.help.clone().unwrap_or_default());
    for word in words {
        assert!(text.contains(word), "`{word}` is missing from:\n{text}");
    }
    assert!(!d.labels.is_empty());
}

#[test]
fn links_that_do_not_reach_all_reals() {
    let defs = "fn hyperbola(w) = sqrt(1 + w^2); fn root(w) = -sqrt(w); fn falling(w) = -w^2;";
    says(defs, "bregman(hyperbola)", &["takes only values in", "not all reals", "W' = ..."]);
    says(defs, "bregman(root)", &["not all reals"]);
    says(defs, "bregman(falling)", &["curvature", "not known to be greater than 0"]);
}

#[test]
fn mixtures_without_an_inverse() {
    let def = "retention mine(alpha: unit = learned) { local(W, P) = BODY; }";
    let newton = "sum(log(exp(W - P) + exp(P - W))) + sum((W - P)^2)";
    says(&def.replace("BODY", newton), "mine", &["more than once", "solve: newton(8);", "W' = ..."]);
    let cases = [
        ("(1 - alpha) * sum((W - P)^2)", "not known to be greater than 0"),
        ("norm(W - P, 3)^2 + sum(W^4)", "norm besides"),
        ("sum((W - P)^2) + norm(W, 3)", "not the 2-norm"),
        ("sum((W - P)^2) - alpha * norm(W, 2)", "not known to be at least 0"),
        ("sum((W - P)^2) + norm(W, 2)^1.5", "neither 1 nor"),
        ("-norm(W - P, 3)^2", "the factor of the norm"),
        ("norm(W - P, 3)", "a power, above 1"),
        ("sum(softmax(W) * P)", "mixes the entries"),
        ("sum(sin(W) * P)", "no inverse"),
    ];
    for (body, why) in cases {
        says(&def.replace("BODY", body), "mine", &[why, "W' = ..."]);
        let help = refusal(&def.replace("BODY", body), "mine").help.unwrap();
        assert!(!help.contains("newton"), "Newton steps are refused for `{body}` as well: {help}");
    }
}

#[test]
fn newton_needs_a_rising_slope() {
    let def = "retention mine { local(W, P) = sum(sin(W) * P); solve: newton(4); }";
    let d = refusal(def, "mine");
    assert!(!d.help.unwrap().contains("newton(8)"));
}

#[test]
fn a_norm_wants_one_curvature() {
    let def = "retention mine(alpha: unit = learned(per = entry)) {
        local(W, P) = sum((W - P)^2) / 2; global(W) = alpha * sum(W^2) + norm(W, 2); }";
    says(def, "mine", &["pulls in another direction", "W' = ..."]);
}

#[test]
fn newton_goes_entry_by_entry() {
    let def =
        "retention mine on DOMAIN { local(W, P) = sum(W * log(W / P)) + sum(exp(W)); solve: newton(8); }";
    says(&def.replace("DOMAIN", "simplex(row, 1)"), "mine", &["tied by the sum of their slice", "W' = ..."]);
    says(&def.replace("DOMAIN", "ball(1)"), "mine", &["tied by their norm", "W' = ..."]);
}

#[test]
fn a_ball_wants_one_curvature() {
    let def = "retention mine(alpha: unit = learned(per = entry)) on ball(1) {
        local(W, P) = sum((W - P)^2) / 2; global(W) = alpha * sum(W^2); }";
    says(def, "mine", &["curvature varies"]);
}

#[test]
fn a_factor_may_vanish_only_where_several_gates_are_at_their_ends() {
    let def = "retention mine(alpha: unit = learned, b: positive = learned) on simplex(row, 1) {
        local(W, P) = (1 - alpha) * sum(W * log(W / P)); global(W) = GLOBAL; }";
    let together = ["b * sum(W * log(W))", "alpha * b * sum(W) + b * sum(W * log(W)) / 3"];
    for global in together {
        assert!(solve(&def.replace("GLOBAL", global), "mine").solved.linear.is_some(), "{global}");
    }
    for global in ["b * sum(W)", "(1 - alpha) * b * sum(W * log(W))"] {
        says(&def.replace("GLOBAL", global), "mine", &["not known to be greater than 0"]);
    }
}
