//! Accepts connections up to a limit. At shutdown new connections are refused and open ones are drained.

pub(crate) mod executor;
pub(crate) mod expose;
pub(crate) mod local;
pub(crate) mod server_file;
pub(crate) mod streams;
pub(crate) mod tls;
pub(crate) mod write_timeout;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::{Request, body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    gate::{access::Ends, addresses::Addresses},
    listen::{
        executor::StreamExecutor,
        local::{LocalSocket, LocalUser},
        write_timeout::WriteTimeout,
    },
};

/// Timeout for headers and for the TLS handshake; also the idle timeout.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of the buffer for a request's head. Our own limits are below it and have readable errors.
const MAX_HEAD_BYTES: usize = 400 * 1024;
/// Concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 250;
/// Maximum number of streams that were opened and reset without an answer; more are an attack.
const MAX_RESETS: usize = 100;
/// Interval of pings on an idle HTTP/2 connection.
const PING_INTERVAL: Duration = Duration::from_secs(60);

/// Address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub IpAddr);

const FULL: &str = "too many connections; try again in a while";

/// Maximum number of unix socket connections. Counted separately, so that others cannot lock out the owner.
const MAX_LOCAL_CONNECTIONS: usize = 512;

pub(crate) struct Endpoint {
    pub listener: TcpListener,
    pub local: Option<LocalSocket>,
    pub tls: Option<TlsAcceptor>,
    pub router: Router,
    pub app: App,
}

pub(crate) async fn accept(endpoint: Endpoint, closing: CancellationToken) {
    let Endpoint { listener, local, tls, router, app } = endpoint;
    let server = Arc::new(builder(&app));
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(app.limits.connections));
    let local_room = Arc::new(Semaphore::new(MAX_LOCAL_CONNECTIONS));
    let accepted =
        || Accepted { server: server.clone(), router: router.clone(), watcher: open.watcher(), app: app.clone() };
    let addresses = Addresses::new(app.limits.of_one_address());
    loop {
        let arrived = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted.map(|(stream, peer)| Connection::Tcp(stream, peer)),
            accepted = next_local(local.as_ref()) => accepted.map(|(stream, user)| Connection::Local(stream, user)),
        };
        let (stream, remote) = match arrived {
            Ok(Connection::Tcp(stream, peer)) => (stream, peer),
            Ok(Connection::Local(stream, user)) => {
                match local_room.clone().try_acquire_owned() {
                    Ok(permit) => drop(tokio::spawn(accepted().serve(stream, Source::Local(user), permit))),
                    Err(_) => drop(tokio::spawn(refuse_connection(stream, false, FULL))),
                }
                continue;
            }
            Err(error) => {
                // Out of descriptors, or the client is gone already; the next one may succeed.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let peer = remote.ip().to_canonical();
        let refuse = |stream, why| {
            app.meter.connection_refused();
            tokio::spawn(refuse_connection(stream, tls.is_some(), why));
        };
        let Some(own) = addresses.enter(peer) else {
            refuse(stream, "too many connections from your address; close some (--max-connections-per-address)");
            continue;
        };
        let Ok(all) = room.clone().try_acquire_owned() else {
            refuse(stream, FULL);
            continue;
        };
        let permit = (all, own);
        let _ = stream.set_nodelay(true);
        let ends = stream.local_addr().ok().map(|own| Ends { peer: remote, own });
        let (accepted, peer) = (accepted(), Source::Tcp(peer, ends));
        match tls.clone() {
            None => drop(tokio::spawn(accepted.serve(stream, peer, permit))),
            Some(tls) => drop(tokio::spawn(async move {
                // A failed handshake gets no answer: there is no common protocol yet.
                if let Ok(Ok(stream)) = timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                    accepted.serve(stream, peer, permit).await;
                }
            })),
        }
    }
    drop((listener, local));
    if timeout(app.limits.patience, open.shutdown()).await.is_err() {
        tracing::warn!("some clients did not let go in time");
    }
}

/// Accepted connection.
enum Connection {
    Tcp(TcpStream, SocketAddr),
    Local(UnixStream, LocalUser),
}

/// Origin of a connection's requests.
#[derive(Clone, Copy)]
enum Source {
    Tcp(IpAddr, Option<Ends>),
    Local(LocalUser),
}

/// Accepts the next connection of the unix socket; never completes if there is none.
async fn next_local(local: Option<&LocalSocket>) -> std::io::Result<(UnixStream, LocalUser)> {
    match local {
        Some(local) => local.accept().await,
        None => std::future::pending().await,
    }
}

fn builder(app: &App) -> Builder<StreamExecutor> {
    let mut server = Builder::new(StreamExecutor { stalled_after: app.limits.stalled_after });
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let longest = u32::try_from(app.limits.longest_headers + app.limits.longest_url).unwrap_or(u32::MAX);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .max_header_list_size(longest)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(HEADER_TIMEOUT);
    server
}

/// One admitted connection.
struct Accepted {
    server: Arc<Builder<StreamExecutor>>,
    router: Router,
    watcher: Watcher,
    app: App,
}

impl Accepted {
    /// Serves the connection until it ends; then its permit is released.
    async fn serve<S>(self, stream: S, source: Source, _permit: impl Send + 'static)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let _counted = self.app.meter.connected();
        let inner = TowerToHyperService::new(self.router);
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            match source {
                Source::Tcp(peer, ends) => {
                    request.extensions_mut().insert(Peer(peer));
                    if let Some(ends) = ends {
                        request.extensions_mut().insert(ends);
                    }
                }
                Source::Local(user) => drop(request.extensions_mut().insert(user)),
            }
            inner.call(request)
        });
        let stream = TokioIo::new(WriteTimeout::new(stream, self.app.limits.stalled_after));
        let connection = self.server.serve_connection_with_upgrades(stream, service).into_owned();
        // An aborted connection is not our error.
        let _ = self.watcher.watch(connection).await;
    }
}

/// Refuses a connection with the shortest possible answer, where the client can read it.
async fn refuse_connection(mut stream: impl AsyncWrite + Unpin, tls: bool, why: &'static str) {
    if !tls {
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: text/plain\r\n\
             content-length: {}\r\n\r\n{why}",
            why.len()
        );
        let _ = timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
        let _ = timeout(Duration::from_secs(1), stream.shutdown()).await;
    }
}
