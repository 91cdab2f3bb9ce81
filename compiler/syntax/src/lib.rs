//! miras-syntax
