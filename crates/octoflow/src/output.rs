//! The only module that prints. Data goes to standard output, messages to standard error. It decides about colours, and
//! ensures that no text can control the terminal.

pub(crate) mod pages;
pub(crate) mod redact;

pub(crate) mod clock;
pub(crate) mod colour;
pub(crate) mod events;
pub(crate) mod findings;
mod followed;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod nodes;
pub(crate) mod plan;
pub(crate) mod remote_progress;
pub(crate) mod sanitize;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod trial;

use std::io::{self, IsTerminal, Write};

use colour::{Colour, Paint};
use sanitize::{Policy, escaped};

use crate::exit::Failure;

/// Both standard streams, as used in this invocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    out: Channel,
    err: Channel,
    verbose: bool,
}

/// One of the standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Out,
    Err,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    paint: Paint,
    terminal: bool,
}

impl Channel {
    fn of(stream: &impl IsTerminal, no_colour: bool) -> Self {
        Self { paint: Paint::for_stream(stream, no_colour), terminal: stream.is_terminal() }
    }
}

impl Output {
    pub(crate) fn new(no_colour: bool, verbose: bool) -> Self {
        let out = Channel::of(&io::stdout(), no_colour);
        let err = Channel::of(&io::stderr(), no_colour);
        Self { out, err, verbose }
    }

    /// Returns whether standard output takes colours.
    pub(crate) fn paint(&self) -> Paint {
        self.out.paint
    }

    /// Returns whether standard error takes colours.
    pub(crate) fn talk_paint(&self) -> Paint {
        self.err.paint
    }

    /// Returns the policy for a step's output on a stream. Pipes and files get every byte, terminals only with `--raw`.
    pub(crate) fn policy(&self, to: To, raw: bool) -> Policy {
        match self.channel(to) {
            channel if raw || !channel.terminal => Policy::Verbatim,
            channel if channel.paint.is_on() => Policy::Colours,
            _ => Policy::Plain,
        }
    }

    fn channel(&self, to: To) -> Channel {
        match to {
            To::Out => self.out,
            To::Err => self.err,
        }
    }

    /// Prints a step's output that was sanitized by the policy of its stream.
    pub(crate) fn step_output(&self, to: To, bytes: &[u8]) -> io::Result<()> {
        match to {
            To::Out => write_out(bytes),
            To::Err => write_err(bytes),
        }
    }

    /// Prints data for programs: exactly as given, except that a terminal gets control characters escaped.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        if self.out.terminal { write_out(escaped(text, false).as_bytes()) } else { write_out(text.as_bytes()) }
    }

    /// Prints text for people, with colours. Quoted text is safe for a terminal, also behind a pipe.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        write_out(escaped(text, self.out.paint.is_on()).as_bytes())
    }

    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.text(&format!("{text}\n"))
    }

    /// Prints a message. A closed standard error is ignored.
    pub(crate) fn talk(&self, text: &str) {
        let _ = write_err(escaped(&format!("{text}\n"), self.err.paint.is_on()).as_bytes());
    }

    /// Replaces earlier lines on standard error. Only for terminals.
    fn redraw(&self, erased: usize, lines: &[String]) {
        // Moves to the first of them, then clears to the end of the screen.
        let mut text = if erased == 0 { String::new() } else { format!("\x1b[{erased}A\r\x1b[J") };
        for line in lines {
            text.push_str(&escaped(line, self.err.paint.is_on()));
            text.push('\n');
        }
        let _ = write_err(text.as_bytes());
    }

    /// Prints a message only with `--verbose`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            self.talk(&self.err.paint.paint(text, Colour::Dim));
        }
    }

    pub(crate) fn warn(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.paint.paint("warning:", Colour::Yellow)));
    }

    /// Prints an error with its chain of causes, and the advice.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let causes: Vec<String> = error.chain().map(ToString::to_string).filter(|text| !text.is_empty()).collect();
        if !causes.is_empty() {
            self.talk(&format!("{} {}", self.err.paint.paint("error:", Colour::Red), causes.join(": ")));
        }
        if let Some(help) = error.downcast_ref::<Failure>().and_then(Failure::advice) {
            self.talk(&format!("{} {help}", self.err.paint.paint(" help:", Colour::Cyan)));
        }
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut stream = io::stdout().lock();
    stream.write_all(bytes)?;
    stream.flush()
}

fn write_err(bytes: &[u8]) -> io::Result<()> {
    let mut stream = io::stderr().lock();
    stream.write_all(bytes)?;
    stream.flush()
}

/// Returns whether writing failed only because the reader is gone, as in `octoflow logs x | head`.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
