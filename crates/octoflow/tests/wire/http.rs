//! Minimal HTTP client for tests of the server, on the standard library: one request per connection, answered whole, in
//! chunks or line by line. An incomplete answer is an error.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    iter,
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

use super::waiting::PATIENCE;

/// The token that works on loopback without any preparation.
pub(crate) const TOKEN: &str = "admin";

/// Read timeout of a silent stream.
const SILENCE: Duration = Duration::from_secs(1);

/// Complete response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    /// By its name in small letters.
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

/// Response whose body is still being received.
pub(crate) struct Coming {
    pub(crate) reply: Reply,
    from: BufReader<TcpStream>,
    over: bool,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Sends JSON and reads the JSON that answers it.
pub(crate) fn call(to: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let reply = begin(to, method, path, &[], body.as_bytes())?.whole()?;
    let body = serde_json::from_slice(&reply.bytes).map_err(|error| broken(&error.to_string()))?;
    Ok(Answer { status: reply.status, body })
}

/// Sends a request and passes the values of its answer as they come, until either side has enough.
pub(crate) fn follow(to: SocketAddr, path: &str, mut hear: impl FnMut(Value) -> bool) -> io::Result<u16> {
    let coming = begin(to, "GET", path, &[], b"")?;
    let status = coming.reply.status;
    // So that the caller can stop during silence; to continue it calls again.
    coming.from.get_ref().set_read_timeout(Some(SILENCE))?;
    for line in coming.lines().take_while(|_| status == 200) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        if !hear(serde_json::from_str(&line)?) {
            break;
        }
    }
    Ok(status)
}

/// Sends a request that must be answered, and reads the complete answer.
pub(crate) fn ask(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let reply = begin(to, method, path, headers, body).and_then(Coming::whole);
    reply.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// Sends a request and reads the head of its answer. By default as the administrator with JSON; a header given without
/// a value is left out.
pub(crate) fn begin(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Coming> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (token, length) = (format!("Bearer {TOKEN}"), body.len().to_string());
    let kind = if body.is_empty() { "" } else { "application/json" };
    let usual = [("authorization", token.as_str()), ("content-type", kind), ("content-length", length.as_str())];
    let given = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let usual = usual.iter().filter(|(name, _)| !given(name));
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    for (name, value) in usual.chain(headers).filter(|(_, value)| !value.is_empty()) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    // A server that refuses the head may close the connection before the body is sent.
    let _ = stream.write_all(body);
    let mut from = BufReader::new(stream);
    let first = line(&mut from)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| broken("no status"))?;
    let mut head = Vec::new();
    while let Some((name, value)) = line(&mut from)?.split_once(':') {
        head.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Coming { reply: Reply { status, head, bytes: Vec::new() }, from, over: false })
}

impl Coming {
    /// The next piece as it was sent; `None` at the end.
    pub(crate) fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.over {
            return Ok(None);
        }
        if self.reply.header("transfer-encoding") != Some("chunked") {
            self.over = true;
            let length = self.reply.header("content-length").unwrap_or("0");
            let mut bytes = vec![0; length.parse().map_err(|_| broken("no length"))?];
            self.from.read_exact(&mut bytes)?;
            return Ok(Some(bytes));
        }
        let size = usize::from_str_radix(&line(&mut self.from)?, 16).map_err(|_| broken("a piece has no size"))?;
        let mut bytes = vec![0; size + 2];
        self.from.read_exact(&mut bytes)?;
        bytes.truncate(size);
        self.over = size == 0;
        Ok((size > 0).then_some(bytes))
    }

    pub(crate) fn whole(mut self) -> io::Result<Reply> {
        while let Some(piece) = self.piece()? {
            self.reply.bytes.extend(piece);
        }
        Ok(self.reply)
    }

    /// Whole lines as they come, however they are cut into pieces.
    pub(crate) fn lines(mut self) -> impl Iterator<Item = io::Result<String>> {
        let mut heard = Vec::<u8>::new();
        iter::from_fn(move || {
            loop {
                if let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
                    let rest = heard.split_off(end + 1);
                    let line = std::mem::replace(&mut heard, rest);
                    return Some(String::from_utf8(line).map_err(|error| broken(&error.to_string())));
                }
                match self.piece() {
                    Ok(piece) => heard.extend(piece?),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }
}

fn line(from: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(broken("the answer breaks off")),
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
