//! What the grammar expected, in words.

use crate::grammar::Rule;
use pest::error::{Error, ErrorVariant};

const EXPRESSION: &str = "an expression";

/// What was expected at the place of an error, most telling first, each once.
pub fn list(error: &Error<Rule>) -> Vec<&'static str> {
    let mut ranked: Vec<_> = rules(error).iter().filter_map(|r| word(*r)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    let best = ranked.first().map_or(0, |(rank, _)| *rank);
    // What could merely go on is not named beside what can end or is required.
    ranked.retain(|(rank, _)| *rank < 9 || best >= 9);
    // What an expression can start with is not named beside the expression.
    if ranked.iter().any(|(_, word)| *word == EXPRESSION) {
        ranked.retain(|(_, word)| !matches!(*word, "`(`" | "`{`" | "a name" | "a name with a prime"));
    }
    ranked.into_iter().map(|(_, word)| word).collect()
}

/// The rules that were tried at the place of an error.
pub fn rules(error: &Error<Rule>) -> &[Rule] {
    match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => &[],
    }
}

/// The list as prose.
pub fn prose(words: &[&str]) -> String {
    match words {
        [] => "something else".to_string(),
        [one] => (*one).to_string(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The words for a rule and their rank; None for rules that say nothing by themselves.
fn word(rule: Rule) -> Option<(u8, &'static str)> {
    Some(match rule {
        Rule::semicolon => (0, "`;`"),
        Rule::close_paren => (1, "`)`"),
        Rule::close_bracket => (1, "`]`"),
        Rule::close_brace => (1, "`}`"),
        Rule::comma => (2, "`,`"),
        Rule::kw_then => (0, "`then`"),
        Rule::kw_else => (0, "`else`"),
        Rule::kw_in => (0, "`in`"),
        Rule::to | Rule::to_inclusive => (0, "`..` or `..=`"),
        Rule::equals | Rule::init => (2, "`=`"),
        Rule::colon => (2, "`:`"),
        Rule::open_brace => (3, "`{`"),
        Rule::open_paren | Rule::names => (3, "`(`"),
        Rule::string => (3, "a path in double quotes"),
        Rule::name | Rule::dotted => (3, "a name"),
        Rule::primed => (3, "a name with a prime"),
        Rule::kind | Rule::words => (3, "a kind such as `positive`"),
        Rule::shape => (4, "a shape such as `[dv, dk]`"),
        Rule::param => (3, "a parameter"),
        Rule::arg => (3, "an argument"),
        Rule::condition => (3, "a condition such as `linear(read)`"),
        Rule::range => (3, "a range such as `1..=depth`"),
        Rule::expr
        | Rule::if_expr
        | Rule::operation
        | Rule::operand
        | Rule::number
        | Rule::paren
        | Rule::block => (5, EXPRESSION),
        Rule::call | Rule::minus => (5, EXPRESSION),
        Rule::use_line | Rule::definition | Rule::function | Rule::layer | Rule::alias => {
            (6, "a definition, a layer or a clause")
        }
        Rule::choice | Rule::kw_use | Rule::kw_fn | Rule::kw_layer => {
            (6, "a definition, a layer or a clause")
        }
        Rule::let_statement | Rule::for_statement | Rule::dual | Rule::declaration | Rule::history => {
            (7, "a statement")
        }
        Rule::require | Rule::next | Rule::define | Rule::assign | Rule::clause => (7, "a statement"),
        Rule::role | Rule::kw_let | Rule::kw_for | Rule::kw_dual | Rule::kw_history | Rule::kw_require => {
            (7, "a statement")
        }
        Rule::kw_if => (5, EXPRESSION),
        Rule::operator => (8, "an operator"),
        Rule::params => (9, "parameters in parentheses"),
        Rule::args => (9, "arguments in parentheses"),
        Rule::domain | Rule::kw_on => (9, "`on` and a domain"),
        Rule::index | Rule::open_bracket => (9, "`[`"),
        Rule::member | Rule::dot => (9, "`.`"),
        Rule::file => (6, "a definition, a layer or a clause"),
        Rule::EOI => (10, "the end"),
        Rule::WHITESPACE | Rule::COMMENT | Rule::letter | Rule::reserved | Rule::exponent => {
            return None;
        }
        Rule::top | Rule::statement | Rule::end | Rule::value => return None,
        Rule::top_piece => (6, "a definition, a layer or a clause"),
        Rule::statement_piece => (7, "a statement"),
        Rule::expr_piece => (5, EXPRESSION),
        Rule::definition_piece | Rule::layer_piece | Rule::for_piece => return None,
    })
}
