//! The reference's outer gradients against differences of its own results.

use crate::measure::with_cotangent;
use crate::report::{Row, Section};
use crate::{Case, Failure, Reference, Runner};
use miras_host as host;

/// Directions for each schedule.
const DIRECTIONS: usize = 4;

/// Steps of central differences; the smallest error counts (see `inner`).
const STEPS: [f64; 5] = [1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

/// What float64 differences over a whole run can tell apart.
const BOUND: f64 = 1e-5;

pub(crate) fn section(case: &Case<'_>) -> Result<Section, Failure> {
    let mut rows = Vec::new();
    for (order, schedule) in [
        ("recurrent".to_string(), host::Schedule::Recurrent),
        (format!("chunked({})", case.chunk), host::Schedule::Chunked(case.chunk)),
    ] {
        rows.push(Row::promised(format!("{order}: all inputs together"), along_all(case, schedule)?, BOUND));
    }
    let about = format!(
        "Outer gradients of a random scalar of the outputs against central differences of the reference, along \
         {DIRECTIONS} random directions in the space of all floating inputs; relative error."
    );
    Ok(Section { title: "Outer gradients".into(), about, rows })
}

fn along_all(case: &Case<'_>, schedule: host::Schedule) -> Result<f64, Failure> {
    let mut reference = Reference::new(case.rule);
    let plain = reference.run(case.data, schedule, false)?;
    let Some(o) = plain.get("o") else { return Ok(0.0) };
    let data = with_cotangent(case.data, o);
    let results = reference.run(&data, schedule, true)?;
    let mut random = host::Random::new(53);
    let mut worst = 0.0_f64;
    for _ in 0..DIRECTIONS {
        let (direction, told, scale) = direction(&data, &results, &mut random);
        let mut best = f64::INFINITY;
        for step in STEPS {
            let mut value = |step: f64| -> Result<f64, Failure> {
                let results = reference.run(&moved(case.data, &direction, step), schedule, false)?;
                Ok(weighed(&results, &data))
            };
            let difference = (value(step)? - value(-step)?) / (2.0 * step);
            let error = (told - difference).abs() / scale.max(1e-3);
            best = best.min(if error.is_nan() { f64::INFINITY } else { error });
        }
        worst = worst.max(best);
    }
    Ok(worst)
}

/// A random direction, the derivative along it as the gradients tell it, and the size of that. Entries at the
/// end of their range do not move.
fn direction(
    data: &host::Bundle,
    results: &host::Bundle,
    random: &mut host::Random,
) -> (host::Bundle, f64, f64) {
    let mut direction = host::Bundle::new();
    let (mut told, mut squares) = (0.0, 0.0);
    for (name, gradient) in results.iter() {
        let Some(input) = name.strip_prefix("d.").and_then(|n| data.get(n).map(|t| (n, t))) else { continue };
        let (Some(values), Some(gradient)) = (input.1.f64s(), gradient.f64s()) else { continue };
        // Weights on a simplex may miss their mass by 1e-4 of it.
        let reach = if input.0.starts_with("memory.") { 0.1 } else { 1.0 };
        let step = |x: &f64| match *x == 0.0 || *x == 1.0 {
            true => 0.0,
            false => reach * random.normal() * x.abs().clamp(1e-2, 1.0),
        };
        let along: Vec<f64> = values.iter().map(step).collect();
        for (g, a) in gradient.iter().zip(&along) {
            told += g * a;
            squares += (g * a).powi(2);
        }
        direction.insert(input.0, host::Tensor::f64(input.1.shape.clone(), along));
    }
    (direction, told, squares.sqrt())
}

fn moved(data: &host::Bundle, direction: &host::Bundle, step: f64) -> host::Bundle {
    let mut moved = data.clone();
    for (name, along) in direction.iter() {
        let (Some(values), Some(along)) = (data.get(name).and_then(|t| t.f64s()), along.f64s()) else {
            continue;
        };
        let values = values.iter().zip(along.iter()).map(|(x, d)| x + step * d).collect();
        let shape = data.get(name).map(|t| t.shape.clone()).unwrap_or_default();
        moved.insert(name, host::Tensor::f64(shape, values));
    }
    moved
}

/// The sum of the outputs times their cotangents.
fn weighed(results: &host::Bundle, data: &host::Bundle) -> f64 {
    let pair = (results.get("o").and_then(|t| t.f64s()), data.get("grad.o").and_then(|t| t.f64s()));
    let (Some(o), Some(g)) = pair else { return f64::NAN };
    o.iter().zip(g.iter()).map(|(o, g)| o * g).sum()
}
