//! The HTTP faces of the house: Kubernetes-style, Argo Server's shapes, and our own. The only crate that is async.
//! It decides nothing about runs or objects; it turns requests into calls of `control`, and answers into bytes.

mod access;
mod answer;
mod app;
mod argo;
mod basic;
mod call;
mod config;
mod error;
mod fault;
mod kube;
mod listen;
mod own;
mod query;
mod route;
mod server;

pub use config::Config;
pub use error::Error;
pub use server::serve;
