//! Where text goes: results to the output, diagnostics to the error output.

use crate::render::{Renderer, json};
use crate::{DONE, FAULT, USAGE};
use base::{Diagnostic, SourceMap};
use clap::ValueEnum;
use miras_base as base;
use std::io::{ErrorKind, IsTerminal, Write};

/// Forms of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Messages {
    /// With the source and labels, for people
    Human,
    /// One JSON object a line, for programs
    Json,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// Where the error output is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The two outputs of the command.
pub struct Console<'a> {
    out: Box<dyn Write + 'a>,
    err: Box<dyn Write + 'a>,
    messages: Messages,
    renderer: Renderer,
    /// Whether the error output shows colours where nothing else is said.
    lively: bool,
    /// Why the output cannot be written to any more.
    lost: Option<std::io::Error>,
}

impl<'a> Console<'a> {
    /// A console over two writers, without colours.
    pub fn new(out: impl Write + 'a, err: impl Write + 'a) -> Console<'a> {
        Console {
            out: Box::new(out),
            err: Box::new(err),
            messages: Messages::Human,
            renderer: Renderer::plain(),
            lively: false,
            lost: None,
        }
    }

    /// The console of this process.
    pub fn of_process() -> Console<'static> {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let mut console = Console::new(std::io::stdout(), std::io::stderr());
        console.lively = std::io::stderr().is_terminal() && !set("NO_COLOR") && !dumb;
        console
    }

    pub(crate) fn set(&mut self, messages: Messages, colour: Colour) {
        self.messages = messages;
        let colours = match colour {
            Colour::Auto => self.lively,
            Colour::Always => true,
            Colour::Never => false,
        };
        self.renderer = if colours { Renderer::coloured() } else { Renderer::plain() };
    }

    /// Writes to the output. That a reader went away is no fault; anything else is told at the end.
    pub(crate) fn say(&mut self, text: &str) {
        if self.lost.is_none()
            && let Err(error) = self.out.write_all(text.as_bytes())
        {
            self.lost = Some(error);
        }
    }

    /// Writes diagnostics to the error output; [`FAULT`] where one is an error.
    pub(crate) fn tell(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) -> u8 {
        for diagnostic in diagnostics {
            let text = match self.messages {
                Messages::Human => self.renderer.render(diagnostic, sources),
                Messages::Json => json(diagnostic, sources),
            };
            let _ = self.err.write_all(text.as_bytes());
        }
        if diagnostics.iter().any(Diagnostic::is_error) { FAULT } else { DONE }
    }

    /// Tells of a diagnostic that has no place in any source.
    pub fn report_bug(&mut self, bug: &Diagnostic) {
        self.tell(std::slice::from_ref(bug), &SourceMap::new());
    }

    /// What clap has to say: help and version to the output, mistakes to the error output.
    pub(crate) fn usage(&mut self, usage: &clap::Error) -> u8 {
        let text = usage.render();
        if usage.use_stderr() {
            let text = if self.lively { text.ansi().to_string() } else { text.to_string() };
            let _ = self.err.write_all(text.as_bytes());
            return USAGE;
        }
        self.say(&text.to_string());
        self.close(DONE)
    }

    /// Flushes; the status becomes [`FAULT`] where results could not be written.
    pub(crate) fn close(&mut self, status: u8) -> u8 {
        let flushed = self.out.flush();
        let lost = self.lost.take().or(flushed.err());
        match lost.filter(|e| e.kind() != ErrorKind::BrokenPipe) {
            None => status,
            Some(error) => {
                let diagnostic = Diagnostic::new(
                    base::diagnostic::code::WRITE_FILE,
                    format!("the output cannot be written: {error}"),
                )
                .with_help("check where the output is sent to, e.g. the space left on the disk");
                self.tell(&[diagnostic], &SourceMap::new());
                FAULT
            }
        }
    }
}
