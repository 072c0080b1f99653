//! Test harness shared by the suites of the real binary: the server as a child process, a minimal HTTP client, results
//! of commands, and waiting. A suite includes it by its path; nothing here knows a suite.

#![allow(dead_code, reason = "the suites share it, and none uses all of it")]

pub(crate) mod http;
pub(crate) mod processes;
pub(crate) mod said;
pub(crate) mod server;
pub(crate) mod waiting;
