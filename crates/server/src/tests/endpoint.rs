//! Over a real socket: TLS with a client that verifies, connection limits, and clients that stall.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::stage::Stage;
use crate::{
    Limits, Tls,
    gate::access::AdminSource,
    listen::{self, Endpoint, tls},
};

/// The stage with a listening endpoint.
pub(super) async fn open(stage: &Stage, tls: bool) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = tls.then(|| tls::ready(&Tls::Generated, stage.dir.path(), address.ip()).unwrap().acceptor);
    let endpoint = Endpoint { listener, local: None, tls, router: stage.router.clone(), app: stage.app.clone() };
    let closing = stage.app.closing.clone();
    let task = tokio::spawn(listen::accept(endpoint, closing.clone()));
    (address, closing, task)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn everything(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that was reset has sent all it had.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_knows_the_made_certificate_is_served_and_one_that_does_not_refuses() {
    let stage = Stage::new();
    let (address, closing, task) = open(&stage, true).await;
    let pem = std::fs::read(stage.dir.path().join("tls/cert.pem")).unwrap();
    blocking(move || {
        let certificate = Certificate::from_pem(&pem).unwrap();
        let agent = |roots: RootCerts| -> Agent {
            let tls = TlsConfig::builder().root_certs(roots).build();
            Agent::config_builder().tls_config(tls).proxy(None).build().into()
        };
        let knows = agent(RootCerts::new_with_certs(&[certificate]));
        for host in ["127.0.0.1", "localhost"] {
            let url = format!("https://{host}:{}/livez", address.port());
            assert_eq!(knows.get(&url).call().unwrap().body_mut().read_to_string().unwrap(), "ok");
        }
        let doubts = agent(RootCerts::WebPki);
        assert!(doubts.get(format!("https://{address}/livez")).call().is_err());
    })
    .await;
    closing.cancel();
    task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_room_there_is_connections_are_refused_with_words() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let (address, closing, task) = open(&stage, false).await;
    blocking(move || {
        let mut inside: Vec<TcpStream> = (0..2).map(|_| connect(address)).collect();
        for one in &mut inside {
            one.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut answer = [0; 12];
            one.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
        }
        let refused = everything(connect(address));
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"), "{refused}");
        drop(inside);
        loop {
            let mut again = connect(address);
            // The server notices closed connections with some delay.
            again.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
            if everything(again).starts_with("HTTP/1.1 200") {
                break;
            }
        }
    })
    .await;
    assert!(stage.app.meter.connections_refused() >= 1);
    closing.cancel();
    task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_does_not_take_the_room_of_others() {
    let limits = Limits { connections: 8, connections_per_address: Some(2), ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let (address, closing, task) = open(&stage, false).await;
    blocking(move || {
        let alive = |stream: &mut TcpStream| {
            stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
        };
        let mut inside: Vec<TcpStream> = (0..2).map(|_| connect(address)).collect();
        inside.iter_mut().for_each(alive);
        let refused = everything(connect(address));
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("your address"), "{refused}");
        // All of 127.0.0.0/8 is this machine, so another client can be simulated.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
        let other = tokio::runtime::Handle::current().block_on(socket.connect(address)).unwrap();
        let mut other = other.into_std().unwrap();
        other.set_nonblocking(false).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        alive(&mut other);
    })
    .await;
    assert_eq!(stage.app.meter.connections_refused(), 1);
    closing.cancel();
    task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_let_go() {
    let limits = Limits { stalled_after: Duration::from_millis(200), ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let (address, closing, task) = open(&stage, false).await;
    let mut stream = blocking(move || connect(address)).await;
    // Answers pile up until the buffers are full; then the server times out.
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\ntoken: admin\r\n\r\n".repeat(64);
    let written = blocking(move || {
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        for _ in 0..100_000 {
            if let Err(error) = stream.write_all(&request) {
                return Some(error.kind());
            }
        }
        None
    })
    .await;
    let gone = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(written.is_some_and(|kind| gone.contains(&kind)), "{written:?}");
    closing.cancel();
    task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_requests_finish_and_refuses_new_connections() {
    let stage = Stage::new();
    let (address, closing, task) = open(&stage, false).await;
    let mut idle = blocking(move || connect(address)).await;
    closing.cancel();
    task.await.unwrap();
    blocking(move || {
        assert!(TcpStream::connect(address).is_err());
        let mut rest = Vec::new();
        let _ = idle.read_to_end(&mut rest);
        assert!(rest.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_end_cleanly_when_the_server_closes() {
    let stage = Stage::new();
    let (address, closing, task) = open(&stage, false).await;
    let paths = ["/api/v1/namespaces/default/configmaps?watch=true", "/api/v1/workflow-events/default"];
    let mut watches = Vec::new();
    for path in paths {
        let mut stream = blocking(move || connect(address)).await;
        watches.push(
            blocking(move || {
                write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\ntoken: admin\r\n\r\n").unwrap();
                let mut head = [0; 12];
                stream.read_exact(&mut head).unwrap();
                assert_eq!(&head, b"HTTP/1.1 200", "{path}");
                stream
            })
            .await,
        );
    }
    assert_eq!(stage.app.streams.open(), paths.len());
    closing.cancel();
    task.await.unwrap();
    for stream in watches {
        let rest = blocking(move || everything(stream)).await;
        assert!(rest.ends_with("0\r\n\r\n"), "the watch broke off: {rest}");
    }
}
