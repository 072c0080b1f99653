//! Tests of the server as clients see it: every route with every kind of caller, limits, TLS, and the audit log.

mod browser;
mod endpoint;
mod gate;
mod http2;
mod keys;
mod local;
mod outage;
mod pipeline_features;
mod pipeline_tokens;
#[path = "../../octoflow/tests/wire/samples.rs"]
mod samples;
mod scoped;
mod stage;
mod tokens;
mod walk;
