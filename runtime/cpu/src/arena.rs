//! Scratch memory: all of a program's scratch arrays in one aligned block.

use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_kernel::{Program, Role};

/// Floats per cache line.
const LINE: usize = 16;

/// One cache line; its alignment is the arena's.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Where each scratch array lies.
pub(crate) struct Layout {
    /// By array: its first line, `None` for arrays that a task brings.
    starts: Vec<Option<usize>>,
    lines: usize,
    name: String,
}

impl Layout {
    pub(crate) fn new(program: &Program) -> Result<Layout, Diagnostic> {
        let mut lines = 0usize;
        let mut starts = Vec::with_capacity(program.arrays.len());
        for array in &program.arrays {
            if array.role != Role::Scratch {
                starts.push(None);
                continue;
            }
            starts.push(Some(lines));
            let own = array.part().map(|n| n.div_ceil(LINE));
            lines = own.and_then(|n| lines.checked_add(n)).ok_or_else(|| too_large(&program.name))?;
        }
        Ok(Layout { starts, lines, name: program.name.clone() })
    }
}

fn too_large(name: &str) -> Diagnostic {
    Diagnostic::new(code::UNSUPPORTED, format!("there is no memory for the scratch arrays of `{name}`"))
        .with_help("use smaller dimensions, or fewer threads")
}

/// Memory for one task at a time.
pub(crate) struct Arena {
    lines: Vec<Line>,
}

impl Arena {
    pub(crate) fn new(layout: &Layout) -> Result<Arena, Diagnostic> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(layout.lines).map_err(|_| too_large(&layout.name))?;
        lines.resize(layout.lines, Line([f32::NAN; LINE]));
        Ok(Arena { lines })
    }

    /// In debug builds, makes whatever an earlier task left unusable.
    pub(crate) fn forget(&mut self) {
        if cfg!(debug_assertions) {
            self.lines.fill(Line([f32::NAN; LINE]));
        }
    }

    /// The address of a scratch array; `None` for other arrays.
    pub(crate) fn address(&mut self, layout: &Layout, array: usize) -> Option<*mut f32> {
        let start = layout.starts.get(array).copied().flatten()?;
        // A line past the end belongs to an array without elements, which verified programs do not have.
        Some(self.lines.get_mut(start..)?.as_mut_ptr().cast())
    }
}
