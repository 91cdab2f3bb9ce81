//! The subcommands, one file each.

mod bench;
mod build;
mod check;
mod devices;
mod explain;
mod fmt;
mod list;
mod new;
mod pages;
mod run;
mod show;
mod verify;

use crate::console::Console;
use crate::options::Command;
use miras_driver as driver;
use miras_spec as spec;

/// Does what a subcommand says and gives the exit status.
pub(crate) fn run(command: &Command, console: &mut Console<'_>) -> u8 {
    match command {
        Command::Check(options) => check::check(options, console),
        Command::Explain(options) => explain::run(options, console),
        Command::Run(options) => run::run(options, console),
        Command::Bench(options) => bench::bench(options, console),
        Command::Verify(options) => verify::verify(options, console),
        Command::Fmt(options) => fmt::fmt(options, console),
        Command::List(options) => list::list(options, console),
        Command::New(options) => new::new(options, console),
        Command::Show(options) => show::show(options, console),
        Command::Build(options) => build::build(options, console),
        Command::Devices => devices::devices(console),
        Command::Completions(options) => pages::completions(options, console),
        Command::Man(options) => pages::man(options, console),
    }
}

fn session<'a>() -> driver::Session<'a> {
    driver::Session::new(spec::Library::standard())
}

/// A class's name.
fn class(kind: miras_rule::ClassKind) -> &'static str {
    use miras_rule::ClassKind;
    match kind {
        ClassKind::Linear => "linear",
        ClassKind::Delta => "delta",
        ClassKind::DualLinear => "dual-linear",
        ClassKind::General => "general",
        ClassKind::NonParametric => "nonparametric",
        ClassKind::TokenByToken => "token by token",
    }
}
