//! miras-explain
