//! What the server says about itself while it runs: lines on standard error, for people or for machines.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::Error;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Starts to write lines that pass the filter, such as `info` or `octoflow_server=debug,warn`. Once in a process.
pub fn start(format: Format, filter: &str) -> Result<(), Error> {
    let wrong = |why: String| Error::Filter { filter: filter.to_owned(), why };
    let directives = EnvFilter::try_new(filter).map_err(|error| wrong(error.to_string()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(directives).with_writer(io::stderr).with_ansi(false);
    let started = match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| wrong(error.to_string()))
}
