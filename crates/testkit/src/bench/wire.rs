//! As much HTTP as the load needs: a client that keeps its connection, and whoever answers one such client at once.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::measure::Outcome;

/// The token that works on loopback without any preparation.
const TOKEN: &str = "admin";

/// A request that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Client {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

impl Client {
    pub(super) fn connect(host: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), host })
    }

    /// One request with its whole answer, which must be a good one.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        self.send(method, path, body)?;
        let (status, length) = self.head()?;
        let bytes = match length {
            Some(length) => self.bytes(length)?,
            None => self.chunks()?,
        };
        if status != 200 {
            return Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&bytes)).into());
        }
        Ok(bytes)
    }

    fn bytes(&mut self, length: usize) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// An answer that comes in chunks, the last of which is empty.
    fn chunks(&mut self) -> Outcome<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16)?;
            all.extend(self.bytes(length)?);
            self.bytes("\r\n".len())?;
            if length == 0 {
                return Ok(all);
            }
        }
    }

    /// Begins an answer without an end; its lines can be read afterwards.
    pub(super) fn follow(host: SocketAddr, path: &str) -> Outcome<Self> {
        let mut client = Self::connect(host)?;
        client.send("GET", path, "")?;
        match client.head()? {
            (200, _) => Ok(client),
            (status, _) => Err(format!("GET {path}: {status}").into()),
        }
    }

    /// The next value of an answer without an end, whatever chunks it came in.
    pub(super) fn value(&mut self) -> Outcome<Value> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err("the stream ended".into());
            }
            // Lengths of chunks and empty lines are in between.
            if let Some(at) = line.find('{') {
                return Ok(serde_json::from_str(&line[at..])?);
            }
        }
    }

    /// The bare connection, for those who only wait.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Outcome<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        Ok(())
    }

    fn head(&mut self) -> Outcome<(u16, Option<usize>)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or("the answer has no status")?;
        let mut length = None;
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err("the head of the answer breaks off".into());
            }
            match line.trim_end().split_once(':') {
                None => return Ok((status, length)),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok();
                }
                Some(_) => {}
            }
        }
    }
}

/// So many requests over so many connections at once; the time until all are answered.
pub(super) fn crowd(host: SocketAddr, count: u32, connections: u32, request: (&str, &str, &str)) -> Outcome<Duration> {
    let left = AtomicU32::new(count);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(|| -> Outcome<()> {
                    let mut client = Client::connect(host)?;
                    while take() {
                        client.ask(request.0, request.1, request.2)?;
                    }
                    Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    Ok(began.elapsed())
}

/// Until the other side has enough.
pub(super) fn greet(stream: TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?;
        }
    }
}
