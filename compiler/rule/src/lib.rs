//! miras-rule
