//! miras-driver
