//! The server's own log on standard error, for people or for machines.

mod buffer;

use std::io;

use tracing_subscriber::EnvFilter;

use self::buffer::LogBuffer;
use crate::Error;

pub use self::buffer::{LogGuard, LogThread};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Starts logging lines that pass the filter, such as `info` or `octoflow_server=debug,warn`. Once per process. Keep
/// the returned guard until the end, so that the last lines are flushed.
pub fn start(format: Format, filter: &str) -> Result<LogGuard, Error> {
    let wrong = |why: String| Error::Filter { filter: filter.to_owned(), why };
    let directives = EnvFilter::try_new(filter).map_err(|error| wrong(error.to_string()))?;
    let (buffer, lines) = LogBuffer::new(io::stderr()).map_err(Error::Threads)?;
    let log = tracing_subscriber::fmt().with_env_filter(directives).with_writer(buffer).with_ansi(false);
    let started = match format {
        Format::Text => log.try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    };
    started.map(|()| lines).map_err(|error| wrong(error.to_string()))
}
