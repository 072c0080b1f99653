//! Accepts connections and lets them go: no more than allowed at a time, new ones are refused once closing begins, open
//! ones may finish what they do.

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
    access::Ends,
    addresses::Addresses,
    app::App,
    executor::StreamExecutor,
    local::{LocalSocket, LocalUser},
    patient::Patient,
};

/// A client that has not finished its headers, or its handshake, by then is let go; so is one that asks nothing more.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// What may be buffered before a request's head is complete; our own limits are below it and answer in words.
const LONGEST_HEAD: usize = 400 * 1024;
/// Requests at once on one connection of HTTP/2.
const MOST_STREAMS: u32 = 250;
/// Streams that were opened and reset without an answer; whoever has more only wants to make us work.
const MOST_RESETS: usize = 100;
/// How often a silent connection of HTTP/2 is asked whether anybody is there.
const ASKED_EVERY: Duration = Duration::from_secs(60);

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub IpAddr);

const FULL: &str = "too many connections; try again in a while";

/// Connections over the unix socket. They have room of their own, so that others cannot keep the owner out.
const MOST_LOCAL: usize = 512;

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
    let local_room = Arc::new(Semaphore::new(MOST_LOCAL));
    let accepted =
        || Accepted { server: server.clone(), router: router.clone(), watcher: open.watcher(), app: app.clone() };
    let addresses = Addresses::new(app.limits.of_one_address());
    loop {
        let arrived = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted.map(|(stream, peer)| Arrived::Tcp(stream, peer)),
            accepted = next_local(local.as_ref()) => accepted.map(|(stream, user)| Arrived::Local(stream, user)),
        };
        let (stream, remote) = match arrived {
            Ok(Arrived::Tcp(stream, peer)) => (stream, peer),
            Ok(Arrived::Local(stream, user)) => {
                match local_room.clone().try_acquire_owned() {
                    Ok(permit) => drop(tokio::spawn(accepted().serve(stream, Source::Local(user), permit))),
                    Err(_) => drop(tokio::spawn(turn_away(stream, false, FULL))),
                }
                continue;
            }
            Err(error) => {
                // Out of descriptors, or the client is gone already; the next one may have more luck.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let peer = remote.ip().to_canonical();
        let refuse = |stream, why| {
            app.meter.turned_away();
            tokio::spawn(turn_away(stream, tls.is_some(), why));
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
                // Whoever fails to shake hands is gone without a word: there is no common language yet.
                if let Ok(Ok(stream)) = timeout(HEADERS_WITHIN, tls.accept(stream)).await {
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

/// A connection that was accepted.
enum Arrived {
    Tcp(TcpStream, SocketAddr),
    Local(UnixStream, LocalUser),
}

/// Where the requests of a connection come from.
#[derive(Clone, Copy)]
enum Source {
    Tcp(IpAddr, Option<Ends>),
    Local(LocalUser),
}

/// The next connection over the unix socket; never, where there is none.
async fn next_local(local: Option<&LocalSocket>) -> std::io::Result<(UnixStream, LocalUser)> {
    match local {
        Some(local) => local.accept().await,
        None => std::future::pending().await,
    }
}

fn builder(app: &App) -> Builder<StreamExecutor> {
    let mut server = Builder::new(StreamExecutor { stalled_after: app.limits.stalled_after });
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).max_buf_size(LONGEST_HEAD);
    let longest = u32::try_from(app.limits.longest_headers + app.limits.longest_url).unwrap_or(u32::MAX);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_pending_accept_reset_streams(MOST_RESETS)
        .max_local_error_reset_streams(MOST_RESETS)
        .max_header_list_size(longest)
        .keep_alive_interval(ASKED_EVERY)
        .keep_alive_timeout(HEADERS_WITHIN);
    server
}

/// One connection that was let in.
struct Accepted {
    server: Arc<Builder<StreamExecutor>>,
    router: Router,
    watcher: Watcher,
    app: App,
}

impl Accepted {
    /// Until the connection ends; then what it was let in with is given back.
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
        let stream = TokioIo::new(Patient::new(stream, self.app.limits.stalled_after));
        let connection = self.server.serve_connection_with_upgrades(stream, service).into_owned();
        // A client that goes away in the middle is its own business.
        let _ = self.watcher.watch(connection).await;
    }
}

/// There is no room. Said in the shortest way, to those who understand it.
async fn turn_away(mut stream: impl AsyncWrite + Unpin, tls: bool, why: &'static str) {
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
