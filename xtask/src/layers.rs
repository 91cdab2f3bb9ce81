//! Dependencies point left: a crate may use only crates that stand before it in the flow, and outside crates
//! only where the room's door says so.

use crate::Finding;
use crate::manifest::Crate;

/// The rooms from left to right. Equal numbers may not see each other.
const ORDER: &[(&str, u32)] = &[
    ("miras-base", 0),
    ("miras-syntax", 1),
    ("miras-term", 1),
    ("miras-stdlib", 0),
    ("miras-spec", 2),
    ("miras-rule", 3),
    ("miras-schedule", 4),
    ("miras-tensor", 5),
    ("miras-kernel", 6),
    ("miras-emit-clif", 7),
    ("miras-emit-wgsl", 7),
    ("miras-explain", 5),
    ("miras-driver", 7),
    ("miras-host", 6),
    ("miras-reference", 8),
    ("miras-tasks", 7),
    ("miras-cpu", 8),
    ("miras-gpu", 8),
    ("miras-verify", 9),
    ("miras-cli", 10),
    ("miras-tests", 11),
    ("xtask", 0),
];

/// Heavy outside crates and the one door of each.
const DOORS: &[(&str, &[&str])] = &[
    ("pest", &["miras-syntax"]),
    ("pest_derive", &["miras-syntax"]),
    ("naga", &["miras-emit-wgsl"]),
    ("wgpu", &["miras-gpu"]),
    ("cranelift", &["miras-emit-clif", "miras-cpu"]),
    ("cranelift-module", &["miras-emit-clif", "miras-cpu"]),
    ("cranelift-jit", &["miras-cpu"]),
    ("cranelift-native", &["miras-cpu"]),
    ("rayon", &["miras-cpu"]),
    ("pulp", &["miras-cpu"]),
    ("safetensors", &["miras-host"]),
    ("half", &["miras-host"]),
    ("clap", &["miras-cli"]),
    ("clap_complete", &["miras-cli"]),
    ("clap_mangen", &["miras-cli"]),
];

/// Pairs that may never meet, whatever the order: the oracle shares nothing with what it judges.
const APART: &[(&str, &str)] = &[
    ("miras-reference", "miras-schedule"),
    ("miras-reference", "miras-tensor"),
    ("miras-reference", "miras-kernel"),
    ("miras-reference", "miras-emit-clif"),
    ("miras-reference", "miras-emit-wgsl"),
];

/// Every dependency that points the wrong way or goes through the wrong door.
pub fn check(crates: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in crates {
        let Some(own) = place(&one.name) else {
            findings
                .push(Finding::new(&one.folder, format!("{} has no place in the order of rooms", one.name)));
            continue;
        };
        for dependency in &one.dependencies {
            let wrong = match place(dependency) {
                Some(other) if other >= own => {
                    Some(format!("depends on {dependency}, which stands to its right"))
                }
                Some(_) if APART.contains(&(one.name.as_str(), dependency.as_str())) => {
                    Some(format!("must share nothing with {dependency}"))
                }
                Some(_) => None,
                None => DOORS
                    .iter()
                    .find(|(name, doors)| name == dependency && !doors.contains(&one.name.as_str()))
                    .map(|(name, doors)| format!("{name} may be used by {} only", doors.join(", "))),
            };
            findings.extend(wrong.map(|what| Finding::new(format!("{}/Cargo.toml", one.folder), what)));
        }
    }
    findings
}

fn place(name: &str) -> Option<u32> {
    ORDER.iter().find(|(n, _)| *n == name).map(|(_, at)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, dependency: &str) -> Vec<Crate> {
        vec![Crate { folder: "x".into(), name: name.into(), dependencies: vec![dependency.into()] }]
    }

    #[test]
    fn a_back_edge_a_wrong_door_and_a_shared_oracle_are_found() {
        assert_eq!(check(&one("miras-rule", "miras-tensor")).len(), 1);
        assert_eq!(check(&one("miras-rule", "pest")).len(), 1);
        assert_eq!(check(&one("miras-reference", "miras-tensor")).len(), 1);
        assert_eq!(check(&one("miras-stranger", "miras-base")).len(), 1);
        assert!(check(&one("miras-rule", "miras-spec")).is_empty());
    }
}
