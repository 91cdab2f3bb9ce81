//! miras-tests
