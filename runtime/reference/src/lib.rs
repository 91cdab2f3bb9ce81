//! miras-reference
