//! Witnesses: every strategy's solution evaluated on random data satisfies the stationarity of its objective.

mod maps;
mod norms;
mod objectives;
mod refusals;
mod world;
