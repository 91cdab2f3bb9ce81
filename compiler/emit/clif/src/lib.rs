//! miras-emit-clif
