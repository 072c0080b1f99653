//! Just enough HTTP to see every byte of an answer.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

/// An answer that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Reply {
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// An answer whose body is still coming.
pub(crate) struct Coming {
    pub(crate) reply: Reply,
    from: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
    over: bool,
}

/// Sends a request and reads the head of its answer.
pub(crate) fn begin(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Coming {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    if !headers.iter().any(|(name, _)| *name == "Content-Length") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // A server that has said no already need not take the rest.
    let _ = stream.write_all(body);
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
    let mut head = Vec::new();
    loop {
        line.clear();
        from.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        head.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let reply = Reply { status, head, bytes: Vec::new() };
    let chunked = reply.header("transfer-encoding") == Some("chunked");
    let left = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
    Coming { reply, from, chunked, left, over: false }
}

impl Coming {
    /// The next piece as it was sent; `None` at the end.
    pub(crate) fn piece(&mut self) -> Option<Vec<u8>> {
        if self.over {
            return None;
        }
        if !self.chunked {
            self.over = true;
            let mut bytes = vec![0; self.left];
            self.from.read_exact(&mut bytes).unwrap();
            return Some(bytes);
        }
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("no size in {line:?}"));
        let mut bytes = vec![0; size + 2];
        self.from.read_exact(&mut bytes).unwrap();
        bytes.truncate(size);
        self.over = size == 0;
        (size > 0).then_some(bytes)
    }

    pub(crate) fn whole(mut self) -> Reply {
        while let Some(piece) = self.piece() {
            self.reply.bytes.extend(piece);
        }
        self.reply
    }
}
