//! What each token is for: where statements start, what braces hold, which minus has one operand.

use crate::lex::{self, Token, TokenKind};

/// What a pair of brackets holds, or the file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Statements: the file, a definition, a layer, a `for`.
    Statements,
    /// Statements and a value: the braces of an expression.
    Block,
    /// Words: `{previous, retained}`.
    Words,
    /// Anything between `( )` or `[ ]`.
    Inside,
}

/// Facts about one token.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// It is the first of a statement, or of a block's value.
    pub starts: bool,
    /// A comment between statements.
    pub between: bool,
    /// A `;` is missing behind it.
    pub lacks_semicolon: bool,
    /// A minus with one operand.
    pub unary: bool,
    /// The `[` of a shape that follows a kind.
    pub shape: bool,
    /// For a bracket: what the pair holds.
    pub holds: Option<Holds>,
    /// For an opening bracket: the closing one.
    pub close: usize,
}

/// The facts of all tokens of a text that follows the grammar.
pub struct Outline {
    facts: Vec<Facts>,
}

impl Outline {
    pub fn new(text: &str, tokens: &[Token]) -> Outline {
        let file = Level::new(Holds::Statements, 0);
        let facts = vec![Facts::default(); tokens.len()];
        let mut reader = Reader { text, tokens, facts, levels: vec![file], before: None };
        for at in 0..tokens.len() {
            reader.step(at);
        }
        if reader.levels.last().is_some_and(|file| !file.fresh) {
            reader.end_statement();
        }
        Outline { facts: reader.facts }
    }

    pub fn of(&self, at: usize) -> Facts {
        self.facts.get(at).copied().unwrap_or_default()
    }
}

/// An open pair of brackets, and how far the statement in it has come.
struct Level {
    holds: Holds,
    open: usize,
    fresh: bool,
    declares: bool,
    colon: bool,
    equals: bool,
}

impl Level {
    fn new(holds: Holds, open: usize) -> Self {
        Level { holds, open, fresh: true, declares: false, colon: false, equals: false }
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    facts: Vec<Facts>,
    levels: Vec<Level>,
    /// The last token that is no comment.
    before: Option<usize>,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| t.text(self.text))
    }

    fn step(&mut self, at: usize) {
        if self.tokens[at].kind == TokenKind::Comment {
            self.facts[at].between = self.levels.last().is_some_and(|level| level.fresh);
            return;
        }
        self.start(at);
        let closing = matches!(self.word(at), ")" | "]" | "}");
        match self.word(at) {
            "(" | "[" => self.open(at, Holds::Inside),
            "{" => self.open(at, self.braces(at)),
            "-" => self.facts[at].unary = !self.after_value(),
            _ if closing => self.close(at),
            mark => {
                let (fresh, colon, equals) = (mark == ";", mark == ":", mark == "=");
                if let Some(level) = self.levels.last_mut() {
                    level.fresh |= fresh;
                    level.colon |= colon;
                    level.equals |= equals;
                }
            }
        }
        self.before = Some(at);
    }

    /// Notes the start of a statement.
    fn start(&mut self, at: usize) {
        let declares = matches!(self.word(at), "weight" | "slow" | "state" | "input" | "trained")
            && self.tokens.get(at + 1).is_some_and(|t| t.kind == TokenKind::Name);
        let closes = self.word(at) == "}";
        let Some(level) = self.levels.last_mut() else {
            return;
        };
        if level.fresh && !closes && matches!(level.holds, Holds::Statements | Holds::Block) {
            *level = Level { fresh: false, declares, ..Level::new(level.holds, level.open) };
            self.facts[at].starts = true;
        }
    }

    fn open(&mut self, at: usize, holds: Holds) {
        let shape = self.levels.last().is_some_and(|l| l.declares && l.colon && !l.equals);
        self.facts[at].shape = shape && self.word(at) == "[";
        self.facts[at].holds = Some(holds);
        self.levels.push(Level::new(holds, at));
    }

    fn close(&mut self, at: usize) {
        if self.levels.len() < 2 {
            return;
        }
        let Some(level) = self.levels.pop() else {
            return;
        };
        self.facts[at].holds = Some(level.holds);
        self.facts[level.open].close = at;
        if level.holds == Holds::Statements {
            if !level.fresh {
                self.end_statement();
            }
            if let Some(outer) = self.levels.last_mut() {
                outer.fresh = true;
            }
        }
    }

    fn end_statement(&mut self) {
        let Some(before) = self.before else { return };
        self.facts[before].lacks_semicolon = true;
        // Comments behind it stand between statements, once the semicolon is there.
        let behind = self.tokens.iter().zip(&mut self.facts).skip(before + 1);
        for (_, facts) in behind.take_while(|(token, _)| token.kind == TokenKind::Comment) {
            facts.between = true;
        }
    }

    /// What the braces that open at `at` hold. Behind a value they can only be the body of a head.
    fn braces(&self, at: usize) -> Holds {
        if self.after_value() {
            return Holds::Statements;
        }
        let mut inside = self.tokens[at + 1..].iter().take_while(|t| t.text(self.text) != "}");
        let words = inside.all(|t| t.kind == TokenKind::Name || t.text(self.text) == ",");
        if words { Holds::Words } else { Holds::Block }
    }

    /// Whether the token before can end a value.
    fn after_value(&self) -> bool {
        self.before.is_some_and(|b| {
            let reserved = matches!(self.word(b), "if" | "then" | "else" | "let" | "for" | "in");
            !reserved && lex::ends_value(self.tokens[b], self.text)
        })
    }
}
