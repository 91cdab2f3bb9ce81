//! Tensors that are no inputs of the layer.

use super::desk::{Desk, nearest};
use super::state;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;

/// How many are named one by one.
const SHOWN: usize = 8;

/// Notes a problem for every tensor that nothing asked for, unless the options let them pass.
pub(super) fn extras(desk: &mut Desk<'_>) {
    if desk.options.allow_extra {
        return;
    }
    let extra: Vec<&str> = desk.bundle.names().filter(|n| !desk.known.contains(*n)).collect();
    for name in extra.iter().take(SHOWN) {
        let problem = unknown(desk, name);
        desk.problems.push(problem);
    }
    if extra.len() > SHOWN {
        let message = format!("{} more tensors are no inputs of the layer", extra.len() - SHOWN);
        desk.problems.push(Diagnostic::new(code::UNKNOWN_TENSOR, message).with_help(LIFT));
    }
}

/// How to pass over them.
const LIFT: &str = "remove it, or pass `--allow-extra` to pass over tensors that are not needed";

fn unknown(desk: &Desk<'_>, name: &str) -> Diagnostic {
    let message = format!("`{}` is not an input of layer `{}`", shown(name), desk.rule.layer.name);
    let missing = desk.known.iter().map(String::as_str).filter(|n| !desk.bundle.has(n));
    let help = match nearest(name, missing) {
        Some(near) => format!("did you mean `{near}`? Else {LIFT}"),
        None => format!("{}{LIFT}", reason(desk, name)),
    };
    let inputs: Vec<String> = desk.known.iter().map(|n| format!("`{n}`")).collect();
    Diagnostic::new(code::UNKNOWN_TENSOR, message)
        .with_help(help)
        .with_note(format!("the layer's inputs are {}", inputs.join(", ")))
}

/// Why a name of a known kind is not wanted here.
fn reason(desk: &Desk<'_>, name: &str) -> &'static str {
    match name.split('.').next().unwrap_or("") {
        "grad" if !desk.options.grad => "it is a cotangent: pass `--grad` to have gradients computed; else ",
        "state" if name.starts_with("state.anchor.") && !state::frozen(desk.rule) => {
            "the class of this layer needs no anchors; "
        }
        "o" | "d" => "it is a result of a run, not an input; ",
        "memory" | "bias" | "retention" | "algo" => {
            "the layer declares no such weight or `learned` parameter; "
        }
        "input" | "trained" => "the layer declares no such tensor; ",
        _ => "",
    }
}

/// A name from a file as messages show it: without control characters, and not endless.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(100).flat_map(char::escape_debug).collect()
}
