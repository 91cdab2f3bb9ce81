//! Keywords, names and the heads of statements and definitions.

use super::syntax;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use crate::recover::message::{Mistake, found, missing_semicolon, shown};
use crate::recover::split::Container;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;

/// A semicolon by itself.
pub(super) fn empty_statement(m: &Mistake<'_>) -> Option<Diagnostic> {
    let alone = m.at == m.piece.start && m.words.text(m.at) == ";";
    alone.then(|| {
        syntax("a `;` without a statement")
            .at(m.words.span(m.at), "nothing stands before it")
            .with_help("remove it; a closing brace needs none")
    })
}

/// `block` and `model`, which are to come.
pub(super) fn reserved_construct(m: &Mistake<'_>) -> Option<Diagnostic> {
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
pub(super) fn misplaced_item(m: &Mistake<'_>) -> Option<Diagnostic> {
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
pub(super) fn unknown_keyword(m: &Mistake<'_>) -> Option<Diagnostic> {
    let (first, second) = (m.piece.start, m.piece.start + 1);
    let named = m.words.is_name(second)
        || m.words.is(second, TokenKind::Primed)
        || m.words.is(second, TokenKind::Text);
    let word = m.words.text(first);
    let shown_word = shown(word);
    let top = if m.container == Container::File { TOP_WORDS } else { &[] };
    if !m.words.is_name(first) || !named || m.words.starts_line(second) {
        return None;
    }
    if STATEMENT_WORDS.contains(&word) || top.contains(&word) {
        return None;
    }
    let problem = syntax(format!("`{shown_word}` is not a keyword")).at(m.words.span(first), "not a keyword");
    if let Some((_, help)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
        return Some(problem.with_help(*help));
    }
    let choices = STATEMENT_WORDS.iter().chain(top).copied();
    let near = choices.min_by_key(|c| strsim::damerau_levenshtein(c, word));
    Some(match near.filter(|c| strsim::damerau_levenshtein(c, word) <= 1 + c.len() / 4) {
        Some(near) => problem.with_help(format!("did you mean `{near}`?")),
        None => problem.with_help(format!(
            "write `{shown_word} = ...;` to set a part, `{shown_word}: ...;` for a clause, or begin with one of: {}",
            STATEMENT_WORDS.iter().chain(top).copied().collect::<Vec<_>>().join(", ")
        )),
    })
}

/// `use other.miras;`
pub(super) fn unquoted_path(m: &Mistake<'_>) -> Option<Diagnostic> {
    let unquoted =
        m.words.text(m.piece.start) == "use" && m.at == m.piece.start + 1 && m.expects(Rule::string);
    (unquoted && m.words.is_name(m.at)).then(|| {
        syntax("`use` needs a path in double quotes")
            .at(m.words.span(m.at), "expected `\"`")
            .with_help("write `use \"other.miras\";`")
    })
}

/// `weight W: dv, dk;`
pub(super) fn shape_without_brackets(m: &Mistake<'_>) -> Option<Diagnostic> {
    let declares = matches!(m.words.text(m.piece.start), "weight" | "slow" | "state" | "input" | "trained");
    let first = m.at.checked_sub(1).filter(|_| declares && matches!(m.words.text(m.at), "," | "*"))?;
    (m.words.text(first.checked_sub(1)?) == ":").then(|| {
        syntax("a shape stands in brackets")
            .at(m.words.span(first).to(m.words.span(m.at)), "read as a kind, not as a shape")
            .with_help("write `[dv, dk]`")
    })
}

/// A reserved word as a name.
pub(super) fn reserved_name(m: &Mistake<'_>) -> Option<Diagnostic> {
    let named = m.expects(Rule::name) || m.expects(Rule::dotted) || m.expects(Rule::param);
    (m.words.is_reserved(m.at) && named).then(|| {
        syntax(format!("`{}` is reserved and cannot be a name", m.words.text(m.at)))
            .at(m.words.span(m.at), "a reserved word")
            .with_help("choose another name; only `if then else let for in` are reserved")
    })
}

/// `memory mlp(2);`
pub(super) fn clause_without_colon(m: &Mistake<'_>) -> Option<Diagnostic> {
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
pub(super) fn let_with_kind(m: &Mistake<'_>) -> Option<Diagnostic> {
    let kind = m.words.text(m.piece.start) == "let" && m.at == m.piece.start + 2 && m.words.text(m.at) == ":";
    kind.then(|| {
        syntax("a `let` has no kind")
            .at(m.words.span(m.at), "expected `=`")
            .with_help(format!("write `let {} = ...;`", m.words.text(m.at - 1)))
    })
}

/// `for l in depth { ... }`
pub(super) fn not_a_range(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.expects(Rule::to) || m.expects(Rule::to_inclusive)).then(|| {
        syntax(format!("expected a range, found {}", found(m.words, m.at)))
            .at(m.words.span(m.at), "expected `..` or `..=`")
            .with_help("write `1..=n` to count from 1 to n, `1..n` to leave n out")
    })
}

/// Two statements on one line without a semicolon between them.
pub(super) fn forgotten_semicolon(m: &Mistake<'_>) -> Option<Diagnostic> {
    let shape = matches!(m.words.text(m.at + 1), "=" | ":") || matches!(m.words.text(m.at), "let" | "for");
    let two_names = m.words.is_name(m.at + 1) && STATEMENT_WORDS.contains(&m.words.text(m.at));
    let item = TOP_WORDS.contains(&m.words.text(m.at)) && m.words.is_name(m.at + 1);
    let ended = m.at > m.piece.start && m.expects(Rule::semicolon) && m.words.ends_value(m.at - 1);
    (ended && (shape || two_names || item)).then(|| missing_semicolon(m.words, m.at))
}

/// `bias: l2, retention: none`: clauses set apart by commas.
pub(super) fn comma_after_clause(m: &Mistake<'_>) -> Option<Diagnostic> {
    let clause = m.words.is_name(m.piece.start) && m.words.text(m.piece.start + 1) == ":";
    let next = m.words.is_name(m.at + 1) && m.words.text(m.at + 2) == ":";
    (clause && next && m.words.text(m.at) == ",").then(|| {
        syntax("a clause ends with `;`, not with `,`")
            .at(m.words.span(m.at), "expected `;`")
            .with_help("write `;` in place of `,`")
    })
}

/// `f(x y)` in a list of names or parameters.
pub(super) fn comma_missing(m: &Mistake<'_>) -> Option<Diagnostic> {
    let before = m.at.checked_sub(1).filter(|b| *b >= m.piece.start)?;
    (m.expects(Rule::comma) && m.words.is_name(m.at) && m.words.ends_value(before)).then(|| {
        let (left, right) = (shown(m.words.text(before)), shown(m.words.text(m.at)));
        syntax(format!("a `,` is missing between `{left}` and `{right}`"))
            .at(m.words.span(before).to(m.words.span(m.at)), "two names side by side")
            .with_help(format!("write `{left}, {right}`"))
    })
}
