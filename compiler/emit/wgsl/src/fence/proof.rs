//! The proof: every path through a body is followed, loops until nothing new is touched, and no phase may meet
//! another since the last barrier.

use super::{Step, Touched, touched};
use miras_base::Diagnostic;
use miras_kernel::{Count, Program};

/// Refuses a body in which two phases could meet.
pub(crate) fn prove(program: &Program, steps: &[Step<'_>]) -> Result<(), Diagnostic> {
    follow(program, steps, Touched::default()).map(|_| ())
}

/// What may have been touched since the last barrier, after the steps.
fn follow(program: &Program, steps: &[Step<'_>], mut since: Touched) -> Result<Touched, Diagnostic> {
    for step in steps {
        match step {
            Step::Barrier => since = Touched::default(),
            Step::Phase(stmt) => {
                let touched = touched(stmt);
                if let Some(array) = since.conflict(&touched) {
                    let name = program.array(array).map_or("?", |a| &a.name);
                    let what = format!("two phases of `{}` meet in `{name}` without a barrier", program.name);
                    return Err(Diagnostic::bug(what));
                }
                since.add(&touched);
            }
            Step::Loop(l, body) => {
                // The state at the loop's head: what came before it, or any number of turns.
                let mut head = since;
                let after = loop {
                    let after = follow(program, body, head.clone())?;
                    let before = head.clone();
                    head.add(&after);
                    if head == before {
                        break after;
                    }
                };
                since = match l.count {
                    Count::Const(_) => after,
                    Count::Tokens | Count::Past => head,
                };
            }
        }
    }
    Ok(since)
}

#[cfg(test)]
mod tests {
    use super::super::{Step, fence};
    use super::prove;
    use miras_kernel::{Access, ArrayId, Copy, Count, Loop, Order, Program, Role, Stmt};

    fn copy(src: ArrayId, dst: ArrayId) -> Stmt {
        Stmt::Copy(Copy { equation: String::new(), src: Access::start(src), dst: Access::start(dst), len: 1 })
    }

    fn program() -> (Program, [ArrayId; 3]) {
        let mut p = Program::new("fences");
        let arrays = ["a", "b", "c"].map(|n| p.add_array(n, Role::Scratch, &[1], ""));
        (p, arrays)
    }

    #[test]
    fn barriers_stand_where_phases_meet_and_nowhere_else() {
        let (p, [a, b, c]) = program();
        let body = [copy(a, b), copy(a, c), copy(b, c), copy(a, b)];
        let steps = fence(&body);
        let shape: String =
            steps.iter().map(|s| if matches!(s, Step::Barrier) { '|' } else { '.' }).collect();
        assert_eq!(shape, "..|.|.");
        prove(&p, &steps).unwrap();
    }

    #[test]
    fn a_loop_that_may_not_turn_leaves_open_what_came_before() {
        let (mut p, [a, b, c]) = program();
        let var = p.add_var("t");
        let turn = vec![copy(a, c)];
        for (count, barriers) in [(Count::Tokens, 1), (Count::Const(2), 0)] {
            let repeat = Loop { var, count, order: Order::Ascending, body: turn.clone() };
            let body = [copy(a, b), Stmt::Loop(repeat), copy(b, a)];
            let steps = fence(&body);
            prove(&p, &steps).unwrap();
            assert_eq!(steps.iter().filter(|s| matches!(s, Step::Barrier)).count(), barriers);
        }
    }

    #[test]
    fn every_barrier_taken_away_is_missed() {
        let (mut p, [a, b, c]) = program();
        let var = p.add_var("t");
        let turn = vec![copy(a, b), copy(b, c), copy(c, a)];
        let repeat = Loop { var, count: Count::Tokens, order: Order::Ascending, body: turn };
        let body = [copy(a, b), Stmt::Loop(repeat), copy(b, c)];
        prove(&p, &fence(&body)).unwrap();
        let mut tried = 0;
        while let Some(steps) = without(fence(&body), tried) {
            prove(&p, &steps).expect_err("a barrier is needed here");
            tried += 1;
        }
        assert_eq!(tried, 4);
    }

    /// The steps without the n-th barrier.
    fn without(steps: Vec<Step<'_>>, at: usize) -> Option<Vec<Step<'_>>> {
        fn cut<'p>(steps: Vec<Step<'p>>, left: &mut isize) -> Vec<Step<'p>> {
            let mut kept = Vec::new();
            for step in steps {
                match step {
                    Step::Barrier => {
                        if *left != 0 {
                            kept.push(Step::Barrier);
                        }
                        *left -= 1;
                    }
                    Step::Loop(l, body) => kept.push(Step::Loop(l, cut(body, left))),
                    Step::Phase(s) => kept.push(Step::Phase(s)),
                }
            }
            kept
        }
        let mut left = at as isize;
        let steps = cut(steps, &mut left);
        (left < 0).then_some(steps)
    }
}
