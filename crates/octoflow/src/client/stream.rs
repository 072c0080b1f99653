//! Reader of a stream of server-sent events or JSON lines. Lines without data are the server's keep-alive.

use std::{
    io::{self, BufRead, BufReader, Read},
    time::Instant,
};

use serde_json::Value;

/// Maximum length of a line.
const MAX_LINE_BYTES: u64 = 1 << 30;

pub(crate) struct Events {
    lines: BufReader<Box<dyn Read>>,
    until: Option<Instant>,
}

/// Result of a read.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Value),
    /// The stream ended or the connection was lost; the caller may reconnect.
    End,
    /// Nothing arrived within the timeout.
    Silence,
}

impl Events {
    pub(super) fn new(body: impl Read + 'static) -> Self {
        Self { lines: BufReader::new(Box::new(body)), until: None }
    }

    /// Sets a deadline, after which keep-alives count as silence too.
    pub(crate) fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn next(&mut self) -> Next {
        loop {
            let mut line = Vec::new();
            match self.lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => return Next::End,
                Ok(_) => {}
                Err(error) if is_silence(&error) => return Next::Silence,
                Err(_) => return Next::End,
            }
            // JSON lines have no `data:` prefix.
            let data = line.strip_prefix(b"data:").unwrap_or(&line);
            if let Ok(value @ Value::Object(_)) = serde_json::from_slice(data) {
                return Next::Event(value);
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Next::Silence;
            }
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
        || matches!(
            error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()),
            Some(ureq::Error::Timeout(_))
        )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn signs_of_life_do_not_keep_anybody_beyond_his_time() {
        let mut events = Events::new(&b":\n:\n:\ndata: {}\n"[..]).until(Some(Instant::now()));
        assert!(matches!(events.next(), Next::Silence));
    }

    #[test]
    fn signs_of_life_and_other_fields_are_passed_over() {
        let text = ":\nevent: x\ndata: {\"a\":1}\n\n:\n{\"b\":2}\ndata:{\"c\":3}";
        let mut events = Events::new(text.as_bytes());
        let mut seen = Vec::new();
        while let Next::Event(value) = events.next() {
            seen.push(value);
        }
        assert_eq!(seen, [json!({"a": 1}), json!({"b": 2}), json!({"c": 3})]);
    }
}
