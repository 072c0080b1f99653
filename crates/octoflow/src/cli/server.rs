//! Arguments of `octoflow server`: address, access and limits.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use octoflow_server::{Config, Limits, LogFormat, PublicName, Tls};

use super::Execution;
use crate::cli::span;

#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2746")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub execution: Execution,
    /// Let steps mount these paths of the machine and what lies below them (`hostPath`); none without
    #[arg(long, value_name = "PREFIX", env = "OCTOFLOW_ALLOW_HOST_PATH", hide_env_values = true)]
    pub allow_host_path: Vec<String>,
    /// A file whose first line is the admin's token; no other admin password is accepted then
    #[arg(long, value_name = "FILE", env = "OCTOFLOW_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Accept the default password `admin` over TCP, while nobody has chosen another: everybody who reaches this port on
    /// this machine, tasks included, is admin then
    #[arg(long, env = "OCTOFLOW_ALLOW_DEFAULT_PASSWORD", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_default_password: bool,
    /// Serve TLS with a self-signed certificate, which is generated and kept in the data directory
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub tls: bool,
    /// Serve TLS with this certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let others reach this server without TLS or with the default password
    #[arg(long)]
    pub insecure: bool,
    /// A name by which clients reach this server, besides addresses, localhost and the names of its certificate; with a
    /// port if they use one that is not the usual one. May be given several times
    #[arg(long, value_name = "NAME[:PORT]", env = "OCTOFLOW_PUBLIC_NAME", value_delimiter = ',')]
    pub public_name: Vec<PublicName>,
    /// Let everybody read /metrics
    #[arg(long)]
    pub metrics_open: bool,
    /// Connections at the same time
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    pub max_connections: usize,
    /// The same, of one address [default: three quarters of --max-connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_address: Option<u32>,
    /// Watches and followed logs at the same time
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    pub max_watches: usize,
    /// The same, of one token
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams_per_token)]
    pub max_watches_per_token: usize,
    /// Bytes of a request's body
    #[arg(long, value_name = "BYTES", default_value_t = Config::MAX_BODY)]
    pub max_body: usize,
    /// How long a request may take that is not a watch
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::parse)]
    pub request_timeout: Duration,
    /// How lines about the server's own work are written to standard error
    #[arg(long, value_enum, default_value_t = Lines::Text)]
    pub log_format: Lines,
    /// Which of them, such as debug or octoflow_server=debug,info
    #[arg(long, value_name = "FILTER", env = "OCTOFLOW_LOG", default_value = "info")]
    pub log_filter: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lines {
    Text,
    Json,
}

impl Server {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            connections_per_address: self.max_connections_per_address.map(|most| most as usize),
            streams: self.max_watches,
            streams_per_token: self.max_watches_per_token,
            request_within: self.request_timeout,
            ..Limits::default()
        }
    }

    pub(crate) fn tls(&self) -> Option<Tls> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::Given { certificate: certificate.clone(), key: key.clone() }),
            _ => self.tls.then_some(Tls::Generated),
        }
    }
}

impl From<Lines> for LogFormat {
    fn from(lines: Lines) -> Self {
        match lines {
            Lines::Text => Self::Text,
            Lines::Json => Self::Json,
        }
    }
}
