//! `miras explain --measure`: how far chunks are from the recurrence, on synthetic data.

use base::Diagnostic;
use explain::Measured;
use miras_base as base;
use miras_explain as explain;
use miras_host as host;
use miras_schedule::Plan;
use miras_verify as check;

/// Sizes of the data.
const SIZE: usize = 8;
/// Chunks longer than this are not measured whole.
const LONGEST: u32 = 128;

/// The error of the outputs by chunk length, both schedules by the definition in float64.
///
/// # Errors
/// Those of binding and of the reference.
pub(super) fn measured(plan: &Plan) -> Result<Measured, Vec<Diagnostic>> {
    let rule = &plan.rule;
    let chunk = plan.schedule.chunk().unwrap_or(rule.layer.chunk);
    let tokens = chunk.min(LONGEST) as usize * 2 + 3;
    let wanted = host::Synthetic { seed: 0, batch: 1, heads: 2, tokens, dk: SIZE, dv: SIZE, grad: false };
    let data = host::synthetic(rule, &wanted).map_err(|d| vec![d])?;
    let (data, factor) = check::calm(rule, &data)?;
    let case = check::Case { rule, data: &data, chunk, exact: plan.schedule.exact() };
    let curve = check::curve(&case, tokens)?;
    let steps = if factor < 1.0 {
        let part = 1.0 / factor;
        format!(
            " Step sizes and forgetting are 1/{part} of the usual ones, since larger ones make the layer chaotic."
        )
    } else {
        String::new()
    };
    Ok(Measured {
        on: format!(
            "Synthetic data of {tokens} tokens, 2 heads, dk = dv = {SIZE}; the chunked and the recurrent definition, both \
             in float64.{steps} Other data has other errors."
        ),
        errors: curve.iter().map(|point| (point.chunk, point.outputs)).collect(),
    })
}
