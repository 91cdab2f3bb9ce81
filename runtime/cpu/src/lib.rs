//! miras-cpu
