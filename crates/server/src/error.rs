//! Why a server could not start or had to stop.

use std::{io, net::SocketAddr};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the house could not be opened")]
    House(#[from] octoflow_control::Error),

    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },

    #[error("the threads that answer requests could not be started")]
    Threads(#[source] io::Error),
}
