//! Examples for the help of each command; a test parses every one.

pub(crate) const CHECK: &str = "\
Examples:
  miras check mine.miras
  miras check mine.miras yaad
  echo 'memory: matrix; bias: l2; retention: none; algo: gd' | miras check /dev/stdin
  miras check mine.miras --message-format json";

pub(crate) const EXPLAIN: &str = "\
Examples:
  miras explain yaad
  miras explain mine.miras --layer first --set retention.alpha=0.1
  miras explain mine.miras --format html --measure > mine.html
  miras explain deltanet --against gated_deltanet
  miras explain E0302";

pub(crate) const RUN: &str = "\
Examples:
  miras run mine.miras --inputs in.safetensors --out out.safetensors
  miras run yaad --inputs in.safetensors --out out.safetensors --backend reference --grad
  miras run mine.miras --inputs in.safetensors --out out.safetensors --schedule recurrent
  miras run mine.miras --inputs in.safetensors --out out.safetensors --chunk 32 --set algo.eta=0.1";

pub(crate) const FMT: &str = "\
Examples:
  miras fmt mine.miras
  miras fmt --check mine.miras other.miras";

pub(crate) const LIST: &str = "\
Examples:
  miras list
  miras list layer
  miras list codes";

pub(crate) const NEW: &str = "\
Examples:
  miras new my_memory";

pub(crate) const SHOW: &str = "\
Examples:
  miras show rule yaad
  miras show kernel mine.miras --dk 8 --dv 8 --chunk 16";

pub(crate) const BUILD: &str = "\
Examples:
  miras build yaad --emit wgsl -o kernels
  miras build mine.miras --emit spirv -o kernels --dk 32 --dv 32 --continued";

pub(crate) const DEVICES: &str = "\
Examples:
  miras devices";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  miras completions bash > ~/.local/share/bash-completion/completions/miras
  miras completions fish > ~/.config/fish/completions/miras.fish";

pub(crate) const MAN: &str = "\
Examples:
  miras man -o ~/.local/share/man/man1";

#[cfg(test)]
mod tests {
    use crate::options::Options;
    use clap::{CommandFactory, Parser};

    #[test]
    fn every_command_has_examples_and_every_example_is_a_command() {
        for command in Options::command().get_subcommands().filter(|c| c.get_name() != "help") {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = help.lines().filter_map(|l| l.find("miras ").map(|at| &l[at..])).collect();
            assert!(!lines.is_empty(), "`{}` has no example", command.get_name());
            for line in lines {
                let words = line.split(" > ").next().unwrap_or(line).split_whitespace();
                // What is echoed into a command comes before it.
                let words: Vec<&str> = match line.find("| miras ") {
                    Some(at) => line[at + 2..].split_whitespace().collect(),
                    None => words.collect(),
                };
                assert!(Options::try_parse_from(&words).is_ok(), "{line}");
            }
        }
    }
}
