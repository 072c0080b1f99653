//! The HTTP faces of the controller: Kubernetes-style, Argo Server's API, and our own. The only async crate. It decides
//! nothing about runs or objects; it translates requests into calls of `control`, and results into responses.

mod answer;
mod app;
mod call;
mod config;
mod error;
mod faces;
mod gate;
mod listen;
mod log;
mod route;
mod server;
mod space;

pub use config::{Config, Limits, Tls};
pub use error::Error;
pub use gate::access::first::read as first_token;
pub use gate::hosts::{InvalidPublicName, PublicName};
pub use listen::local::connect as connect_local;
pub use listen::server_file::ServerFile;
pub use log::{Format as LogFormat, LogGuard, LogThread, start as start_log};
pub use server::{Started, serve};

#[cfg(test)]
mod tests;
