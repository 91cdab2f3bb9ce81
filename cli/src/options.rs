//! The command line as data.

use crate::backend::{Backend, Compared, ScheduleName};
use crate::console::{Colour, Messages};
use crate::examples;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The longest chunk, in tokens, as for `chunk:` in a layer.
const MAX_CHUNK: i64 = 65_536;

/// Miras: memory layers from four choices.
#[derive(Debug, Parser)]
#[command(name = "miras", bin_name = "miras", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Options {
    /// How diagnostics are written to the error output
    #[arg(long, global = true, value_enum, default_value_t = Messages::Human, value_name = "FORM")]
    pub message_format: Messages,
    /// When to use colours (`auto` heeds NO_COLOR)
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parse, resolve, type-check and derive every layer of the files
    Check(Check),
    /// Show how the update rule follows from the four choices
    Explain(Explain),
    /// Run a layer on tensors from a file
    Run(Run),
    /// Check a layer's formulas, schedules and backends against each other, with figures
    Verify(Verify),
    /// Time a layer on synthetic data, schedules and backends side by side
    Bench(Bench),
    /// Set files well, in place
    Fmt(Fmt),
    /// List the library's definitions, or the codes of diagnostics
    List(List),
    /// Begin a layer of your own: a folder NAME with the layer, inputs and a page about them
    New(New),
    /// Show what a stage of the compiler makes of a layer
    Show(Show),
    /// Write a layer's kernels, and the plan by which any program can run them
    Build(Build),
    /// List the adapters of this machine and which one Miras would use
    #[command(after_long_help = examples::DEVICES)]
    Devices,
    /// Print what a shell needs to complete commands and options
    Completions(Completions),
    /// Write manual pages
    Man(Man),
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::CHECK)]
pub(crate) struct Check {
    /// Files, or names of library layers
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Which layer of which file.
#[derive(Args, Debug)]
pub(crate) struct Layer {
    /// A file, or the name of a library layer
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The layer, where the file has several, by its name or its number from 0
    #[arg(long, value_name = "NAME")]
    pub layer: Option<String>,
    /// Change a clause, a parameter of a clause or of the layer, e.g. `--set chunk=32`, `--set 'memory=mlp(3)'`
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::EXPLAIN)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub layer: Layer,
    /// The form of the explanation; a page about a code is text only
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Show the layer beside another one, a file or a library layer
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// The other layer, where its file has several
    #[arg(long, value_name = "NAME", requires = "against")]
    pub against_layer: Option<String>,
    /// Measure on synthetic data how far chunks are from the recurrence; not with `--against`
    #[arg(long, conflicts_with = "against")]
    pub measure: bool,
}

/// Forms of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Latex,
    Html,
    Json,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::RUN)]
pub(crate) struct Run {
    #[command(flatten)]
    pub layer: Layer,
    /// The tensors that the layer reads
    #[arg(long, value_name = "IN.safetensors")]
    pub inputs: PathBuf,
    /// Where the results go
    #[arg(long, value_name = "OUT.safetensors")]
    pub out: PathBuf,
    /// Where to run
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,
    /// The order in time
    #[arg(long, value_enum)]
    pub schedule: Option<ScheduleName>,
    /// Tokens in a chunk, in place of the layer's own number
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=MAX_CHUNK))]
    pub chunk: Option<u32>,
    /// Compute the gradients d.* from the cotangents grad.*
    #[arg(long)]
    pub grad: bool,
    /// Pass over tensors that are not inputs of the layer
    #[arg(long)]
    pub allow_extra: bool,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  miras verify yaad
  miras verify mine.miras --layer a --tokens 300 --dk 32 --dv 32 --plot error.svg
  miras verify mine.miras --inputs IN.safetensors --backend cpu

Exit status: 0 every promise holds, 1 a promise is broken or the program or data is at fault.")]
pub(crate) struct Verify {
    #[command(flatten)]
    pub layer: Layer,
    /// Data to verify on, in place of synthetic data
    #[arg(long, value_name = "IN.safetensors", conflicts_with_all = ["batch", "heads", "tokens", "dk", "dv", "seed"])]
    pub inputs: Option<PathBuf>,
    /// The backend to verify; `auto`: the CPU and, where there is any, the GPU
    #[arg(long, value_enum, default_value_t = Compared(Backend::Auto))]
    pub backend: Compared,
    /// Tokens in a chunk, in place of the layer's own number
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub chunk: Option<u32>,
    /// Rows of synthetic data
    #[arg(long, default_value_t = 1, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Heads of synthetic data
    #[arg(long, default_value_t = 2, value_name = "H", value_parser = clap::value_parser!(u32).range(1..))]
    pub heads: u32,
    /// Tokens of synthetic data; by default two chunks and a few tokens
    #[arg(long, value_name = "T")]
    pub tokens: Option<u32>,
    /// Length of keys and queries of synthetic data
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub dk: u32,
    /// Length of values of synthetic data
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub dv: u32,
    /// Seed of synthetic data
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Where to write a plot of the chunked schedule's error by chunk length
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  miras bench yaad
  miras bench mine.miras --backend gpu --heads 16 --tokens 8192 --grad

Every row is run in turn, so that a busy machine slows all of them; the ratio is to the first row.")]
pub(crate) struct Bench {
    #[command(flatten)]
    pub layer: Layer,
    /// Where to run; `auto`: the CPU and, where there is a real one, the GPU
    #[arg(long, value_enum, default_value_t = Compared(Backend::Auto))]
    pub backend: Compared,
    /// Tokens in a chunk, in place of the layer's own number
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub chunk: Option<u32>,
    /// Rows
    #[arg(long, default_value_t = 1, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Heads
    #[arg(long, default_value_t = 4, value_name = "H", value_parser = clap::value_parser!(u32).range(1..))]
    pub heads: u32,
    /// Tokens
    #[arg(long, default_value_t = 2048, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens: u32,
    /// Length of keys and queries
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub dk: u32,
    /// Length of values
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub dv: u32,
    /// Forward and backward pass together
    #[arg(long)]
    pub grad: bool,
    /// Timed runs of each row
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::FMT)]
pub(crate) struct Fmt {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing; name the files that are not well set and give status 1
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::LIST)]
pub(crate) struct List {
    /// What to list; by default all of the library
    #[arg(value_enum, value_name = "WHAT")]
    pub what: Option<Listed>,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Algorithms
    Algo,
    /// Attentional biases
    Bias,
    /// Layers
    Layer,
    /// Memories
    Memory,
    /// Retentions
    Retention,
    /// Codes of diagnostics, each with its title
    Codes,
}

impl Listed {
    /// The folder of the library.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Listed::Algo => "algo",
            Listed::Bias => "bias",
            Listed::Layer => "layer",
            Listed::Memory => "memory",
            Listed::Retention => "retention",
            Listed::Codes => "",
        }
    }
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::NEW)]
pub(crate) struct New {
    /// The layer's name
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::SHOW)]
pub(crate) struct Show {
    /// What to show
    #[arg(value_enum, value_name = "STAGE")]
    pub stage: Shown,
    #[command(flatten)]
    pub layer: Layer,
    /// Length of keys and queries (for tensor, kernel, clif and wgsl)
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub dk: u64,
    /// Length of values (for tensor, kernel, clif and wgsl)
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub dv: u64,
    /// The order in time (for plan and what follows)
    #[arg(long, value_enum)]
    pub schedule: Option<ScheduleName>,
    /// Tokens in a chunk
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=MAX_CHUNK))]
    pub chunk: Option<u32>,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::BUILD)]
pub(crate) struct Build {
    #[command(flatten)]
    pub layer: Layer,
    /// The language of the kernels
    #[arg(long, value_enum)]
    pub emit: Emitted,
    /// The folder for kernels.* and plan.json (with `--emit ir`: kernels.txt); the same for whole blocks of tokens, where
    /// the layer has such a form, as blocks.* (one kernel) and launches.* (several launches); made where it is missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Length of keys and queries
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub dk: u64,
    /// Length of values
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub dv: u64,
    /// The order in time
    #[arg(long, value_enum)]
    pub schedule: Option<ScheduleName>,
    /// Tokens in a chunk
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=MAX_CHUNK))]
    pub chunk: Option<u32>,
    /// Kernels that continue a stream from `state.*` instead of beginning one from `memory.*`
    #[arg(long)]
    pub continued: bool,
}

/// Languages of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emitted {
    /// WebGPU's language
    Wgsl,
    /// Vulkan's, as naga writes it
    Spirv,
    /// Metal's, as naga writes it
    Msl,
    /// DirectX's, as naga writes it
    Hlsl,
    /// OpenGL ES's, as naga writes it
    Glsl,
    /// The kernel program itself, as text
    Ir,
}

/// What `show` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// The syntax tree
    Ast,
    /// The elaborated layer
    Spec,
    /// The derived update rule
    Rule,
    /// Its order in time
    Plan,
    /// The graph over named axes
    Tensor,
    /// The loops and products of one task
    Kernel,
    /// Its machine code before register allocation
    Clif,
    /// The same program for a GPU
    Wgsl,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
#[command(after_long_help = examples::MAN)]
pub(crate) struct Man {
    /// The folder for the pages; made where it is missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}

/// `name=value`.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        Some(_) | None => Err("give a name and a value, e.g. `chunk=32` or `retention.alpha=0.1`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn a_value_may_hold_an_equals_sign() {
        assert_eq!(assignment("memory = mlp(2, act=relu)"), Ok(("memory".into(), "mlp(2, act=relu)".into())));
        assert!(assignment("chunk").is_err());
        assert!(assignment("=3").is_err());
    }
}
