//! Several streams of one HTTP/2 connection: a client that reads some of them and not others.

use std::{net::SocketAddr, time::Duration};

use axum::http::{Method, Request};
use h2::{Reason, RecvStream, client::SendRequest};
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};

use super::{endpoint::open, stage::Stage};
use crate::{Limits, gate::access::AdminSource};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client whose streams have a tiny flow control window.
async fn connect(address: SocketAddr) -> SendRequest<axum::body::Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::Builder::new().initial_window_size(1024).handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client.ready().await.unwrap()
}

async fn get(client: &mut SendRequest<axum::body::Bytes>, address: SocketAddr, path: &str) -> RecvStream {
    let request = Request::get(format!("http://{address}{path}")).header("token", "admin").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    let answer = timeout(PATIENCE, answer).await.expect("it answers").unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.into_body()
}

/// Reads everything, releasing flow control capacity.
async fn read(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(piece) = timeout(PATIENCE, body.data()).await.expect("it goes on") {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_nobody_reads_is_closed_and_the_others_go_on() {
    let limits = Limits { stalled_after: Duration::from_millis(200), ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    for name in ["a", "b", "c"] {
        let map = json!({"metadata": {"name": name}, "data": {"k": "v".repeat(1000)}});
        let made = stage.ask(Method::POST, "/api/v1/namespaces/default/configmaps", "admin", &map).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let (address, closing, task) = open(&stage, false).await;
    let mut client = connect(address).await;
    let path = "/api/v1/namespaces/default/configmaps?watch=true";
    let mut unread = get(&mut client, address, path).await;
    let mut quiet = get(&mut client, address, "/api/v1/namespaces/other/configmaps?watch=true").await;
    assert_eq!(stage.app.streams.open(), 2);
    // What fits into the window was sent; then nothing more fits.
    let first = timeout(PATIENCE, unread.data()).await.expect("something comes").unwrap().unwrap();
    assert!(first.len() <= 1024);
    let ended = async {
        while stage.app.streams.open() == 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("it is closed");
    let reset = loop {
        match timeout(PATIENCE, unread.data()).await.expect("its client hears of it") {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("a watch that was cut off must not look as if it had come to its end"),
        }
    };
    assert_eq!(reset.reason(), Some(Reason::CANCEL), "{reset}");
    // The connection continues, and so does an idle watch.
    let mut version = get(&mut client, address, "/version").await;
    assert!(!read(&mut version).await.unwrap().is_empty());
    let map = json!({"metadata": {"name": "late"}});
    stage.ask(Method::POST, "/api/v1/namespaces/other/configmaps", "admin", &map).await;
    let told = timeout(PATIENCE, quiet.data()).await.expect("it is told").unwrap().unwrap();
    assert!(String::from_utf8_lossy(&told).contains("late"));
    closing.cancel();
    drop((client, quiet, unread));
    task.await.unwrap();
}
