//! The one place that prints. Standard output carries data, standard error carries talk.
//! Commands hand in texts and values; how they reach the terminal is decided here.

pub(crate) mod clock;
pub(crate) mod colour;
pub(crate) mod events;
pub(crate) mod findings;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod news;
pub(crate) mod nodes;
pub(crate) mod outlook;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod trial;

use std::io::{self, Write};

use colour::{Colour, Paint};

use crate::exit::Failure;

/// The two streams and how they are used in this invocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    out: Paint,
    err: Paint,
    verbose: bool,
}

impl Output {
    pub(crate) fn new(no_colour: bool, verbose: bool) -> Self {
        let out = Paint::for_stream(&io::stdout(), no_colour);
        let err = Paint::for_stream(&io::stderr(), no_colour);
        Self { out, err, verbose }
    }

    /// How standard output takes colours.
    pub(crate) fn paint(&self) -> Paint {
        self.out
    }

    /// How standard error takes colours.
    pub(crate) fn talk_paint(&self) -> Paint {
        self.err
    }

    /// Data, exactly as given.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = io::stdout().lock();
        stream.write_all(bytes)?;
        stream.flush()
    }

    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.data(&format!("{text}\n"))
    }

    /// A workload's own standard error, exactly as it was.
    pub(crate) fn error_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = io::stderr().lock();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// A line of talk. A closed standard error is no reason to stop working.
    pub(crate) fn talk(&self, text: &str) {
        let _ = self.error_bytes(format!("{text}\n").as_bytes());
    }

    /// Only with `--verbose`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            self.talk(&self.err.paint(text, Colour::Dim));
        }
    }

    pub(crate) fn warn(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.paint("warning:", Colour::Yellow)));
    }

    /// An error with all its causes, and what to do about it.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let causes: Vec<String> = error.chain().map(ToString::to_string).filter(|text| !text.is_empty()).collect();
        if !causes.is_empty() {
            self.talk(&format!("{} {}", self.err.paint("error:", Colour::Red), causes.join(": ")));
        }
        if let Some(help) = error.downcast_ref::<Failure>().and_then(Failure::advice) {
            self.talk(&format!("{} {help}", self.err.paint(" help:", Colour::Cyan)));
        }
    }
}

/// Whether writing failed only because nobody reads any more, as in `octoflow logs x | head`.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
