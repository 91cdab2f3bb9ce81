//! How a nest is run: the order of its loops, what is computed at which depth, and where vectors are used.
//!
//! All of it follows from the access pattern alone, never from extents, so that the order of a sum does not
//! change with other sizes.

use miras_kernel::{Access, Axis, Expr, Nest, ReductionId, VarId};

/// The plan of one nest.
pub(crate) struct Plan {
    /// The nest's loops in the order they are run, outermost first.
    pub loops: Vec<Axis>,
    /// Whether lanes run along the innermost loop.
    pub lanes: bool,
    /// By expression: where it is computed, `None` where nothing needs it.
    pub places: Vec<Option<Place>>,
    /// By reduction.
    pub reductions: Vec<Reducing>,
}

/// Where an expression is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Inside so many of the nest's loops.
    Point(usize),
    /// Inside so many of a reduction's loops, at least one.
    Within(ReductionId, usize),
}

/// How a reduction is run.
pub(crate) struct Reducing {
    /// Inside how many of the nest's loops.
    pub depth: usize,
    /// Whether lanes run along its innermost loop, with partial sums; otherwise it runs in order (in each
    /// lane of the nest's, if there are any).
    pub lanes: bool,
}

/// The plan of a verified nest; `None` if it is not one.
pub(crate) fn plan(nest: &Nest) -> Option<Plan> {
    let owners = nest.owners()?;
    let (loops, lanes) = order(nest);
    let mut depths: Vec<usize> = Vec::with_capacity(nest.exprs.len());
    for expr in &nest.exprs {
        let own = match expr {
            Expr::Reduced(r) => depths[nest.reductions[r.0 as usize].value.0 as usize],
            Expr::Load(_) | Expr::Index(_) => own_depth(expr, &loops),
            Expr::Const(_) | Expr::Scalar(_) | Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select { .. } => 0,
        };
        let below = expr.operands().iter().map(|o| depths[o.0 as usize]).max().unwrap_or(0);
        depths.push(own.max(below));
    }
    let reductions = nest
        .reductions
        .iter()
        .map(|r| {
            let depth = depths[r.value.0 as usize];
            let inside_lanes = lanes && depth == loops.len();
            let innermost = r.loops.last().map(|a| a.var);
            let along =
                innermost.is_some_and(|v| loads(nest).all(|a| (0..=1).contains(&a.offset.coefficient(v))));
            Reducing { depth, lanes: along && !inside_lanes }
        })
        .collect();
    let places = places(nest, &owners, &depths);
    Some(Plan { loops, lanes, places, reductions })
}

/// The loops with the one that lanes can run along, if any, moved innermost.
fn order(nest: &Nest) -> (Vec<Axis>, bool) {
    let unit = |v: VarId| {
        let stored = nest.stores.iter().all(|s| s.target.offset.coefficient(v) == 1);
        stored && loads(nest).all(|a| (0..=1).contains(&a.offset.coefficient(v)))
    };
    let mut loops = nest.loops.clone();
    match loops.iter().rposition(|a| unit(a.var)) {
        Some(at) => {
            let axis = loops.remove(at);
            loops.push(axis);
            (loops, true)
        }
        None => (loops, false),
    }
}

fn loads(nest: &Nest) -> impl Iterator<Item = &Access> {
    nest.exprs.iter().filter_map(|e| match e {
        Expr::Load(access) => Some(access),
        Expr::Const(_)
        | Expr::Index(_)
        | Expr::Scalar(_)
        | Expr::Fn1(..)
        | Expr::Fn2(..)
        | Expr::Select { .. }
        | Expr::Reduced(_) => None,
    })
}

fn places(nest: &Nest, owners: &[Option<ReductionId>], depths: &[usize]) -> Vec<Option<Place>> {
    let needed = needed(nest);
    let mut inner = vec![0usize; nest.exprs.len()];
    let mut places = Vec::with_capacity(nest.exprs.len());
    for (at, expr) in nest.exprs.iter().enumerate() {
        let Some(r) = owners[at] else {
            places.push(needed[at].then_some(Place::Point(depths[at])));
            continue;
        };
        let own = own_depth(expr, &nest.reductions[r.0 as usize].loops);
        let below = expr.operands().iter().map(|o| inner[o.0 as usize]).max().unwrap_or(0);
        inner[at] = own.max(below);
        places.push(needed[at].then_some(Place::Within(r, inner[at])));
    }
    places
}

/// The innermost of the loops that the expression itself mentions, from 1; 0 where it mentions none.
fn own_depth(expr: &Expr, loops: &[Axis]) -> usize {
    let depth_of = |var: VarId| loops.iter().position(|a| a.var == var).map_or(0, |p| p + 1);
    match expr {
        Expr::Load(access) => access.offset.terms().map(|(v, _)| depth_of(v)).max().unwrap_or(0),
        Expr::Index(var) => depth_of(*var),
        Expr::Const(_)
        | Expr::Scalar(_)
        | Expr::Reduced(_)
        | Expr::Fn1(..)
        | Expr::Fn2(..)
        | Expr::Select { .. } => 0,
    }
}

/// Which expressions some store depends on.
fn needed(nest: &Nest) -> Vec<bool> {
    let mut needed = vec![false; nest.exprs.len()];
    for store in &nest.stores {
        needed[store.value.0 as usize] = true;
    }
    for (at, expr) in nest.exprs.iter().enumerate().rev() {
        if !needed[at] {
            continue;
        }
        for operand in expr.operands() {
            needed[operand.0 as usize] = true;
        }
        if let Expr::Reduced(r) = expr {
            needed[nest.reductions[r.0 as usize].value.0 as usize] = true;
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_base::scalar::Fn2;
    use miras_kernel::{Affine, Op, Program};

    /// `y[i] = sum_j w[i * row + j * col] x[j]`
    fn product(row: i64, col: i64) -> Nest {
        let mut p = Program::new("product");
        let [w, x, y] = ["w", "x", "y"].map(|n| p.add_array(n, miras_kernel::Role::Scratch, &[64], ""));
        let (i, j) = (p.axis("i", 8), p.axis("j", 8));
        let mut n = Nest::new("y = w x", vec![i]);
        let a = n.load(w, Affine::term(row, i.var).plus(col, j.var));
        let b = n.load(x, Affine::term(1, j.var));
        let ab = n.fn2(Fn2::Mul, a, b);
        let sum = n.reduce(Op::Sum, vec![j], ab);
        n.store(y, Affine::term(1, i.var), sum);
        n
    }

    #[test]
    fn lanes_run_where_memory_is_contiguous() {
        let rows = plan(&product(8, 1)).unwrap();
        assert!(!rows.lanes && rows.reductions[0].lanes);
        let columns = plan(&product(1, 8)).unwrap();
        assert!(columns.lanes && !columns.reductions[0].lanes);
        let neither = plan(&product(2, 16)).unwrap();
        assert!(!neither.lanes && !neither.reductions[0].lanes);
    }

    #[test]
    fn each_expression_is_computed_as_far_out_as_it_can_be() {
        let plan = plan(&product(1, 8)).unwrap();
        let r = ReductionId(0);
        let (w, x, product, sum) =
            (Place::Within(r, 1), Place::Within(r, 1), Place::Within(r, 1), Place::Point(1));
        assert_eq!(plan.places, [w, x, product, sum].map(Some));
        assert_eq!(plan.reductions[0].depth, 1);
    }

    #[test]
    fn a_loop_with_unit_stride_moves_innermost() {
        let mut p = Program::new("transpose");
        let [a, b] = ["a", "b"].map(|n| p.add_array(n, miras_kernel::Role::Scratch, &[4, 8], ""));
        let (i, j) = (p.axis("i", 8), p.axis("j", 4));
        let mut n = Nest::new("b = 2 a", vec![i, j]);
        let place = Affine::term(1, i.var).plus(8, j.var);
        let value = n.load(a, place.clone());
        let two = n.constant(2.0);
        let row = n.load(a, Affine::term(8, j.var));
        let _unused = n.fn2(Fn2::Add, two, row);
        let twice = n.fn2(Fn2::Mul, two, value);
        n.store(b, place, twice);
        let plan = plan(&n).unwrap();
        assert!(plan.lanes);
        assert_eq!(plan.loops, [j, i]);
        assert_eq!(plan.places[3], None, "what no store needs is not computed");
        assert_eq!(plan.places[1], Some(Place::Point(0)));
    }
}
