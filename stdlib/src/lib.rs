//! miras-stdlib
