//! What a server is started with. Reading flags and files into it is the command's business.

use std::net::SocketAddr;

pub struct Config {
    pub listen: SocketAddr,
    pub house: octoflow_control::Config,
    /// Bytes of a request's body; more is refused.
    pub longest_body: usize,
}

impl Config {
    pub const LONGEST_BODY: usize = 16 * 1024 * 1024;
}
