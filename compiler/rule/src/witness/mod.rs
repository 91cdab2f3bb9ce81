//! Witnesses of whole rules: hand-built layers, and every layer and bias of the library.

mod library;
mod rules;
mod run;
