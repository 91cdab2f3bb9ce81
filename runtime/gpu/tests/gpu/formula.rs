//! Formulas of plans.

use std::collections::HashMap;

/// A formula's value: `+ - * /`, parentheses, `min`, `max`, `ceil`, `floor`, names and numbers.
pub fn evaluate(formula: &str, names: &HashMap<&str, f64>) -> f64 {
    let mut rest = formula.trim();
    let value = sum(&mut rest, names);
    assert!(rest.is_empty(), "`{formula}`: `{rest}` is left over");
    value
}

fn sum(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let mut value = product(rest, names);
    loop {
        if eat(rest, "+") {
            value += product(rest, names);
        } else if eat(rest, "-") {
            value -= product(rest, names);
        } else {
            return value;
        }
    }
}

fn product(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let mut value = atom(rest, names);
    loop {
        if eat(rest, "*") {
            value *= atom(rest, names);
        } else if eat(rest, "/") {
            value /= atom(rest, names);
        } else {
            return value;
        }
    }
}

fn atom(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after.trim_start();
    if !word.is_empty() && !rest.starts_with('(') {
        return word.parse().unwrap_or_else(|_| names[word]);
    }
    assert!(eat(rest, "("), "`{word}` `{rest}`");
    let mut arguments = vec![sum(rest, names)];
    while eat(rest, ",") {
        arguments.push(sum(rest, names));
    }
    assert!(eat(rest, ")"), "`{rest}`");
    match (word, arguments.as_slice()) {
        ("", [a]) => *a,
        ("ceil", [a]) => a.ceil(),
        ("floor", [a]) => a.floor(),
        ("min", [a, b]) => a.min(*b),
        ("max", [a, b]) => a.max(*b),
        _ => panic!("`{word}` is no function of plans"),
    }
}

fn eat(rest: &mut &str, token: &str) -> bool {
    match rest.strip_prefix(token) {
        Some(after) => {
            *rest = after.trim_start();
            true
        }
        None => false,
    }
}
