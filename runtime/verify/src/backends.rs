//! Every backend against the reference, by every schedule.

use crate::measure::{allowance, backward, forward, with_cotangent, worst};
use crate::report::{Row, Section};
use crate::{Case, Failure, Reference, Runner};
use miras_base::diagnostic::code;
use miras_host as host;

pub(crate) fn section(
    case: &Case<'_>,
    backends: &mut [Box<dyn Runner + '_>],
    absent: &[(String, String)],
) -> Result<Section, Failure> {
    let schedules = [
        ("recurrent".to_string(), host::Schedule::Recurrent),
        (format!("chunked({})", case.chunk), host::Schedule::Chunked(case.chunk)),
    ];
    let mut rows = Vec::new();
    for (order, schedule) in schedules {
        let (plain, grad) = expected(case, schedule)?;
        for backend in backends.iter_mut() {
            rows.extend(plain.rows(backend.as_mut(), schedule, &order, false));
            rows.extend(grad.rows(backend.as_mut(), schedule, &order, true));
        }
    }
    rows.extend(absent.iter().map(|(name, why)| Row::not_run(name, why)));
    let about = "Results in float32 against the float64 reference. The bound follows from what the reference \
                 itself loses on this data when each of its operations is rounded to float32.";
    Ok(Section { title: "Backends against the reference".into(), about: about.into(), rows })
}

/// What the reference gives, and by how much float32 may differ.
struct Expected {
    data: host::Bundle,
    results: host::Bundle,
    bound: f64,
}

/// For outputs and states, and for gradients.
fn expected(case: &Case<'_>, schedule: host::Schedule) -> Result<(Expected, Expected), Failure> {
    let mut reference = Reference::new(case.rule);
    let results = reference.run(case.data, schedule, false)?;
    let bound = allowance(case, schedule, false, case.data, forward)?;
    let data = match results.get("o") {
        Some(o) => with_cotangent(case.data, o),
        None => case.data.clone(),
    };
    let plain = Expected { data: case.data.clone(), results, bound };
    let results = reference.run(&data, schedule, true)?;
    let bound = allowance(case, schedule, true, &data, backward)?;
    Ok((plain, Expected { data, results, bound }))
}

impl Expected {
    fn rows(&self, backend: &mut dyn Runner, schedule: host::Schedule, order: &str, grad: bool) -> Vec<Row> {
        let subject = if grad { "gradients" } else { "outputs and states" };
        let what = format!("{}, {order}: {subject}", backend.name());
        match backend.run(&self.data, schedule, grad) {
            Ok(results) => {
                let which = if grad { backward } else { forward };
                let (figure, name) = worst(&results, &self.results, which);
                let row = Row::promised(what, figure, self.bound);
                vec![if figure > 0.0 {
                    row.with_note(format!("the largest is that of `{name}`"))
                } else {
                    row
                }]
            }
            Err(why) => vec![refusal(what, &why)],
        }
    }
}

/// A limit of ours is told; anything else breaks the promise.
pub(crate) fn refusal(what: String, why: &Failure) -> Row {
    let text: Vec<String> = why.iter().map(|d| format!("{}: {}", d.code, d.message)).collect();
    let limit = why.iter().all(|d| [code::UNSUPPORTED, code::DEVICE_LIMIT].contains(&d.code));
    match limit {
        true => Row::not_run(what, text.join("; ")),
        false => Row::failed(what, text.join("; ")),
    }
}
