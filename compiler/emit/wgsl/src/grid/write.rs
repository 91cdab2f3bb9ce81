//! Launches as text: an entry point for each, a function for each of its jobs.

use super::chain::POINT;
use super::tile::Tiles;
use super::{Job, Kind, Node, Order};
use crate::fence::{fence, prove};
use crate::shader::Emitter;
use crate::stage::{self, Each, Launches, Pass, Repeat, Stage, Turns};
use crate::{Cost, LANES};
use miras_base::Diagnostic;
use miras_kernel::{ArrayId, Count, Factor, Loop, Order as Direction, Product, Stmt};
use std::collections::BTreeSet;

/// Workgroups of a job for each task, at most; with more to do, each goes on with a later part.
const MOST_GROUPS: usize = 4096;

/// The function that takes each sum of a product.
pub(super) struct Finish {
    name: String,
    /// Whether it turns away elements outside.
    pub checks: bool,
}

impl Finish {
    pub(super) fn call(&self, row: &str, column: &str, sum: &str) -> String {
        format!("{}(index, {row}, {column}, {sum});", self.name)
    }
}

/// The repeated loops of nodes, outer ones first.
pub(crate) fn rounds<'p>(nodes: &[Node<'p>]) -> Vec<&'p Loop> {
    let mut all = Vec::new();
    for node in nodes {
        if let Node::Repeat(l, inside) = node {
            all.push(*l);
            all.extend(rounds(inside));
        }
    }
    all
}

impl<'p> Emitter<'p> {
    /// The passes of a program's launches.
    pub(crate) fn passes(
        &mut self,
        nodes: &[Node<'p>],
        stages: &mut Vec<Stage>,
    ) -> Result<Vec<Pass>, Diagnostic> {
        let mut passes = Vec::new();
        for node in nodes {
            let order = match node {
                Node::Repeat(l, _) if l.count == Count::Tokens => Some(l.order),
                Node::Repeat(..) | Node::Launch(_) | Node::Window(_) => None,
            };
            passes.push(Pass { order, launches: vec![self.node(node, &mut Vec::new(), stages)?] });
        }
        Ok(passes)
    }

    fn node(
        &mut self,
        node: &Node<'p>,
        around: &mut Vec<&'p Loop>,
        stages: &mut Vec<Stage>,
    ) -> Result<Launches, Diagnostic> {
        let stage = match node {
            Node::Launch(jobs) => self.launch(jobs, around)?,
            Node::Window(l) => self.window(l, around)?,
            Node::Repeat(l, inside) => {
                around.push(l);
                let round = self.rounds.iter().position(|v| *v == l.var);
                let round = round.ok_or_else(|| Diagnostic::bug("a repeated loop has no number"))?;
                let body = inside.iter().map(|n| self.node(n, around, stages)).collect::<Result<_, _>>()?;
                around.pop();
                return Ok(Launches::Repeat(Repeat { round, turns: stage::turns(l), body }));
            }
        };
        stages.push(stage);
        Ok(Launches::Stage(stages.len() - 1))
    }

    /// What to call an entry point.
    fn entry_name(&mut self, around: &[&'p Loop]) -> String {
        let wish = match around.last() {
            None => "begin".to_string(),
            Some(l) => self.program.vars.get(l.var.0 as usize).map_or("turn", |v| &v.name).to_string(),
        };
        self.entries += 1;
        self.names.claim(&format!("{wish}_{}", self.entries))
    }

    fn launch(&mut self, jobs: &[Job<'p>], around: &[&'p Loop]) -> Result<Stage, Diagnostic> {
        let entry = self.entry_name(around);
        let mut made = Vec::new();
        for job in jobs {
            made.push(self.job(job, around)?);
        }
        if made.len() > 1 {
            self.w.comment(&format!("{} jobs that have nothing to do with one another", made.len()));
        }
        self.open_entry(&entry, around);
        let mut first = 0;
        for (at, (name, parts)) in made.iter().enumerate() {
            let groups = (*parts).min(MOST_GROUPS);
            let own = if first == 0 { "group.z".to_string() } else { format!("group.z - {first}") };
            let alone = made.len() == 1;
            if !alone {
                let test = format!("if (group.z < {}u) {{", first + groups);
                match at {
                    0 => self.w.open(test),
                    _ if at + 1 == made.len() => self.w.reopen("} else {"),
                    _ => self.w.reopen(format!("}} else {test}")),
                }
            }
            if *parts > groups {
                self.w.open(format!("for (var part = {own}; part < {parts}u; part += {groups}u) {{"));
                self.w.line(format!("{name}(index, part, lane);"));
                self.w.close();
            } else {
                self.w.line(format!("{name}(index, {own}, lane);"));
            }
            first += groups;
        }
        if made.len() > 1 {
            self.w.close();
        }
        self.w.close();
        self.w.line("");
        let parts = u32::try_from(first).map_err(|_| Diagnostic::bug("a launch has 2^32 workgroups"))?;
        let turns = jobs.iter().map(turns).max().unwrap_or(0);
        Ok(Stage {
            entry,
            turns: Turns::Once,
            each: Each::Parts(parts),
            streams: true,
            cost: Cost::fixed(turns),
        })
    }

    /// A long loop, some turns at a time.
    fn window(&mut self, l: &'p Loop, around: &[&'p Loop]) -> Result<Stage, Diagnostic> {
        let entry = self.entry_name(around);
        self.each = Each::Task;
        self.open_entry(&entry, around);
        self.w.line("let task = tasks[index];");
        self.bind_rounds(around);
        self.starts_of_arrays(&stage::arrays_of(&l.body));
        self.shared_loop(l)?;
        self.unbind_rounds(around);
        self.w.close();
        self.w.line("");
        let cost = stage::block(&l.body, LANES as usize);
        Ok(Stage { entry, turns: stage::turns(l), each: Each::Task, streams: true, cost })
    }

    /// Opens an entry point, which ends at once for tasks that are not there or have fewer tokens.
    fn open_entry(&mut self, entry: &str, around: &[&'p Loop]) {
        self.w.line(format!("@compute @workgroup_size({LANES})"));
        self.w.open(format!(
            "fn {entry}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        ));
        self.w.line("let index = group.x + group.y * run.groups;");
        let mut absent = "index >= run.tasks".to_string();
        for l in around.iter().filter(|l| l.count == Count::Tokens) {
            absent += &format!(" || run.{} >= tasks[index].tokens", self.round(l));
        }
        self.w.open(format!("if ({absent}) {{"));
        self.w.line("return;");
        self.w.close();
    }

    /// The uniform field of a repeated loop's turn.
    fn round(&self, l: &Loop) -> String {
        let at = self.rounds.iter().position(|v| *v == l.var);
        at.and_then(|at| self.layout.rounds.get(at)).cloned().unwrap_or_default()
    }

    fn bind_rounds(&mut self, around: &[&'p Loop]) {
        for l in around {
            let field = self.round(l);
            let name = self.bind(l.var);
            let all = self.count(l.count);
            self.w.line(match l.order {
                Direction::Ascending => format!("let {name} = run.{field};"),
                Direction::Descending => format!("let {name} = {all} - 1 - run.{field};"),
            });
        }
    }

    fn unbind_rounds(&mut self, around: &[&'p Loop]) {
        around.iter().for_each(|l| self.unbind(l.var));
    }

    /// The function of a job, by name, and how many workgroups it is for.
    fn job(&mut self, job: &Job<'p>, around: &[&'p Loop]) -> Result<(String, usize), Diagnostic> {
        let name = self.job_name(job);
        let parts = match job.kind {
            Kind::Tiles(p, order) => {
                let finish = self.finish_function(&name, p, order, job, around)?;
                self.comment_product(p);
                self.open_job(&name, "tile", around, &[p.a.start.array, p.b.start.array].into());
                self.tile(p, &finish)?;
                Tiles::of(p).count()
            }
            Kind::Points(count) => {
                let arrays = stage::arrays_of(job.statements.iter().copied());
                self.open_job(&name, "part", around, &arrays);
                self.w.line(format!("let {POINT} = part * {LANES} + lane;"));
                if count % LANES as usize != 0 {
                    self.w.open(format!("if ({POINT} >= {count}) {{"));
                    self.w.line("return;");
                    self.w.close();
                }
                self.chain_all(None, &job.statements)?;
                count.div_ceil(LANES as usize)
            }
            Kind::Together => {
                let arrays = stage::arrays_of(job.statements.iter().copied());
                self.open_job(&name, "part", around, &arrays);
                self.each = Each::Task;
                let steps = fence(job.statements.iter().copied());
                prove(self.program, &steps)?;
                self.steps(&steps)?;
                1
            }
        };
        self.unbind_rounds(around);
        self.w.close();
        self.w.line("");
        Ok((name, parts))
    }

    /// The function that takes a product's sums, with what follows at each element.
    fn finish_function(
        &mut self,
        name: &str,
        p: &Product,
        order: Order,
        job: &Job<'p>,
        around: &[&'p Loop],
    ) -> Result<Finish, Diagnostic> {
        let finish = self.names.claim(&format!("{name}_element"));
        let side = Tiles::of(p).side();
        let checks = !p.m.is_multiple_of(side) || !p.n.is_multiple_of(side);
        let [row, column, sum] = ["row", "column", "sum"].map(|n| self.names.claim(n));
        self.w.open(format!("fn {finish}(index: u32, {row}: u32, {column}: u32, {sum}: f32) {{"));
        if checks {
            self.w.open(format!("if ({row} >= {} || {column} >= {}) {{", p.m, p.n));
            self.w.line("return;");
            self.w.close();
        }
        let mut arrays = stage::arrays_of(job.statements.iter().copied());
        arrays.insert(p.c.start.array);
        arrays.extend([&p.alpha, &p.beta].into_iter().filter_map(|f| match f {
            Factor::Const(_) => None,
            Factor::Load(access) => Some(access.array),
        }));
        self.prologue(around, &arrays);
        let point = match order {
            Order::Rows => format!("{row} * {} + {column}", p.n),
            Order::Columns => format!("{column} * {} + {row}", p.m),
        };
        if !job.statements.is_empty() {
            self.w.line(format!("let {POINT} = {point};"));
        }
        self.chain_all(Some((p, [&row, &column, &sum])), &job.statements)?;
        self.unbind_rounds(around);
        [row, column, sum].iter().for_each(|name| self.names.release(name));
        self.w.close();
        self.w.line("");
        Ok(Finish { name: finish, checks })
    }

    fn open_job(&mut self, name: &str, part: &str, around: &[&'p Loop], arrays: &BTreeSet<ArrayId>) {
        self.w.open(format!("fn {name}(index: u32, {part}: u32, lane: u32) {{"));
        self.prologue(around, arrays);
    }

    fn prologue(&mut self, around: &[&'p Loop], arrays: &BTreeSet<ArrayId>) {
        self.w.line("let task = tasks[index];");
        self.bind_rounds(around);
        self.starts_of_arrays(arrays);
    }

    /// A job is called like what it stores last.
    fn job_name(&mut self, job: &Job<'p>) -> String {
        let stored = |s: &Stmt| crate::fence::touched_within(s).writes.into_iter().next_back();
        let array = match (job.statements.iter().rev().find_map(|s| stored(s)), job.kind) {
            (Some(array), _) => Some(array),
            (None, Kind::Tiles(p, _)) => Some(p.c.start.array),
            (None, Kind::Points(_) | Kind::Together) => None,
        };
        let place = array.and_then(|a| self.layout.places.get(a.0 as usize));
        let wish = place.map_or("job".to_string(), |p| p.name.clone());
        self.names.claim(&format!("make_{wish}"))
    }

    fn comment_product(&mut self, p: &Product) {
        let name = |array: ArrayId| self.program.array(array).map_or("?", |a| a.name.as_str());
        let [c, a, b] = [p.c.start.array, p.a.start.array, p.b.start.array].map(name);
        let lower = if p.triangular { "lower " } else { "" };
        let side = Tiles::of(p).side();
        let text = format!("{c} = {lower}{a} @ {b}, [{}, {}] in tiles of {side} by {side}", p.m, p.n);
        self.w.comment(&p.equation);
        self.w.comment(&text);
    }
}

/// Turns of loops that a lane makes for a job.
pub(crate) fn turns(job: &Job<'_>) -> u64 {
    let each: u64 = job.statements.iter().map(|s| alone(s)).fold(0, u64::saturating_add);
    let often = |parts: usize| parts.div_ceil(MOST_GROUPS) as u64;
    match job.kind {
        Kind::Tiles(p, _) => {
            let (tiles, own) = (Tiles::of(p), Tiles::turns(p));
            let elements = (tiles.each * tiles.each) as u64;
            own.saturating_add(each.saturating_mul(elements)).saturating_mul(often(tiles.count()))
        }
        Kind::Points(count) => {
            let often = often(count.div_ceil(LANES as usize));
            each.saturating_add(u64::from(often > 1)).saturating_mul(often)
        }
        Kind::Together => {
            let all = job
                .statements
                .iter()
                .map(|s| stage::block(std::slice::from_ref(*s), LANES as usize).at(0, 0));
            all.fold(0, u64::saturating_add)
        }
    }
}

/// Turns of loops at one point of a statement.
fn alone(stmt: &Stmt) -> u64 {
    match stmt {
        Stmt::Nest(n) => stage::sums(n).at(0, 0),
        Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) | Stmt::Loop(_) => 0,
    }
}
