//! miras-kernel
