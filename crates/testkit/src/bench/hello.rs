//! The yardstick of HTTP: the smallest server that the framework of ours can be, in a process of its own. It reads the
//! body it is sent and says hello.

use std::{
    io::{Write, stderr},
    net::Ipv4Addr,
};

use axum::{Router, body::Bytes, routing::any};
use tokio::{net::TcpListener, runtime::Runtime};

use super::measure::Outcome;

/// Until somebody ends the process. Where it listens is said in the words of the real server.
pub(super) fn serve() -> Outcome<()> {
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        writeln!(stderr(), "hello listens on http://{}", listener.local_addr()?)?;
        let hello = |_: Bytes| async { "hello" };
        axum::serve(listener, Router::new().fallback(any(hello))).await?;
        Ok(())
    })
}
