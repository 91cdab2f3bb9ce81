//! Identifiers: names of the specification made fit for WGSL, each given once.

use std::collections::BTreeSet;

/// What the emitted text itself uses, and so no array or variable may be called.
const OWN: &[&str] = &[
    "Run",
    "Task",
    "run",
    "task",
    "tasks",
    "given",
    "work",
    "lane",
    "index",
    "point",
    "group",
    "local",
    "turn",
    "part",
    "partial",
    "other",
    "stop",
    "tile",
    "top",
    "edge",
    "slab",
    "depth",
    "deep",
    "rows",
    "columns",
    "at_0",
    "at_1",
    "at_2",
    "at_3",
    "sums",
    "own",
    "total_0",
    "total_1",
    "total_2",
    "total_3",
    "left_1",
    "left_2",
    "left_4",
    "right_1",
    "right_2",
    "right_4",
    "f32",
    "i32",
    "u32",
    "vec3",
    "vec4",
    "bool",
    "array",
    "atomic",
    "min",
    "max",
    "abs",
    "sqrt",
    "floor",
    "round",
    "select",
    "bitcast",
    "storageBarrier",
    "workgroupBarrier",
];

/// The identifiers that are taken in one scope.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    pub(crate) fn new() -> Names {
        let reserved = naga::keywords::wgsl::RESERVED.iter().chain(OWN);
        Names { taken: reserved.map(ToString::to_string).collect() }
    }

    /// The fields of a structure, of which these are there already.
    pub(crate) fn fields(there: &[&str]) -> Names {
        let reserved = naga::keywords::wgsl::RESERVED.iter().chain(there);
        Names { taken: reserved.map(ToString::to_string).collect() }
    }

    /// An identifier like `wish` that nothing else has.
    pub(crate) fn claim(&mut self, wish: &str) -> String {
        let plain = identifier(wish);
        let mut name = plain.clone();
        let mut number = 1_usize;
        while !self.taken.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        name
    }

    /// Gives an identifier back whose scope has ended.
    pub(crate) fn release(&mut self, name: &str) {
        self.taken.remove(name);
    }
}

/// Letters, digits and single underscores, a letter first, at most 60 of them.
fn identifier(wish: &str) -> String {
    let mut name = String::new();
    for c in wish.chars().take(60) {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !(name.is_empty() || name.ends_with('_')) {
            name.push(c);
        }
    }
    let name = name.trim_end_matches('_');
    match name.chars().next() {
        None => "x".to_string(),
        Some(first) if first.is_ascii_digit() => format!("x{name}"),
        Some(_) => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_given_once() {
        let mut names = Names::new();
        assert_eq!(names.claim("retention.alpha"), "retention_alpha");
        assert_eq!(names.claim("retention alpha"), "retention_alpha_1");
        assert_eq!(names.claim("for"), "for_1");
        assert_eq!(names.claim("run"), "run_1");
        assert_eq!(names.claim("__2θ"), "x2");
        assert_eq!(names.claim("λ"), "x");
    }
}
