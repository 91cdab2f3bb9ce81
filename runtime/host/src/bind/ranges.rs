//! Values of the program that are numbers only once the heads and sizes are known: `alpha = 1 - 2^(-5 - head)`.

use super::desk::{Desk, kind_range};
use super::starts::Scene;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;

/// Refuses values outside the kind of their parameter, the first head of each that has one.
pub(super) fn check(desk: &mut Desk<'_>, scene: &Scene<'_>) {
    let layer = &desk.rule.layer;
    // A definition's parameters are bound once for each weight it is applied to.
    let mut seen = std::collections::BTreeSet::new();
    for ranged in layer.ranges.iter().filter(|r| seen.insert((&r.asked_by, &r.name))) {
        desk.problems.extend((0..scene.sizes.heads).find_map(|head| outside(scene, ranged, head)));
    }
}

fn outside(scene: &Scene<'_>, ranged: &spec::Ranged, head: usize) -> Option<Diagnostic> {
    let value = scene.layer.terms.eval_one(ranged.value, &scene.env(head, None)).ok()?;
    let (good, range) = kind_range(ranged.kind);
    let found = value.data.into_iter().find(|x| !good(*x))?;
    let message = format!("`{}` is {found} in head {head}, outside {range}", ranged.name);
    let help =
        format!("give `{}` a value that stays in this range for every head (counted from 0)", ranged.name);
    Some(
        Diagnostic::new(code::OUT_OF_DOMAIN, message)
            .at_opt(ranged.span, "given here")
            .with_help(help)
            .with_note(format!("it is given in {}", ranged.asked_by)),
    )
}
