//! Two layers side by side: what is equal, what differs, and which summands of a formula do.

mod forms;

use crate::document::{Choice, Document};
use crate::math::{Formula, Math};

/// Two documents, row by row.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub(crate) names: [String; 2],
    pub(crate) rows: Vec<Row>,
}

/// A row: the same question about both.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub title: &'static str,
    pub equal: bool,
    /// Formulas with their differing summands marked, or text.
    pub sides: [Side; 2],
    /// What both say, where that is equal.
    pub both: Side,
}

/// What one layer says.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub text: Vec<String>,
    pub formulas: Vec<Formula>,
}

impl Comparison {
    /// Compares two documents.
    pub fn new(a: &Document, b: &Document) -> Comparison {
        let mut rows = Vec::new();
        for n in 0..a.choices.len().min(b.choices.len()) {
            rows.push(choice(&a.choices[n], &b.choices[n]));
        }
        rows.push(formulas("What the memory answers", a, b, |d| d.of_choice("memory")));
        rows.push(formulas("Slope of the loss", a, b, |d| d.of_choice("bias")));
        rows.push(formulas("Inner gradient", a, b, Document::gradient));
        rows.push(formulas("Update", a, b, |d| d.of_choice("algo")));
        rows.push(formulas("Retention", a, b, |d| d.of_choice("retention")));
        rows.push(formulas("Closed form of one step", a, b, |d| d.closed.clone()));
        let texts = |title, of: &dyn Fn(&Document) -> Vec<String>| {
            Row::new(title, Side::text(of(a)), Side::text(of(b)))
        };
        rows.push(texts("Class", &|d| vec![d.class.title.clone()]));
        rows.push(texts("Schedule", &|d| vec![d.schedule.title.clone()]));
        rows.push(texts("State", &|d| {
            d.state.iter().map(|s| format!("{} {}, {}", s.tensor, s.shape, s.entries)).collect()
        }));
        rows.push(texts("Multiply-adds per token", &|d| {
            d.cost.first().map(|c| c.forward.clone()).into_iter().collect()
        }));
        rows.push(texts("Inputs", &|d| {
            d.needed.iter().map(|n| format!("{} {}", n.tensor, n.shape)).collect()
        }));
        let names = if a.name == b.name {
            [format!("{} (first)", a.name), format!("{} (second)", b.name)]
        } else {
            [a.name.clone(), b.name.clone()]
        };
        Comparison { names, rows }
    }
}

impl Document {
    /// What a choice puts into the rule.
    fn of_choice(&self, clause: &str) -> Vec<Formula> {
        self.choices.iter().filter(|c| c.clause == clause).flat_map(|c| c.contributes.clone()).collect()
    }

    /// The formulas of the inner gradient by the weights.
    fn gradient(&self) -> Vec<Formula> {
        let steps = self.steps.iter().filter(|s| s.choice.is_empty());
        let all = steps.flat_map(|s| &s.formulas);
        all.filter(|f| matches!(f.left, Math::Slope(..))).cloned().collect()
    }
}

impl Side {
    fn text(text: Vec<String>) -> Side {
        Side { text, formulas: Vec::new() }
    }

    /// What it says, without marks.
    fn said(&self) -> Vec<String> {
        let formulas = self.formulas.iter().map(Formula::text);
        self.text.iter().cloned().chain(formulas).collect()
    }
}

impl Row {
    fn new(title: &'static str, a: Side, b: Side) -> Row {
        Row { title, equal: a.said() == b.said(), both: a.clone(), sides: [a, b] }
    }
}

/// Two choices are equal where definitions of one text are given the same arguments and put the same formulas into the
/// rule, however they are named and spelled.
fn choice(a: &Choice, b: &Choice) -> Row {
    let said = |c: &Choice| c.contributes.iter().map(Formula::text).collect::<Vec<_>>();
    let equal = a.meant == b.meant && said(a) == said(b);
    let both = match (a.text == b.text, a.definition == b.definition) {
        (true, _) => vec![a.text.clone()],
        (false, true) => vec![a.spelled_out.clone()],
        (false, false) => vec![a.spelled_out.clone(), b.spelled_out.clone()],
    };
    let side = |c: &Choice| Side::text(vec![c.text.clone()]);
    Row { title: a.clause, equal, sides: [side(a), side(b)], both: Side::text(both) }
}

fn formulas(title: &'static str, a: &Document, b: &Document, of: impl Fn(&Document) -> Vec<Formula>) -> Row {
    let side = |d: &Document| Side { text: Vec::new(), formulas: of(d) };
    let mut row = Row::new(title, side(a), side(b));
    if !row.equal {
        let [a, b] = &mut row.sides;
        let (before, after) = (a.formulas.clone(), b.formulas.clone());
        mark(&mut a.formulas, &after);
        mark(&mut b.formulas, &before);
    }
    row
}

/// Marks what a formula has and its counterpart has not: the one of the same left side, else the one in its place, whose
/// left side differs then. Without any the whole is marked.
fn mark(formulas: &mut [Formula], others: &[Formula]) {
    let own: Vec<Math> = formulas.iter().map(|f| f.left.clone()).collect();
    for (n, f) in formulas.iter_mut().enumerate() {
        let same = others.iter().find(|o| o.left == f.left);
        let other = same.or_else(|| others.get(n).filter(|o| !own.contains(&o.left)));
        f.right = match other {
            Some(o) => marked(&f.right, &o.right),
            None => Math::Marked(Box::new(f.right.clone())),
        };
        if same.is_none() {
            f.left = Math::Marked(Box::new(f.left.clone()));
        }
    }
}

/// The formula with every summand marked that the other one has not got.
fn marked(math: &Math, other: &Math) -> Math {
    if math == other {
        return math.clone();
    }
    let mut left = other.summands();
    let mut parts = Vec::new();
    let mut shared = false;
    for (minus, part) in math.summands() {
        match left.iter().position(|o| *o == (minus, part.clone())) {
            Some(at) => {
                left.remove(at);
                shared = true;
                parts.push((minus, part));
            }
            None => parts.push((minus, Math::Marked(Box::new(part)))),
        }
    }
    match (shared, parts.as_slice()) {
        (false, _) => Math::Marked(Box::new(math.clone())),
        (true, [(false, only)]) => only.clone(),
        (true, _) => Math::Sum(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{named, sum};

    #[test]
    fn only_the_summands_that_differ_are_marked() {
        let (a, b, c) = (named("a"), named("b"), named("c"));
        let one = sum([a.clone(), b]);
        let other = sum([a.clone(), c]);
        let Math::Sum(parts) = marked(&one, &other) else { panic!("a sum stays one") };
        assert_eq!(parts[0], (false, a));
        assert!(matches!(parts[1].1, Math::Marked(_)));
        assert_eq!(marked(&one, &one), one);
    }

    #[test]
    fn a_left_side_is_marked_where_only_it_differs() {
        let formula = |left: &str, right: &str| Formula::new(named(left), named(right));
        let mut formulas = [formula("a", "x"), formula("b", "y")];
        mark(&mut formulas, &[formula("c", "x"), formula("b", "z")]);
        let lines = formulas.map(|f| [matches!(f.left, Math::Marked(_)), matches!(f.right, Math::Marked(_))]);
        assert_eq!(lines, [[true, false], [false, true]]);
    }
}
