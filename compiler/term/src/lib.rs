//! miras-term
