//! As much HTTP as tests of the server need, on the standard library: one request a connection, answered whole or line by
//! line. An answer that breaks off is an error, so what comes back was really said.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// The token that works on loopback without any preparation.
pub(crate) const TOKEN: &str = "admin";

/// A request that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream that says nothing for so long is let go.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Sends a request and reads its answer to the end.
pub(crate) fn call(to: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
    // The older version has no chunks. What has no length ends with the connection, and half a text is no JSON.
    let (status, length, mut rest) = send(to, "1.0", method, path, body)?;
    let mut bytes = vec![0; length.unwrap_or(0)];
    rest.read_exact(&mut bytes)?;
    if length.is_none() {
        rest.read_to_end(&mut bytes)?;
    }
    let body = serde_json::from_slice(&bytes).map_err(|error| broken(&error.to_string()))?;
    Ok(Answer { status, body })
}

/// Sends a request and reads the values of its answer as they come, until the other side or the hearer has enough.
pub(crate) fn follow(to: SocketAddr, path: &str, mut hear: impl FnMut(Value) -> bool) -> io::Result<u16> {
    // The older version has no chunks: what comes is what was said.
    let (status, _, rest) = send(to, "1.0", "GET", path, None)?;
    // So that somebody who has enough is not kept by silence; who wants more calls again.
    rest.get_ref().set_read_timeout(Some(SILENCE))?;
    for line in rest.lines().take_while(|_| status == 200) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        // A line that broke off is nothing that was said.
        let Ok(value) = serde_json::from_str(&line) else { break };
        if !hear(value) {
            break;
        }
    }
    Ok(status)
}

type Head = (u16, Option<usize>, BufReader<TcpStream>);

fn send(to: SocketAddr, version: &str, method: &str, path: &str, body: Option<&Value>) -> io::Result<Head> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/{version}\r\nHost: {to}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    answer.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| broken("no status"))?;
    let mut length = None;
    loop {
        line.clear();
        if answer.read_line(&mut line)? == 0 {
            return Err(broken("the head breaks off"));
        }
        match line.trim().split_once(':') {
            None => return Ok((status, length, answer)),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok(),
            Some(_) => {}
        }
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
