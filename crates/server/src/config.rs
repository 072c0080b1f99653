//! What a server is started with. Reading flags and files into it is the command's business.

use std::net::SocketAddr;

use octoflow_control::expire::RetentionPolicy;

pub struct Config {
    pub listen: SocketAddr,
    pub house: octoflow_control::Config,
    /// Bytes of a request's body; more is refused.
    pub longest_body: usize,
    /// What becomes of finished runs.
    pub retention: RetentionPolicy,
}

impl Config {
    pub const LONGEST_BODY: usize = 16 * 1024 * 1024;
}
