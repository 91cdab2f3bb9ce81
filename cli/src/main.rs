//! miras-cli

fn main() {}
