//! Text to tokens. Total: whatever is not a token of the language is a [`TokenKind::Stray`].
//!
//! The grammar works on text; tokens serve what it cannot do: guarding its recursion, finding where to go on
//! after a mistake, saying what was found, and formatting.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Letters, digits and underscores, with dots after `layer`.
    Name,
    /// A name and its prime.
    Primed,
    /// A number.
    Number,
    /// Text in double quotes on one line.
    Text,
    /// A mark or operator.
    Mark,
    /// `//` to the end of the line, without the line break.
    Comment,
    /// Anything else.
    Stray,
}

/// A token and the line breaks before it.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// How many line breaks stand between it and the token before.
    pub breaks: usize,
    /// Whether it is the first of its line.
    pub first: bool,
}

impl Token {
    /// The letters in `text`, which must be the text it was read from.
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// Marks of more than one character, longest first.
const LONG_MARKS: &[&str] = &["..=", "..", "<=", ">=", "==", "!="];
const MARKS: &str = "(){}[];:,=<>+-*/@^.";

/// The tokens of `text` from byte `start` on, comments included.
pub fn lex(text: &str, start: usize) -> Vec<Token> {
    let mut lexer = Lexer { text, at: start, tokens: Vec::new() };
    while lexer.step() {}
    lexer.tokens
}

/// The tokens without the comments; a comment's line breaks go to the token after it.
pub fn without_comments(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut breaks = 0;
    for token in tokens {
        breaks += token.breaks;
        if token.kind != TokenKind::Comment {
            kept.push(Token { breaks, ..*token });
            breaks = 0;
        }
    }
    kept
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Reads one token; false at the end.
    fn step(&mut self) -> bool {
        let breaks = self.skip_blank();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return false;
        };
        let (kind, length) = self.token(rest, first);
        let start = self.at;
        self.at += length;
        let first = breaks > 0 || self.tokens.is_empty();
        self.tokens.push(Token { kind, start, end: self.at, breaks, first });
        true
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Skips blanks and counts the line breaks among them (`\n`, `\r\n` or `\r`).
    fn skip_blank(&mut self) -> usize {
        let rest = self.rest().as_bytes();
        let length = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        let blank = &rest[..length];
        let lone = |i: usize| blank[i] == b'\r' && blank.get(i + 1) != Some(&b'\n');
        let breaks = (0..length).filter(|&i| blank[i] == b'\n' || lone(i)).count();
        self.at += length;
        breaks
    }

    /// Kind and length in bytes of the token that `rest` starts with.
    fn token(&self, rest: &str, first: char) -> (TokenKind, usize) {
        if rest.starts_with("//") {
            return (TokenKind::Comment, rest.find(['\n', '\r']).unwrap_or(rest.len()));
        }
        if first.is_alphabetic() || first == '_' {
            return self.word(rest);
        }
        if let Some(length) = self.number(rest) {
            return (TokenKind::Number, length);
        }
        if first == '"' {
            return string(rest);
        }
        if let Some(mark) = LONG_MARKS.iter().find(|m| rest.starts_with(**m)) {
            return (TokenKind::Mark, mark.len());
        }
        if MARKS.contains(first) {
            return (TokenKind::Mark, first.len_utf8());
        }
        (TokenKind::Stray, stray(rest, first))
    }

    fn word(&self, rest: &str) -> (TokenKind, usize) {
        let mut length = run(rest, |c| c.is_alphanumeric() || c == '_');
        if !rest.is_char_boundary(length) || !rest[..length].is_ascii() {
            return (TokenKind::Stray, length);
        }
        if self.names_layer() {
            while let Some(after) = rest[length..].strip_prefix('.') {
                match run(after, |c| c.is_ascii_alphanumeric() || c == '_') {
                    0 => break,
                    more => length += 1 + more,
                }
            }
        }
        if rest[length..].starts_with('\'') {
            (TokenKind::Primed, length + 1)
        } else {
            (TokenKind::Name, length)
        }
    }

    /// Whether the next word stands where a layer's name does: after `layer`, or after `layer name =`.
    fn names_layer(&self) -> bool {
        let mut back =
            self.tokens.iter().rev().filter(|t| t.kind != TokenKind::Comment).map(|t| t.text(self.text));
        match back.next() {
            Some("layer") => true,
            Some("=") => back.next().is_some() && back.next() == Some("layer"),
            _ => false,
        }
    }

    /// Length of a number. A dot first only where the token before cannot be followed by a field.
    fn number(&self, rest: &str) -> Option<usize> {
        let digits = |s: &str| run(s, |c| c.is_ascii_digit());
        let mut length = digits(rest);
        if length == 0 && self.tokens.last().is_some_and(|t| t.end == self.at && ends_value(*t, self.text)) {
            return None;
        }
        if let Some(after) = rest[length..].strip_prefix('.') {
            let fraction = digits(after);
            length += if fraction > 0 { 1 + fraction } else { 0 };
        }
        if length == 0 {
            return None;
        }
        if let Some(after) = rest[length..].strip_prefix(['e', 'E']) {
            let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
            let exponent = digits(unsigned);
            length += if exponent > 0 { 1 + after.len() - unsigned.len() + exponent } else { 0 };
        }
        Some(length)
    }
}

/// Whether a value can end with this token.
pub fn ends_value(token: Token, text: &str) -> bool {
    match token.kind {
        TokenKind::Name | TokenKind::Primed | TokenKind::Number => true,
        TokenKind::Mark => matches!(token.text(text), ")" | "]" | "}"),
        TokenKind::Text | TokenKind::Comment | TokenKind::Stray => false,
    }
}

/// Length in bytes of the longest start of `text` whose characters all satisfy `belongs`.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn string(rest: &str) -> (TokenKind, usize) {
    let inside = &rest[1..];
    match inside.find(['"', '\n', '\r']) {
        Some(at) if inside[at..].starts_with('"') => (TokenKind::Text, at + 2),
        Some(at) => (TokenKind::Stray, at + 1),
        None => (TokenKind::Stray, rest.len()),
    }
}

/// Length of what is no token: doubled signs of other languages together, else one character.
fn stray(rest: &str, first: char) -> usize {
    if rest.starts_with("&&") || rest.starts_with("||") { 2 } else { first.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        lex(text, 0).iter().map(|t| t.text(text)).collect()
    }

    #[test]
    fn numbers_ranges_and_fields_come_apart() {
        assert_eq!(words("1..=depth"), ["1", "..=", "depth"]);
        assert_eq!(words("0..2"), ["0", "..", "2"]);
        assert_eq!(words("1...5"), ["1", "..", ".5"]);
        assert_eq!(words("input.a*.5+1e-6-2.0E3"), ["input", ".", "a", "*", ".5", "+", "1e-6", "-", "2.0E3"]);
        assert_eq!(words("x.5"), ["x", ".", "5"]);
        assert_eq!(words("S' = mu*S"), ["S'", "=", "mu", "*", "S"]);
        assert_eq!(words("layer bias_lp1.5_eps {"), ["layer", "bias_lp1.5_eps", "{"]);
        assert_eq!(words("layer a.1 = b.2(c.d)"), ["layer", "a.1", "=", "b.2", "(", "c", ".", "d", ")"]);
    }

    #[test]
    fn every_character_is_in_a_token_or_blank() {
        let text = "a && naïve #é\"open\n\"ok\" ' \u{a0} x";
        let kinds: Vec<_> = lex(text, 0).iter().map(|t| (t.kind, t.text(text))).collect();
        use TokenKind::{Name, Stray, Text};
        assert_eq!(
            kinds,
            [
                (Name, "a"),
                (Stray, "&&"),
                (Stray, "naïve"),
                (Stray, "#"),
                (Stray, "é"),
                (Stray, "\"open"),
                (Text, "\"ok\""),
                (Stray, "'"),
                (Stray, "\u{a0}"),
                (Name, "x")
            ]
        );
    }

    #[test]
    fn line_breaks_are_counted_in_all_three_spellings() {
        let breaks: Vec<_> = lex("a\nb\r\nc\rd\n\n// x\ne", 0).iter().map(|t| t.breaks).collect();
        assert_eq!(breaks, [0, 1, 1, 1, 2, 1]);
    }
}
