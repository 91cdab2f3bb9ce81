//! Which elements a statement touches at each of its points: two statements may share a launch, an invocation for each
//! point, where whatever one writes the other touches at the same point only.

use miras_kernel::{Access, Affine, ArrayId, Axis, Expr, Factor, Matrix, Nest, Product, Stmt};

/// An element as a function of a point's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    array: ArrayId,
    /// What does not depend on the point.
    start: Affine,
    /// The point's number in mixed digits, the last one fastest: how many values a digit has, and elements from one to
    /// the next. No two neighbours could be one digit, so equal functions are equal here.
    digits: Vec<(usize, i64)>,
}

/// What a statement touches at a point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touch {
    writes: Vec<Element>,
    /// Arrays that are read; `None` where more than one element may be.
    reads: Vec<(ArrayId, Option<Element>)>,
}

/// The points of a product in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Row after row.
    Rows,
    /// Column after column.
    Columns,
}

impl Touch {
    /// What a statement touches; nothing for loops.
    pub(crate) fn of(stmt: &Stmt) -> Touch {
        match stmt {
            Stmt::Nest(n) => of_nest(n),
            Stmt::Apply(a) => run(&a.src, &a.dst, a.len),
            Stmt::Copy(c) => run(&c.src, &c.dst, c.len),
            Stmt::Product(p) => Touch::of_product(p, Order::Rows),
            Stmt::Loop(_) => Touch::default(),
        }
    }

    /// What a product touches, a point being an element of its result.
    pub(crate) fn of_product(p: &Product, order: Order) -> Touch {
        let result = of_matrix(&p.c, p, order);
        let factor = |f: &Factor| match f {
            Factor::Const(_) => None,
            Factor::Load(access) => Some((access.array, None)),
        };
        let mut reads = vec![(p.a.start.array, None), (p.b.start.array, None)];
        reads.extend([&p.alpha, &p.beta].into_iter().filter_map(factor));
        if p.beta != Factor::Const(0.0) {
            reads.push((result.array, Some(result.clone())));
        }
        Touch { writes: vec![result], reads }
    }

    /// Whether a statement may follow this one at each point by itself, not waiting for other points.
    pub(crate) fn meets_at_points_only(&self, after: &Touch) -> bool {
        let written = |w: &Element, t: &Touch| {
            let read = t.reads.iter().filter(|(array, _)| *array == w.array);
            let rewritten = t.writes.iter().filter(|e| e.array == w.array);
            read.map(|(_, e)| e.as_ref()).chain(rewritten.map(Some)).all(|e| e == Some(w))
        };
        self.writes.iter().all(|w| written(w, after)) && after.writes.iter().all(|w| written(w, self))
    }

    /// Whether each of its stores is to an array of its own.
    pub(crate) fn stores_once(&self) -> bool {
        let again = |(at, w): (usize, &Element)| self.writes[..at].iter().any(|e| e.array == w.array);
        !self.writes.iter().enumerate().any(again)
    }
}

/// How many points a statement has; `None` for loops.
pub(crate) fn count(stmt: &Stmt) -> Option<usize> {
    match stmt {
        Stmt::Nest(n) => Some(crate::lanes::extent(&n.loops)),
        Stmt::Apply(a) => Some(a.len),
        Stmt::Copy(c) => Some(c.len),
        Stmt::Product(p) => Some(p.m.saturating_mul(p.n)),
        Stmt::Loop(_) => None,
    }
}

fn of_nest(nest: &Nest) -> Touch {
    let inner = |access: &Access| {
        nest.reductions.iter().flat_map(|r| &r.loops).any(|a| access.offset.coefficient(a.var) != 0)
    };
    let read = |expr: &Expr| match expr {
        Expr::Load(access) => {
            let one = (!inner(access)).then(|| element(access, &nest.loops));
            Some((access.array, one))
        }
        Expr::Const(_)
        | Expr::Index(_)
        | Expr::Scalar(_)
        | Expr::Fn1(..)
        | Expr::Fn2(..)
        | Expr::Select { .. }
        | Expr::Reduced(_) => None,
    };
    Touch {
        writes: nest.stores.iter().map(|s| element(&s.target, &nest.loops)).collect(),
        reads: nest.exprs.iter().filter_map(read).collect(),
    }
}

fn run(src: &Access, dst: &Access, len: usize) -> Touch {
    let one = |access: &Access| Element {
        array: access.array,
        start: access.offset.clone(),
        digits: canonical([(len, 1)].into_iter()),
    };
    Touch { writes: vec![one(dst)], reads: vec![(src.array, Some(one(src)))] }
}

fn element(access: &Access, loops: &[Axis]) -> Element {
    let coefficient = |axis: &Axis| access.offset.coefficient(axis.var);
    let start = loops.iter().fold(access.offset.clone(), |a, axis| a.plus(-coefficient(axis), axis.var));
    let digits = canonical(loops.iter().map(|axis| (axis.extent, coefficient(axis))));
    Element { array: access.array, start, digits }
}

fn of_matrix(c: &Matrix, p: &Product, order: Order) -> Element {
    let stride = |s: usize| i64::try_from(s).unwrap_or(i64::MAX);
    let (rows, columns) = ((p.m, stride(c.row_stride)), (p.n, stride(c.col_stride)));
    let digits = match order {
        Order::Rows => [rows, columns],
        Order::Columns => [columns, rows],
    };
    Element { array: c.start.array, start: c.start.offset.clone(), digits: canonical(digits.into_iter()) }
}

/// Digits with neighbours joined that count as one.
fn canonical(digits: impl Iterator<Item = (usize, i64)>) -> Vec<(usize, i64)> {
    let mut all: Vec<(usize, i64)> = Vec::new();
    for (values, step) in digits.filter(|(values, _)| *values > 1) {
        match all.last_mut() {
            Some((outer, by))
                if i64::try_from(values).ok().and_then(|n| step.checked_mul(n)) == Some(*by) =>
            {
                *outer = outer.saturating_mul(values);
                *by = step;
            }
            Some(_) | None => all.push((values, step)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_kernel::{Copy, Program, Role};

    #[test]
    fn equal_functions_of_a_point_are_equal_however_they_are_counted() {
        let digits = |all: &[(usize, i64)]| canonical(all.iter().copied());
        assert_eq!(digits(&[(4, 4096), (16, 256), (256, 1)]), digits(&[(16384, 1)]));
        assert_eq!(digits(&[(4, 0), (16, 0), (256, 1)]), [(64, 0), (256, 1)]);
        assert_ne!(digits(&[(4, 1), (16, 4)]), digits(&[(64, 1)]));
        assert_eq!(digits(&[(1, 7), (3, 2), (1, 9)]), [(3, 2)]);
    }

    #[test]
    fn statements_share_points_where_they_meet_at_the_same_element() {
        let mut p = Program::new("points");
        let [a, b, c] = ["a", "b", "c"].map(|n| p.add_array(n, Role::Scratch, &[4], ""));
        let copy = |src, from, dst, to| {
            let at = |array, offset| Access::new(array, Affine::constant(offset));
            Touch::of(&Stmt::Copy(Copy {
                equation: String::new(),
                src: at(src, from),
                dst: at(dst, to),
                len: 2,
            }))
        };
        let first = copy(a, 0, b, 0);
        assert!(first.meets_at_points_only(&copy(b, 0, c, 2)));
        assert!(!first.meets_at_points_only(&copy(b, 1, c, 2)), "another point's element is read");
        assert!(!first.meets_at_points_only(&copy(c, 0, a, 1)), "another point's element is overwritten");
        assert!(first.meets_at_points_only(&copy(c, 0, a, 0)));
        assert!(!first.meets_at_points_only(&copy(c, 0, b, 1)));
    }
}
