//! A web server for scenarios: `GET /201` is answered with that status, and with the path as the body.
//! It listens on this machine only and lives as long as the tests.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::OnceLock,
    thread,
};

/// Where it listens, such as `http://127.0.0.1:4711`.
pub(super) fn address() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(thread::spawn(|| answer(stream)))));
        address
    })
}

fn answer(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > "\r\n".len()) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    let path = first.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('/');
    let length = path.len();
    let text = format!("HTTP/1.1 {path} As Asked\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}");
    // Who asked may have left already.
    let _ = reader.into_inner().write_all(text.as_bytes());
}
