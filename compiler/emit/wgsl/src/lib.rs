//! miras-emit-wgsl
