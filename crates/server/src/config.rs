//! What a server is started with. Reading flags and files into it is the command's business.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use octoflow_control::expire::RetentionPolicy;

use crate::{hosts::PublicName, log::LogThread};

pub struct Config {
    pub listen: SocketAddr,
    pub controller: octoflow_control::Config,
    /// Bytes of a request's body; more is refused.
    pub longest_body: usize,
    pub limits: Limits,
    pub tls: Option<Tls>,
    /// The file whose first line is the admin's token, and the only one.
    pub admin_token_file: Option<PathBuf>,
    /// Accepts the default password over TCP, from everybody who reaches the port.
    pub allow_default_password: bool,
    /// Listens beyond this machine without TLS or with the password everybody knows.
    pub insecure: bool,
    /// Lets everybody read the metrics.
    pub metrics_open: bool,
    /// Names that clients may use besides addresses, loopback names and those of the certificate.
    pub public_names: Vec<PublicName>,
    /// What becomes of finished runs.
    pub retention: RetentionPolicy,
    /// The thread that writes the log, to be supervised with the others.
    pub log_thread: Option<LogThread>,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    Given {
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Made at the first start and kept in the data directory.
    Generated,
}

/// How much one server takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    /// Of one address; none: three quarters of all, so that a proxy has room and nobody takes everything.
    pub connections_per_address: Option<usize>,
    /// Watches and followed logs, of everybody together.
    pub streams: usize,
    pub streams_per_token: usize,
    /// Bytes of all headers of a request.
    pub longest_headers: usize,
    /// Bytes of a path with its query.
    pub longest_url: usize,
    /// How long a request may take; what is streamed may take longer.
    pub request_within: Duration,
    /// How long the next piece of a body may take to arrive, and the next piece of an answer to be taken.
    pub stalled_after: Duration,
    /// How long requests under way may take once the server closes.
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
    pub const LONGEST_BODY: usize = 16 * 1024 * 1024;

    /// A server for this machine only, with everything as it is by default.
    pub fn new(listen: SocketAddr, controller: octoflow_control::Config) -> Self {
        Self {
            listen,
            controller,
            longest_body: Self::LONGEST_BODY,
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
