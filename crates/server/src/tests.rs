//! The server as its clients meet it: every route with every kind of caller, limits, TLS, and what is written down.

mod browser;
mod endpoint;
mod gate;
mod http2;
mod keys;
mod local;
mod outage;
mod scoped;
mod stage;
mod tokens;
mod walk;
