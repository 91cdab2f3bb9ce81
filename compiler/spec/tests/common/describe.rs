//! A layer as text: everything that later rooms read, and nothing that depends on a definition's name.

use miras_spec::{Algo, Domain, Form, Layer};
use miras_term::{PrintOptions, TermId, VarId, print};

/// Everything about a layer but the names of its definitions.
pub fn describe(layer: &Layer) -> String {
    let t = |id: TermId| {
        format!("{} : {}", print(&layer.terms, id, &PrintOptions::default()), layer.terms.shape(id))
    };
    let o = |id: Option<TermId>| id.map_or("-".to_string(), t);
    let v = |id: VarId| {
        format!("{} {:?} {}", layer.terms.var(id).name, layer.terms.var(id).role, layer.terms.var(id).shape)
    };
    let mut lines = vec![format!("read_before {} chunk {}", layer.read_before, layer.chunk)];
    for p in &layer.params {
        let source = format!("{:?}", p.source);
        lines.push(format!("param {} {} {:?} {source} repeated {}", p.tensor, v(p.var), p.kind, p.repeated));
    }
    for w in &layer.memory.weights {
        lines.push(format!("weight {} {} start {}", w.name, v(w.var), o(w.start)));
    }
    lines.push(format!("read {} history {}", o(layer.memory.read), layer.memory.history));
    lines.push(format!("loss {}\nslope {}", t(layer.bias.loss), o(layer.bias.slope)));
    for r in &layer.retention {
        lines.push(format!("retention {} {} newton {:?}", v(r.new_weight), v(r.update), r.newton));
        lines.push(match &r.form {
            Form::Objective { local, global, domain } => {
                format!("objective {} | {} | {}", o(*local), o(*global), describe_domain(domain, &t))
            }
            Form::Lazy { dual, next, potential, domain } => format!(
                "lazy {} {} {} | {} | {}",
                v(dual[0]),
                v(dual[1]),
                t(*next),
                t(*potential),
                describe_domain(domain, &t)
            ),
            Form::DeclaredDual { dual, next, map } => {
                format!("declared dual {} {} {} | {}", v(dual[0]), v(dual[1]), t(*next), t(*map))
            }
            Form::DeclaredMap { next } => format!("declared map {}", t(*next)),
        });
    }
    match &layer.algo {
        Algo::Step(step) => {
            lines.push(format!("step repeats {}", step.repeats));
            for p in &step.points {
                let at: Vec<String> = p.at.iter().map(|a| t(*a)).collect();
                let gradients: Vec<String> = p.gradients.iter().map(|g| v(*g)).collect();
                lines.push(format!("point {} -> {}", at.join("; "), gradients.join("; ")));
            }
            lines.extend(step.retained.iter().map(|r| format!("retained {}", v(*r))));
            for s in &step.states {
                lines.push(format!(
                    "state {} {} {} = {} -> {}",
                    s.name,
                    v(s.old),
                    v(s.new),
                    t(s.start),
                    t(s.next)
                ));
            }
            lines.extend(step.direction.iter().map(|d| format!("direction {}", t(*d))));
        }
        Algo::Weigh(w) => {
            lines.push(format!("weigh {} window {:?} refinements {}", t(w.kernel), w.window, w.refinements))
        }
    }
    for c in &layer.constraints {
        lines.push(format!("constraint {} = {}", c.constraint.left.formula(), c.constraint.right.formula()));
    }
    lines.join("\n")
}

fn describe_domain(domain: &Domain, t: &dyn Fn(TermId) -> String) -> String {
    match domain {
        Domain::All => "all".into(),
        Domain::Simplex { axis, mass } => format!("simplex {axis:?} {}", t(*mass)),
        Domain::Ball { radius } => format!("ball {}", t(*radius)),
        Domain::Interval { low, high } => format!("interval {} {}", t(*low), t(*high)),
    }
}
