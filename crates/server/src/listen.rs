//! Accepts connections and lets them go: new ones are refused once closing begins, open ones may finish what they do.

use std::{net::SocketAddr, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long requests under way may take once the server closes.
const PATIENCE: Duration = Duration::from_secs(10);
/// A client that has not finished its headers by then is let go.
const HEADERS_WITHIN: Duration = Duration::from_secs(20);

pub(crate) async fn accept(listener: TcpListener, router: Router, closing: CancellationToken) {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    server.http2().timer(TokioTimer::new());
    let open = GracefulShutdown::new();
    loop {
        let (stream, _peer): (_, SocketAddr) = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or the client is gone already; the next one may have more luck.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned());
        tokio::spawn(async move {
            // A client that goes away in the middle is its own business.
            let _ = connection.await;
        });
    }
    drop(listener);
    if tokio::time::timeout(PATIENCE, open.shutdown()).await.is_err() {
        tracing::warn!("some clients did not let go in time");
    }
}
