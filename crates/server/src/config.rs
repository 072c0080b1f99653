//! Configuration of a server. The command line reads flags and files into it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use octoflow_control::expire::RetentionPolicy;

use crate::{gate::hosts::PublicName, log::LogThread};

pub struct Config {
    pub listen: SocketAddr,
    pub controller: octoflow_control::Config,
    /// Maximum bytes of a request body.
    pub longest_body: usize,
    pub limits: Limits,
    pub tls: Option<Tls>,
    /// File whose first line is the admin's token, which is then the only credential of the admin.
    pub admin_token_file: Option<PathBuf>,
    /// Accept the default password over TCP, from everybody who reaches the port.
    pub allow_default_password: bool,
    /// Allow listening beyond this machine without TLS or with the default password.
    pub insecure: bool,
    /// Serve the metrics without a token.
    pub metrics_open: bool,
    /// Names that clients may use besides addresses, loopback names and those of the certificate.
    pub public_names: Vec<PublicName>,
    /// Retention of finished runs.
    pub retention: RetentionPolicy,
    /// Thread that writes the log, to be supervised with the others.
    pub log_thread: Option<LogThread>,
}

/// Source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    Given {
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Generated at the first start and kept in the data directory.
    Generated,
}

/// Resource limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    /// Connections per address. `None`: three quarters of all, so that a proxy has room and no client takes everything.
    pub connections_per_address: Option<usize>,
    /// Watches and followed logs in total.
    pub streams: usize,
    pub streams_per_token: usize,
    /// Bytes of all headers of a request.
    pub longest_headers: usize,
    /// Bytes of path and query.
    pub longest_url: usize,
    /// Timeout of a request; streams may take longer.
    pub request_within: Duration,
    /// Timeout for the next piece of a body to arrive, and for the next piece of an answer to be taken.
    pub stalled_after: Duration,
    /// Grace period for open requests at shutdown.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: None,
            streams: 2048,
            streams_per_token: 1024,
            longest_headers: 64 * 1024,
            longest_url: 16 * 1024,
            request_within: Duration::from_secs(60),
            stalled_after: Duration::from_secs(30),
            patience: Duration::from_secs(10),
        }
    }
}

impl Limits {
    pub(crate) fn of_one_address(&self) -> usize {
        self.connections_per_address.unwrap_or((self.connections - self.connections / 4).max(1))
    }
}

impl Config {
    pub const MAX_BODY: usize = 16 * 1024 * 1024;

    /// Default configuration: a server for this machine only.
    pub fn new(listen: SocketAddr, controller: octoflow_control::Config) -> Self {
        Self {
            listen,
            controller,
            longest_body: Self::MAX_BODY,
            limits: Limits::default(),
            tls: None,
            admin_token_file: None,
            allow_default_password: false,
            insecure: false,
            metrics_open: false,
            public_names: Vec::new(),
            retention: RetentionPolicy::default(),
            log_thread: None,
        }
    }
}
