//! miras-tensor
