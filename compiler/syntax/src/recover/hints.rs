//! Slips that are known: what was likely meant, and how to write it.
//!
//! An ordered list of small functions, the first that recognises a mistake tells of it.

use super::message::{Mistake, found, missing_semicolon, shown};
use super::split::Container;
use super::touching;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;

/// The first hint that fits.
pub fn known(mistake: &Mistake<'_>) -> Option<Diagnostic> {
    const HINTS: &[fn(&Mistake<'_>) -> Option<Diagnostic>] = &[
        stray,
        empty_statement,
        reserved_construct,
        misplaced_item,
        unknown_keyword,
        unquoted_path,
        clause_without_colon,
        foreign_operator,
        number_and_name,
        unfinished_number,
        assignment_as_comparison,
        shape_without_brackets,
        branches,
        inner_if,
        reserved_name,
        let_with_kind,
        quoted_text,
        block_without_value,
        not_a_range,
        forgotten_semicolon,
        side_by_side,
        comma_missing,
    ];
    HINTS.iter().find_map(|hint| hint(mistake))
}

fn syntax(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code::SYNTAX, message)
}

/// A character that no construct uses.
fn stray(m: &Mistake<'_>) -> Option<Diagnostic> {
    if !m.words.is(m.at, TokenKind::Stray) {
        return None;
    }
    let text = m.words.text(m.at);
    let (message, help) = match text {
        "&&" | "||" => (
            format!("there is no operator `{text}`"),
            "nest the conditions: `if a then (if b then x else y) else y`".into(),
        ),
        "!" => (
            "there is no operator `!`".into(),
            "turn the comparison round, or swap the branches of the `if`".into(),
        ),
        "'" => {
            ("a prime must follow a name directly".into(), "write the value after this token as `S'`".into())
        }
        "#" => ("`#` has no meaning here".into(), "start a comment with `//`".into()),
        _ if text.starts_with('"') => {
            ("a text in quotes is not closed".into(), "add `\"` on the same line".into())
        }
        _ => foreign_character(text),
    };
    Some(syntax(message).at(m.words.span(m.at), "not part of the language").with_help(help))
}

fn foreign_character(text: &str) -> (String, String) {
    let meant = match text {
        "\u{d7}" | "\u{22c5}" | "\u{b7}" => Some("*"),
        "\u{f7}" => Some("/"),
        "\u{2212}" | "\u{2013}" => Some("-"),
        "\u{2264}" => Some("<="),
        "\u{2265}" => Some(">="),
        "\u{2260}" => Some("!="),
        "\u{2032}" | "\u{2019}" => Some("'"),
        "\u{201c}" | "\u{201d}" => Some("\""),
        "\u{2295}" | "\u{2297}" => Some("outer(a, b)"),
        _ => None,
    };
    match meant {
        Some(meant) => (format!("`{text}` is not part of the language"), format!("write `{meant}`")),
        None if text.chars().any(char::is_alphanumeric) => (
            format!("the name `{}` holds a letter that is not ASCII", shown(text)),
            "write names with the letters a-z, A-Z, digits and `_`".into(),
        ),
        None => {
            let codes: Vec<_> = text.chars().map(|c| format!("U+{:04X}", u32::from(c))).collect();
            (format!("the character {} is not part of the language", codes.join(" ")), "remove it".into())
        }
    }
}

/// A semicolon by itself.
fn empty_statement(m: &Mistake<'_>) -> Option<Diagnostic> {
    let alone = m.at == m.piece.start && m.words.text(m.at) == ";";
    alone.then(|| {
        syntax("a `;` without a statement")
            .at(m.words.span(m.at), "nothing stands before it")
            .with_help("remove it; a closing brace needs none")
    })
}

/// `block` and `model`, which are to come.
fn reserved_construct(m: &Mistake<'_>) -> Option<Diagnostic> {
    let word = m.words.text(m.piece.start);
    let meant = m.container == Container::File && matches!(word, "block" | "model");
    if !meant || !m.words.is(m.piece.start + 1, TokenKind::Name) {
        return None;
    }
    let problem = Diagnostic::new(code::RESERVED, format!("`{word}` is reserved for compositions of layers"))
        .at(m.words.span(m.piece.start), "not there yet")
        .with_help("write each of its layers as a `layer`");
    Some(problem)
}

/// A definition inside another one.
fn misplaced_item(m: &Mistake<'_>) -> Option<Diagnostic> {
    let (word, next) = (m.words.text(m.piece.start), m.piece.start + 1);
    let item = matches!(word, "bias" | "retention" | "memory" | "algo" | "layer" | "fn")
        && m.words.is_name(next)
        || word == "use" && m.words.is(next, TokenKind::Text);
    if m.container == Container::File || !item {
        return None;
    }
    // `memory mlp(2);` in a layer is a clause whose colon was forgotten.
    if m.container == Container::Body
        && m.words.text(m.piece.end - 1) == ";"
        && !matches!(word, "fn" | "use" | "layer")
    {
        return Some(colon_missing(m));
    }
    let problem = syntax(format!("`{word}` cannot stand inside braces"))
        .at(m.words.span(m.piece.start), "belongs at the top level of the file")
        .with_help("move it out, or close the braces before it");
    Some(problem)
}

const STATEMENT_WORDS: &[&str] =
    &["let", "for", "weight", "slow", "state", "input", "trained", "history", "require", "dual"];
const TOP_WORDS: &[&str] = &["use", "bias", "retention", "memory", "algo", "fn", "layer"];

/// Words of other languages, and what is written here instead.
const FOREIGN: &[(&str, &str)] = &[
    ("def", "write a function as `fn f(x) = ...;`"),
    ("function", "write a function as `fn f(x) = ...;`"),
    ("func", "write a function as `fn f(x) = ...;`"),
    ("import", "write `use \"other.miras\";`"),
    ("include", "write `use \"other.miras\";`"),
    ("var", "write `let name = value;`"),
    ("const", "write `let name = value;`"),
    ("mut", "write `let name = value;` and rebind with `name = value;`"),
    ("param", "write parameters in parentheses after the definition's name"),
    ("return", "end a block with its value, without a `;`"),
    ("while", "repeat a fixed number of times with `for i in 1..=n { ... }`"),
];

/// Two names at the start, the first of which is no keyword.
fn unknown_keyword(m: &Mistake<'_>) -> Option<Diagnostic> {
    let (first, second) = (m.piece.start, m.piece.start + 1);
    let named = m.words.is_name(second)
        || m.words.is(second, TokenKind::Primed)
        || m.words.is(second, TokenKind::Text);
    let word = m.words.text(first);
    let top = if m.container == Container::File { TOP_WORDS } else { &[] };
    if !m.words.is_name(first) || !named || m.words.starts_line(second) {
        return None;
    }
    if STATEMENT_WORDS.contains(&word) || top.contains(&word) {
        return None;
    }
    let problem =
        syntax(format!("`{}` is not a keyword", shown(word))).at(m.words.span(first), "not a keyword");
    if let Some((_, help)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
        return Some(problem.with_help(*help));
    }
    let choices = STATEMENT_WORDS.iter().chain(top).copied();
    let near = choices.min_by_key(|c| strsim::damerau_levenshtein(c, word));
    Some(match near.filter(|c| strsim::damerau_levenshtein(c, word) <= 1 + c.len() / 4) {
        Some(near) => problem.with_help(format!("did you mean `{near}`?")),
        None => problem.with_help(format!(
            "write `{word} = ...;` to set a part, `{word}: ...;` for a clause, or begin with one of: {}",
            STATEMENT_WORDS.iter().chain(top).copied().collect::<Vec<_>>().join(", ")
        )),
    })
}

/// `use other.miras;`
fn unquoted_path(m: &Mistake<'_>) -> Option<Diagnostic> {
    let unquoted =
        m.words.text(m.piece.start) == "use" && m.at == m.piece.start + 1 && m.expects(Rule::string);
    (unquoted && m.words.is_name(m.at)).then(|| {
        syntax("`use` needs a path in double quotes")
            .at(m.words.span(m.at), "expected `\"`")
            .with_help("write `use \"other.miras\";`")
    })
}

/// `weight W: dv, dk;`
fn shape_without_brackets(m: &Mistake<'_>) -> Option<Diagnostic> {
    let declares = matches!(m.words.text(m.piece.start), "weight" | "slow" | "state" | "input" | "trained");
    let first = m.at.checked_sub(1).filter(|_| declares && matches!(m.words.text(m.at), "," | "*"))?;
    (m.words.text(first.checked_sub(1)?) == ":").then(|| {
        syntax("a shape stands in brackets")
            .at(m.words.span(first).to(m.words.span(m.at)), "read as a kind, not as a shape")
            .with_help("write `[dv, dk]`")
    })
}

/// Operators of other languages made of marks that exist: `**`, `+=`, `/*`.
fn foreign_operator(m: &Mistake<'_>) -> Option<Diagnostic> {
    foreign_pair(m, m.at).or_else(|| foreign_pair(m, m.at.checked_sub(1)?))
}

fn foreign_pair(m: &Mistake<'_>, at: usize) -> Option<Diagnostic> {
    if !touching(m.words.get(at)?, m.words.get(at + 1)?) {
        return None;
    }
    let both = [m.words.text(at), m.words.text(at + 1)].concat();
    let help = match both.as_str() {
        "**" => "write the power as `x^2`",
        "/*" | "*/" => "start each comment line with `//`",
        "+=" | "-=" | "*=" | "/=" => "write the operation out: `x = x + 1;`",
        "=>" | "->" => "write `if c then a else b`, or `name = value;`",
        "=<" => "write `<=`",
        "===" => "write `==`",
        "<>" => "write `!=`",
        "::" => "write `input.name` for a field",
        _ => return None,
    };
    let span = m.words.span(at).to(m.words.span(at + 1));
    Some(syntax(format!("there is no `{both}`")).at(span, "not part of the language").with_help(help))
}

/// `2x`, `3rd`
fn number_and_name(m: &Mistake<'_>) -> Option<Diagnostic> {
    let (number, name) = (m.words.get(m.at)?, m.words.get(m.at + 1)?);
    let joined = number.kind == TokenKind::Number
        && matches!(name.kind, TokenKind::Name | TokenKind::Primed)
        && touching(number, name);
    joined.then(|| {
        let (n, x) = (m.words.text(m.at), m.words.text(m.at + 1));
        let help = if m.expects_value() {
            format!("write `{n} * {x}`")
        } else {
            "begin a name with a letter".into()
        };
        syntax(format!("`{}` is neither a number nor a name", shown(&format!("{n}{x}"))))
            .at(m.words.span(m.at).to(m.words.span(m.at + 1)), "a number runs into a name")
            .with_help(help)
    })
}

/// `2.`
fn unfinished_number(m: &Mistake<'_>) -> Option<Diagnostic> {
    let number = m.at.checked_sub(1).filter(|b| m.words.is(*b, TokenKind::Number))?;
    let dot = m.words.text(m.at) == "." && touching(m.words.get(number)?, m.words.get(m.at)?);
    dot.then(|| {
        let n = m.words.text(number);
        syntax(format!("the number `{n}.` has no digit after its dot"))
            .at(m.words.span(number).to(m.words.span(m.at)), "a digit is missing")
            .with_help(format!("write `{n}` or `{n}.0`"))
    })
}

/// An `if` without `then` or `else`, or with braces in their place.
fn branches(m: &Mistake<'_>) -> Option<Diagnostic> {
    let word = match (m.expects(Rule::kw_then), m.expects(Rule::kw_else)) {
        (true, _) => "then",
        (_, true) => "else",
        _ => return None,
    };
    let problem = syntax(format!("an `if` without `{word}`"))
        .at(m.words.span(m.at), format!("expected `{word}`, found {}", found(m.words, m.at)));
    let start = (m.piece.start..m.at).rev().find(|i| m.words.text(*i) == "if");
    let problem = problem.at_opt(start.map(|i| m.words.span(i)), "the `if`");
    Some(problem.with_help("write `if c then a else b`: every `if` has both branches, without braces"))
}

/// An `if` as an operand.
fn inner_if(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.words.text(m.at) == "if" && m.expects_value()).then(|| {
        syntax("an `if` beside an operator needs parentheses")
            .at(m.words.span(m.at), "this `if`")
            .with_help("write `a + (if c then x else y)`")
    })
}

/// A reserved word as a name.
fn reserved_name(m: &Mistake<'_>) -> Option<Diagnostic> {
    let named = m.expects(Rule::name) || m.expects(Rule::dotted) || m.expects(Rule::param);
    (m.words.is_reserved(m.at) && named).then(|| {
        syntax(format!("`{}` is reserved and cannot be a name", m.words.text(m.at)))
            .at(m.words.span(m.at), "a reserved word")
            .with_help("choose another name; only `if then else let for in` are reserved")
    })
}

/// `if a = b`
fn assignment_as_comparison(m: &Mistake<'_>) -> Option<Diagnostic> {
    let compared = m.words.text(m.at) == "=" && m.expects(Rule::operator);
    compared.then(|| {
        syntax("`=` cannot stand inside an expression")
            .at(m.words.span(m.at), "sets a name, does not compare")
            .with_help("write `==` to compare; end the statement before with `;` to set a name")
    })
}

/// `memory mlp(2);`
fn clause_without_colon(m: &Mistake<'_>) -> Option<Diagnostic> {
    let choice = matches!(m.words.text(m.piece.start), "bias" | "retention" | "memory" | "algo");
    let bodiless = m.expects(Rule::open_brace) || m.words.text(m.piece.end - 1) == ";";
    (choice && bodiless && m.words.is_name(m.piece.start + 1)).then(|| colon_missing(m))
}

fn colon_missing(m: &Mistake<'_>) -> Diagnostic {
    let (word, name) = (m.words.text(m.piece.start), m.words.text(m.piece.start + 1));
    let end = m.at.min(m.piece.end.saturating_sub(1));
    syntax(format!("a clause needs a colon after `{word}`, a definition a body in braces"))
        .at(m.words.span(m.piece.start).to(m.words.span(end)), "neither a clause nor a definition")
        .with_help(format!(
            "write `{word}: {name};` to choose one, `{word} {name}(...) {{ ... }}` to define one"
        ))
}

/// `let x: nat = 3;`
fn let_with_kind(m: &Mistake<'_>) -> Option<Diagnostic> {
    let kind = m.words.text(m.piece.start) == "let" && m.at == m.piece.start + 2 && m.words.text(m.at) == ":";
    kind.then(|| {
        syntax("a `let` has no kind")
            .at(m.words.span(m.at), "expected `=`")
            .with_help(format!("write `let {} = ...;`", m.words.text(m.at - 1)))
    })
}

/// A text in quotes anywhere but after `use`.
fn quoted_text(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.words.is(m.at, TokenKind::Text) && !m.expects(Rule::string)).then(|| {
        syntax("a text in quotes can only follow `use`")
            .at(m.words.span(m.at), "not a value")
            .with_help("write names without quotes")
    })
}

/// `{ let h = x; h = h + 1; }`
fn block_without_value(m: &Mistake<'_>) -> Option<Diagnostic> {
    let ends = m.words.text(m.at) == "}" && m.expects_value();
    let before = m.at.checked_sub(1).filter(|b| ends && matches!(m.words.text(*b), ";" | "{" | "}"))?;
    let problem = syntax("a block must end with its value")
        .at(m.words.span(m.at), "expected an expression before this")
        .at(m.words.span(before), "after this")
        .with_help("end the block with an expression, without a `;`");
    Some(problem)
}

/// `for l in depth { ... }`
fn not_a_range(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.expects(Rule::to) || m.expects(Rule::to_inclusive)).then(|| {
        syntax(format!("expected a range, found {}", found(m.words, m.at)))
            .at(m.words.span(m.at), "expected `..` or `..=`")
            .with_help("write `1..=n` to count from 1 to n, `1..n` to leave n out")
    })
}

/// Two statements on one line without a semicolon between them.
fn forgotten_semicolon(m: &Mistake<'_>) -> Option<Diagnostic> {
    let shape = matches!(m.words.text(m.at + 1), "=" | ":") || matches!(m.words.text(m.at), "let" | "for");
    let two_names = m.words.is_name(m.at + 1) && STATEMENT_WORDS.contains(&m.words.text(m.at));
    let item = TOP_WORDS.contains(&m.words.text(m.at)) && m.words.is_name(m.at + 1);
    let ended = m.at > m.piece.start && m.expects(Rule::semicolon) && m.words.ends_value(m.at - 1);
    (ended && (shape || two_names || item)).then(|| missing_semicolon(m.words, m.at))
}

/// `a b`, `2 (x)`
fn side_by_side(m: &Mistake<'_>) -> Option<Diagnostic> {
    let value = m.words.is_name(m.at)
        || m.words.is(m.at, TokenKind::Primed)
        || m.words.is(m.at, TokenKind::Number)
        || m.words.text(m.at) == "(";
    if !value || !m.expects(Rule::operator) || m.words.starts_line(m.at) {
        return None;
    }
    let (left, right) = (shown(m.words.text(m.at.checked_sub(1)?)), shown(m.words.text(m.at)));
    let problem = syntax(format!("an operator is missing between `{left}` and `{right}`"))
        .at(m.words.span(m.at - 1).to(m.words.span(m.at)), "two values side by side")
        .with_help(format!(
            "write `{left} * {right}` for a product, `{left} @ {right}` for a matrix product"
        ));
    Some(problem)
}

/// `f(x y)` in a list of names or parameters.
fn comma_missing(m: &Mistake<'_>) -> Option<Diagnostic> {
    let before = m.at.checked_sub(1).filter(|b| *b >= m.piece.start)?;
    (m.expects(Rule::comma) && m.words.is_name(m.at) && m.words.ends_value(before)).then(|| {
        let (left, right) = (shown(m.words.text(before)), shown(m.words.text(m.at)));
        syntax(format!("a `,` is missing between `{left}` and `{right}`"))
            .at(m.words.span(before).to(m.words.span(m.at)), "two names side by side")
            .with_help(format!("write `{left}, {right}`"))
    })
}
