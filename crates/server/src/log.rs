//! What the server says about itself while it runs: lines on standard error, for people or for machines.

mod gather;

use std::io;

use tracing_subscriber::EnvFilter;

use self::gather::Gather;
use crate::Error;

pub use self::gather::{Lines, LogThread};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Starts to write lines that pass the filter, such as `info` or `octoflow_server=debug,warn`. Once in a process. What it
/// gives is to be kept until nothing more is said.
pub fn start(format: Format, filter: &str) -> Result<Lines, Error> {
    let wrong = |why: String| Error::Filter { filter: filter.to_owned(), why };
    let directives = EnvFilter::try_new(filter).map_err(|error| wrong(error.to_string()))?;
    let (gather, lines) = Gather::new(io::stderr()).map_err(Error::Threads)?;
    let log = tracing_subscriber::fmt().with_env_filter(directives).with_writer(gather).with_ansi(false);
    let started = match format {
        Format::Text => log.try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    };
    started.map(|()| lines).map_err(|error| wrong(error.to_string()))
}
