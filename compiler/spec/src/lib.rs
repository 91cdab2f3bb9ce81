//! miras-spec
