//! Errors that keep a server from starting or make it stop.

use std::{io, net::SocketAddr, path::PathBuf};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the controller could not be opened")]
    Controller(#[from] octoflow_control::Error),

    #[error("what the controller has cannot be read")]
    Registry(#[from] octoflow_control::registry::Fault),

    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },

    /// A thread ended that must not end.
    #[error("{0}")]
    Thread(octoflow_control::ThreadFailure),

    #[error("the threads that answer requests could not be started")]
    Threads(#[source] io::Error),

    #[error(
        "listening on {address} is refused because {why}; {help}, or say --insecure if everybody who reaches this address may do everything"
    )]
    Unsafe { address: SocketAddr, why: &'static str, help: &'static str },

    #[error("cannot {doing} `{}`", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },

    #[error("`{}` cannot be used: {why}", path.display())]
    Unusable { path: PathBuf, why: String },

    #[error("no certificate could be made: {0}")]
    Certificate(String),

    #[error("`{filter}` is no filter for logs: {why}")]
    Filter { filter: String, why: String },
}
