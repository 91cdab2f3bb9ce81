//! Kernel programs written by hand, compiled and run.

mod meaning;
mod programs;
mod random;
mod running;
