//! Sizes: B, H, T, dk and dv from q, k and v, and the equalities that the program needs.

use super::desk::{Ask, Axis, Desk, Found};
use crate::tensor::Tensor;
use miras_base::diagnostic::code;
use miras_base::{Diagnostic, Dim, DimEnv, Span};
use miras_spec as spec;
use miras_term as term;
use std::sync::Arc;

/// The sizes of a run.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub tokens: usize,
    pub repeats: usize,
    pub dims: DimEnv,
}

/// Who needs q, k and v.
const CORE: &str = "every memory layer";

/// The sizes, where q, k and v agree on them and the program's equalities hold.
pub(super) fn infer(desk: &mut Desk<'_>) -> Option<Sizes> {
    let repeats = desk.rule.layer.repeats() as usize;
    let times = if repeats > 1 { format!("T*{repeats}") } else { "T".into() };
    let q = sequence(desk, "q", "[B, H, T, dk]");
    let k = sequence(desk, "k", &format!("[B, H, {times}, dk]"));
    let v = sequence(desk, "v", &format!("[B, H, {times}, dv]"));
    let ([batch, heads, tokens, dk], _, [.., dv]) = (q?, k?, v?);
    if [("B", batch), ("H", heads), ("dk", dk), ("dv", dv)]
        .iter()
        .any(|(symbol, n)| is_zero(desk, symbol, *n))
    {
        return None;
    }
    let dims = DimEnv::from([(Arc::from("dk"), dk as u64), (Arc::from("dv"), dv as u64)]);
    equalities(desk, &dims).then_some(Sizes { batch, heads, tokens, repeats, dims })
}

/// A tensor of four axes.
fn sequence(desk: &mut Desk<'_>, name: &str, shape: &str) -> Option<[usize; 4]> {
    let tensor = match desk.raw(name, shape, CORE, None) {
        Found::Good(tensor) => tensor,
        Found::Bad => return None,
        Found::Missing => {
            let message = format!("`{name}` is missing: {CORE} needs it, of shape {shape}");
            let help = format!("add a float32 or float64 tensor `{name}`");
            desk.problems.push(Diagnostic::new(code::MISSING_TENSOR, message).with_help(help));
            return None;
        }
    };
    let axes = <[usize; 4]>::try_from(tensor.shape.as_slice()).ok();
    if axes.is_none() {
        let message = format!("`{name}` has shape {:?}, but {CORE} needs {shape}", tensor.shape);
        let help = "batch, heads, tokens and features are four axes; use size 1 for one you do not have";
        desk.problems.push(Diagnostic::new(code::TENSOR_SHAPE, message).with_help(help));
    }
    axes
}

fn is_zero(desk: &mut Desk<'_>, symbol: &str, size: usize) -> bool {
    if size == 0 {
        let name = if symbol == "dv" { "v" } else { "q" };
        let shape = desk.bundle.get(name).map(|t| t.shape.clone()).unwrap_or_default();
        let message = format!("`{name}` has shape {shape:?}: {symbol} is 0");
        let help = format!("{symbol} must be at least 1 (only T, the number of tokens, may be 0)");
        desk.problems.push(Diagnostic::new(code::TENSOR_SHAPE, message).with_help(help));
    }
    size == 0
}

/// Checks the equalities of sizes that the program needs.
fn equalities(desk: &mut Desk<'_>, dims: &DimEnv) -> bool {
    let before = desk.problems.len();
    for required in &desk.rule.layer.constraints {
        let (left, right) = (&required.constraint.left, &required.constraint.right);
        let sizes = (left.eval(dims), right.eval(dims));
        if sizes.0 == sizes.1 && sizes.0.is_some() {
            continue;
        }
        let text = |dim: &Dim, size: Option<u64>| match size {
            Some(n) => format!("{} = {n}", dim.formula()),
            None => format!("{} is no size", dim.formula()),
        };
        let given: Vec<String> = dims.iter().map(|(name, n)| format!("{name} = {n}")).collect();
        let needed = format!("the program needs {} = {}", left.formula(), right.formula());
        let (found, help) = match (left.as_constant(), right.as_constant()) {
            (None, None) => (
                format!("{} and {}", text(left, sizes.0), text(right, sizes.1)),
                "change the sizes of q, k and v, or choose a memory that does not need them equal".into(),
            ),
            (fixed, _) => {
                let (free, size) = if fixed.is_some() { (right, sizes.1) } else { (left, sizes.0) };
                (
                    format!("the data gives {}", text(free, size)),
                    format!("give data of that size, or write the shape with {} itself", free.formula()),
                )
            }
        };
        let mut problem = Diagnostic::new(code::DIM_CONFLICT, format!("{needed}, but {found}"))
            .with_help(help)
            .with_note(format!("q and k give dk, v gives dv: {}", given.join(", ")));
        for (span, role) in &required.places {
            problem = match span {
                Some(span) => problem.at(*span, role.clone()),
                None => problem.with_note(role.clone()),
            };
        }
        desk.problems.push(problem);
    }
    desk.problems.len() == before
}

impl Sizes {
    /// Entries of k, v and repeated parameters along the token axis.
    pub fn entries(&self, repeated: bool) -> usize {
        if repeated { self.tokens.saturating_mul(self.repeats) } else { self.tokens }
    }

    /// The axes [B, H, T] or [B, H, T*n].
    pub fn token_axes(&self, repeated: bool) -> Vec<Axis> {
        let symbol = if repeated && self.repeats > 1 { format!("T*{}", self.repeats) } else { "T".into() };
        vec![
            Axis::new("B", self.batch),
            Axis::new("H", self.heads),
            Axis::new(symbol, self.entries(repeated)),
        ]
    }

    /// The axes of a symbolic shape; None where a size is not positive or too large to count.
    pub fn axes(&self, shape: &term::Shape) -> Option<Vec<Axis>> {
        let axis = |d: &Dim| match d.eval(&self.dims).map(usize::try_from) {
            Some(Ok(size)) if size > 0 => Some(Axis::new(d, size)),
            Some(_) | None => None,
        };
        shape.0.iter().map(axis).collect()
    }

    /// [`Sizes::axes`], with a problem noted where there are none.
    pub fn axes_of(
        &self,
        desk: &mut Desk<'_>,
        name: &str,
        shape: &term::Shape,
        span: Option<Span>,
    ) -> Option<Vec<Axis>> {
        let axes = self.axes(shape);
        if axes.is_none() {
            let given: Vec<String> = self.dims.iter().map(|(name, n)| format!("{name} = {n}")).collect();
            let message =
                format!("`{name}` would have shape {shape}, which is no size for {}", given.join(", "));
            desk.problems.push(
                Diagnostic::new(code::TENSOR_SHAPE, message)
                    .at_opt(span, "declared here")
                    .with_help("every axis must have a size of at least 1 that a machine can count"),
            );
        }
        axes
    }
}

/// q, k and v, now with every check.
pub(super) fn take(desk: &mut Desk<'_>, sizes: &Sizes) -> [Option<Arc<Tensor>>; 3] {
    let size = |name: &str| sizes.dims.get(name).map_or(0, |n| *n as usize);
    [("q", "dk"), ("k", "dk"), ("v", "dv")].map(|(name, last)| {
        let mut axes = sizes.token_axes(name != "q");
        axes.push(Axis::new(last, size(last)));
        let shape: Vec<usize> = axes.iter().map(|a| a.size).collect();
        let who = match (desk.bundle.get("q"), desk.bundle.get(name)) {
            (Some(q), Some(tensor)) if tensor.shape != shape => {
                format!("beside `q` of shape {:?} it", q.shape)
            }
            _ => CORE.to_string(),
        };
        desk.required(&Ask { name: name.into(), axes, kind: spec::Kind::Real, who, span: None })
    })
}
