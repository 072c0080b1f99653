//! The HTTP faces of the controller: Kubernetes-style, Argo Server's shapes, and our own. The only crate that is async.
//! It decides nothing about runs or objects; it turns requests into calls of `control`, and answers into bytes.

mod access;
mod addresses;
mod answer;
mod app;
mod area;
mod argo;
mod audit;
mod basic;
mod beacon;
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
mod patient;
mod query;
mod route;
mod rules;
mod server;
mod space;
mod stream;
mod streams;
mod tls;

pub use access::first::read as first_token;
pub use beacon::Beacon;
pub use config::{Config, Limits, Tls};
pub use error::Error;
pub use hosts::{NoPublicName, PublicName};
pub use local::connect as connect_local;
pub use log::{Format as LogFormat, Lines as LogLines, LogThread, start as start_log};
pub use server::{Started, serve};

#[cfg(test)]
mod tests;
