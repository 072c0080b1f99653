//! The HTTP faces of the controller: Kubernetes-style, Argo Server's API, and our own. The only async crate. It decides
//! nothing about runs or objects; it translates requests into calls of `control`, and results into responses.

mod access;
mod addresses;
mod answer;
mod app;
mod area;
mod argo;
mod audit;
mod basic;
mod browser;
mod call;
mod config;
mod error;
mod executor;
mod expose;
mod fault;
mod follow;
mod gate;
mod hosts;
mod kube;
mod listen;
mod local;
mod log;
mod meter;
mod openapi;
mod own;
mod query;
mod route;
mod rules;
mod server;
mod server_file;
mod space;
mod stream;
mod streams;
mod tls;
mod write_timeout;

pub use access::first::read as first_token;
pub use config::{Config, Limits, Tls};
pub use error::Error;
pub use hosts::{InvalidPublicName, PublicName};
pub use local::connect as connect_local;
pub use log::{Format as LogFormat, LogGuard, LogThread, start as start_log};
pub use server::{Started, serve};
pub use server_file::ServerFile;

#[cfg(test)]
mod tests;
