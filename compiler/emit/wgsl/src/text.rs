//! Indented text, and pieces of expressions with their binding strength.

use std::fmt::Write as _;

/// Lines under construction.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.is_empty() {
            self.text.push('\n');
        } else {
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "{:width$}{line}", "", width = 4 * self.depth);
        }
    }

    /// A line that opens a block.
    pub(crate) fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// A line that closes a block and opens the next.
    pub(crate) fn reopen(&mut self, line: impl AsRef<str>) {
        self.depth = self.depth.saturating_sub(1);
        self.open(line);
    }

    pub(crate) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// A comment, if there is anything to say; always one line, whatever the text holds.
    pub(crate) fn comment(&mut self, text: &str) {
        let text = one_line(text);
        if !text.is_empty() {
            self.line(format!("// {text}"));
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// The text without anything that WGSL would take for the end of a line.
pub(crate) fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let text: String = text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect();
    text.trim().to_string()
}

/// How strongly an expression's text holds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// Needs parentheses inside any operation.
    Loose,
    /// A sum or difference.
    Sum,
    /// A product or quotient.
    Product,
    /// A name, call, element or literal.
    Atom,
}

/// A piece of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub text: String,
    pub strength: Strength,
    /// How many operations are written into one another.
    pub depth: u32,
}

impl Piece {
    pub(crate) fn atom(text: impl Into<String>) -> Piece {
        Piece { text: text.into(), strength: Strength::Atom, depth: 0 }
    }

    /// The text for a place that wants at least this strength.
    pub(crate) fn at(&self, least: Strength) -> String {
        if self.strength >= least { self.text.clone() } else { format!("({})", self.text) }
    }

    /// `f(a, b, ...)`
    pub(crate) fn call(function: &str, args: &[&Piece]) -> Piece {
        let list: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        Piece {
            text: format!("{function}({})", list.join(", ")),
            strength: Strength::Atom,
            depth: depth(args),
        }
    }

    /// `a op b`, grouped exactly as given.
    pub(crate) fn binary(operator: &str, a: &Piece, b: &Piece) -> Piece {
        let strength = match operator {
            "+" | "-" => Strength::Sum,
            "*" | "/" => Strength::Product,
            _ => Strength::Loose,
        };
        let (left, right) = match strength {
            Strength::Sum => (Strength::Sum, Strength::Product),
            Strength::Product => (Strength::Product, Strength::Atom),
            Strength::Loose | Strength::Atom => (Strength::Atom, Strength::Atom),
        };
        Piece { text: format!("{} {operator} {}", a.at(left), b.at(right)), strength, depth: depth(&[a, b]) }
    }

    /// `-a`
    pub(crate) fn negated(a: &Piece) -> Piece {
        Piece { text: format!("-{}", a.at(Strength::Atom)), strength: Strength::Loose, depth: depth(&[a]) }
    }

    /// `if a cmp b then yes else no`
    pub(crate) fn select(cmp: miras_base::scalar::Cmp, [a, b, yes, no]: [&Piece; 4]) -> Piece {
        let test = format!("{} {} {}", a.at(Strength::Sum), comparison(cmp), b.at(Strength::Sum));
        let text = format!("select({}, {}, {test})", no.text, yes.text);
        Piece { text, strength: Strength::Atom, depth: depth(&[a, b, yes, no]) }
    }

    /// Whether it is short enough to be written into another.
    pub(crate) fn short(&self) -> bool {
        self.depth <= 4 && self.text.len() <= 72
    }
}

fn depth(parts: &[&Piece]) -> u32 {
    1 + parts.iter().map(|p| p.depth).max().unwrap_or(0)
}

fn comparison(cmp: miras_base::scalar::Cmp) -> &'static str {
    use miras_base::scalar::Cmp;
    match cmp {
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
    }
}

/// A float32 literal; numbers beyond float32 are its largest.
pub(crate) fn float(c: f32) -> Piece {
    let c = c.clamp(f32::MIN, f32::MAX);
    let strength = if c.is_sign_negative() { Strength::Loose } else { Strength::Atom };
    let text = if c.abs() == f32::MAX {
        // The shortest digits of the largest float32 lie above it, which browsers refuse.
        format!("{}3.4028234663852886e38f", if c < 0.0 { "-" } else { "" })
    } else {
        format!("{c:?}f")
    };
    Piece { text, strength, depth: 0 }
}

/// An int32 literal.
pub(crate) fn whole(c: i32) -> Piece {
    let strength = if c < 0 { Strength::Loose } else { Strength::Atom };
    Piece { text: c.to_string(), strength, depth: 0 }
}
