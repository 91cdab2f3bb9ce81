//! Products in tiles: a workgroup has a square of the result, a lane a small square of that. Slabs of both operands go
//! through workgroup memory; each sum is in the order of its length, so its bits depend on no size of tiles.

use super::write::Finish;
use crate::LANES;
use crate::shader::Emitter;
use miras_base::Diagnostic;
use miras_kernel::{Matrix, Product};

/// Lanes along a side of a tile.
const SIDE: usize = 16;

/// Length of a slab.
const SLAB: usize = 16;

/// Rows and columns from which a tile has 4 x 4 elements for each lane.
const LARGE: usize = 128;

/// The names of the components of a vector.
const COMPONENTS: [char; 4] = ['x', 'y', 'z', 'w'];

/// Whether a product is worth tiles.
pub(super) fn worth(p: &Product) -> bool {
    p.m.min(p.n) >= 4
}

/// How a product is cut into tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    /// Rows and columns of each lane.
    pub each: usize,
    /// Tiles from top to bottom.
    down: usize,
    /// Tiles from left to right.
    across: usize,
}

impl Tiles {
    pub(super) fn of(p: &Product) -> Tiles {
        let each = match p.m.min(p.n) {
            n if n <= SIDE => 1,
            n if n < LARGE => 2,
            _ => 4,
        };
        let side = each * SIDE;
        Tiles { each, down: p.m.div_ceil(side), across: p.n.div_ceil(side) }
    }

    /// Rows, and columns, of a tile.
    pub(super) fn side(self) -> usize {
        self.each * SIDE
    }

    pub(super) fn count(self) -> usize {
        self.down.saturating_mul(self.across)
    }

    /// Turns of loops that a lane makes.
    pub(super) fn turns(p: &Product) -> u64 {
        p.k.saturating_add(p.k.div_ceil(SLAB)).saturating_add(LANES as usize / SIDE) as u64
    }
}

/// The declaration of the workgroup memory for tiles with so many rows for each lane.
pub(crate) fn memory(each: usize) -> [String; 2] {
    ["left", "right"].map(|side| {
        let size = SLAB * SIDE;
        format!("var<workgroup> {side}_{each}: array<{}, {size}>;", vector(each))
    })
}

fn vector(each: usize) -> String {
    match each {
        1 => "f32".into(),
        n => format!("vec{n}<f32>"),
    }
}

impl Emitter<'_> {
    /// The body of a tile's function: `tile` is its number. `finish` takes each sum.
    pub(super) fn tile(&mut self, p: &Product, finish: &Finish) -> Result<(), Diagnostic> {
        let tiles = Tiles::of(p);
        let (each, side) = (tiles.each, tiles.side());
        self.tiles.insert(each);
        let of = |number: String, count: usize| if count == 1 { "0u".to_string() } else { number };
        self.w.line(format!("let top = {};", of(format!("tile / {} * {side}", tiles.across), tiles.down)));
        self.w.line(format!("let edge = {};", of(format!("tile % {} * {side}", tiles.across), tiles.across)));
        for row in 0..each {
            self.w.line(format!("var total_{row} = {}(0.0f);", vector(each)));
        }
        let last = if p.triangular { format!("min({}u, top + {side})", p.k) } else { p.k.to_string() };
        self.w.open(format!("for (var slab = 0u; slab < {last}; slab += {SLAB}u) {{"));
        self.bring(&p.a, "left", "top", [p.m, p.k], side, true)?;
        self.bring(&p.b, "right", "edge", [p.n, p.k], side, false)?;
        self.w.line("workgroupBarrier();");
        self.add_slab(p, each);
        self.w.line("workgroupBarrier();");
        self.w.close();
        self.hand_over(p, each, finish);
        Ok(())
    }

    /// Brings a slab of an operand into workgroup memory: each lane some neighbours across the sum. What lies outside is
    /// taken from the edge, and takes no part.
    fn bring(
        &mut self,
        m: &Matrix,
        name: &str,
        start: &str,
        [count, length]: [usize; 2],
        side: usize,
        rows: bool,
    ) -> Result<(), Diagnostic> {
        let each = side / SIDE;
        let along = if rows { m.col_stride } else { m.row_stride };
        // Neighbouring lanes read neighbouring numbers.
        let (deep, wide) = if along == 1 { ("lane % 16", "lane / 16") } else { ("lane / 16", "lane % 16") };
        self.w.open("{");
        let depth = match length % SLAB {
            0 => format!("slab + {deep}"),
            _ => format!("min(slab + {deep}, {}u)", length - 1),
        };
        self.w.line(format!("let depth = {depth};"));
        let mut parts = Vec::new();
        for at in 0..each {
            let place = match (each, at) {
                (1, _) => format!("{start} + {wide}"),
                (_, 0) => format!("{start} + {wide} * {each}"),
                (_, at) => format!("{start} + {wide} * {each} + {at}"),
            };
            let place = if count % side == 0 { place } else { format!("min({place}, {}u)", count - 1) };
            self.w.line(format!("let at_{at} = {place};"));
            let at = format!("at_{at}");
            let (row, column) = if rows { (at.as_str(), "depth") } else { ("depth", at.as_str()) };
            parts.push(self.matrix(m, row, column)?);
        }
        let value =
            if each == 1 { parts.concat() } else { format!("{}({})", vector(each), parts.join(", ")) };
        let slot = if along == 1 { "lane % 16 * 16 + lane / 16" } else { "lane" };
        self.w.line(format!("{name}_{each}[{slot}] = {value};"));
        self.w.close();
        Ok(())
    }

    /// Adds a slab's products. What is masked is not added, whatever stands there.
    fn add_slab(&mut self, p: &Product, each: usize) {
        let most = if p.k.is_multiple_of(SLAB) {
            format!("{SLAB}")
        } else {
            format!("min({SLAB}u, {}u - slab)", p.k)
        };
        self.w.open(format!("for (var deep = 0u; deep < {most}; deep++) {{"));
        self.w.line(format!("let rows = left_{each}[deep * {SIDE} + lane / {SIDE}];"));
        self.w.line(format!("let columns = right_{each}[deep * {SIDE} + lane % {SIDE}];"));
        for (row, component) in COMPONENTS.into_iter().enumerate().take(each) {
            let own = if each == 1 { "rows".to_string() } else { format!("rows.{component}") };
            let more = format!("total_{row} + {own} * columns");
            self.w.line(match p.triangular {
                false => format!("total_{row} += {own} * columns;"),
                true => {
                    let place = position("top", "lane / 16", each, row);
                    format!("total_{row} = select(total_{row}, {more}, slab + deep <= {place});")
                }
            });
        }
        self.w.close();
    }

    /// Hands every sum of a lane to `finish`: in a loop, so that what follows is compiled once. The sums are copied for
    /// that, and stay in registers while they are added to.
    fn hand_over(&mut self, p: &Product, each: usize, finish: &Finish) {
        let side = each * SIDE;
        // The function that takes the sums turns away what lies outside.
        debug_assert!(finish.checks || (p.m.is_multiple_of(side) && p.n.is_multiple_of(side)));
        if each == 1 {
            self.w.line(finish.call("top + lane / 16", "edge + lane % 16", "total_0"));
            return;
        }
        let all = each * each;
        let of_row = |row| COMPONENTS.into_iter().take(each).map(move |c| format!("total_{row}.{c}"));
        let sums: Vec<String> = (0..each).flat_map(of_row).collect();
        self.w.line(format!("var sums = array<f32, {all}>({});", sums.join(", ")));
        self.w.open(format!("for (var own = 0u; own < {all}; own++) {{"));
        let row = format!("top + lane / 16 * {each} + own / {each}");
        let column = format!("edge + lane % 16 * {each} + own % {each}");
        self.w.line(finish.call(&row, &column, "sums[own]"));
        self.w.close();
    }
}

/// A lane's row or column.
fn position(start: &str, lane: &str, each: usize, at: usize) -> String {
    match (each, at) {
        (1, _) => format!("{start} + {lane}"),
        (_, 0) => format!("{start} + {lane} * {each}"),
        (_, at) => format!("{start} + {lane} * {each} + {at}"),
    }
}

const _: () = assert!(SIDE * SIDE == LANES as usize && SLAB * SIDE == LANES as usize);
