//! miras-gpu
