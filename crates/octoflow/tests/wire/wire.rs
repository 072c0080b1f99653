//! What the tests of the real binary share: the server as a child process, as much HTTP as they need, what a command
//! left behind, and waiting for the outside world. A suite takes it in by its path; nothing here knows a suite.

#![allow(dead_code, reason = "the suites share it, and none uses all of it")]

pub(crate) mod http;
pub(crate) mod processes;
pub(crate) mod said;
pub(crate) mod server;
pub(crate) mod waiting;
