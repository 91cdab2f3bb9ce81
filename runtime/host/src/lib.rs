//! miras-host
