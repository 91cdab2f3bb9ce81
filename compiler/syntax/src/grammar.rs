//! The parser that pest makes of `grammar/miras.pest`.

// The derive makes public items that cannot carry documentation.
#![allow(missing_docs)]

/// The generated parser.
#[derive(pest_derive::Parser)]
#[grammar = "../../../grammar/miras.pest"]
pub struct Grammar;
