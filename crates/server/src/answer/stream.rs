//! Endless answers: one line per event, as server-sent events or JSON lines. A source prepares one piece at a time,
//! when the client has taken the previous one, so the memory of a slow client is bounded. Idle streams are kept alive.

use std::{
    convert::Infallible,
    future::Future,
    sync::LazyLock,
    thread::available_parallelism,
    time::{Duration, Instant as Clock},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
};

/// Proxies drop connections that are idle for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Approximate size up to which available data is sent together.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Time limit for preparing one piece, so that other streams get their turn.
const MAX_PIECE_TIME: Duration = Duration::from_millis(10);

/// Limits concurrent lookups of watches: one change may concern thousands, and other requests must not wait behind
/// them. Some lookups wait for the engine or the disk meanwhile.
pub(crate) static LOOKUPS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from) + 1));

/// Source of a stream's pieces.
pub(crate) trait Source: Send + 'static {
    /// Waits for the next piece; `None` at the end. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Fault>> + Send;
}

/// Piece in preparation, full at a maximum size or preparation time.
pub(crate) struct Piece {
    pub bytes: Vec<u8>,
    /// Absent if it may take as long as it needs.
    began: Option<Clock>,
}

impl Piece {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), began: Some(Clock::now()) }
    }

    /// The first piece of an answer that ends: if all of it fits, the answer has a length, however long it took.
    pub(crate) fn first() -> Self {
        Self { bytes: Vec::new(), began: None }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_PIECE_BYTES || self.began.is_some_and(|began| began.elapsed() >= MAX_PIECE_TIME)
    }
}

/// Encoding of stream values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Events,
    Lines,
}

impl Encoding {
    pub(crate) fn of(call: &Call) -> Self {
        let events = call.header("accept").is_some_and(|kinds| kinds.contains("text/event-stream"));
        if events { Self::Events } else { Self::Lines }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/json",
        }
    }

    /// Writes one value. Argo's clients cut six characters off every longer line, so each line is data or empty.
    pub(crate) fn write(self, value: &Value, to: &mut Vec<u8>) {
        let (before, after): (&[u8], &[u8]) = match self {
            Self::Events => (b"data: ", b"\n\n"),
            Self::Lines => (b"", b"\n"),
        };
        to.extend_from_slice(before);
        serde_json::to_writer(&mut *to, value).expect("a value can always be written to memory");
        to.extend_from_slice(after);
    }

    fn keep_alive(self) -> Bytes {
        match self {
            Self::Events => Bytes::from_static(b":\n"),
            // White space between JSON values has no meaning.
            Self::Lines => Bytes::from_static(b"\n"),
        }
    }
}

struct State<S> {
    source: S,
    encoding: Encoding,
    closing: CancellationToken,
    /// Deadline requested by the client.
    ends: Option<Instant>,
    over: bool,
}

/// Starts a streamed answer. The head is sent at once; `source` is polled when the client can take more.
pub(crate) fn stream<S: Source>(call: &Call, encoding: Encoding, source: S) -> Result<Answer, Fault> {
    let (ends, closing) = (ends(call)?, call.app.closing.clone());
    let state = State { source, encoding, closing, ends, over: false };
    let body = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<_, Infallible>(bytes), state))
    });
    let mut answer = Response::new(Body::from_stream(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(encoding.kind()));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Tells proxies not to buffer the answer.
    answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(answer)
}

/// Returns the deadline; zero or absent means none.
fn ends(call: &Call) -> Result<Option<Instant>, Fault> {
    const NAME: &str = "listOptions.timeoutSeconds";
    let Some(text) = call.query.get(NAME) else { return Ok(None) };
    let seconds: u64 =
        text.parse().map_err(|_| Fault::bad_request(format!("{NAME} must be a number of seconds, not `{text}`")))?;
    // A century is as good as no end, and does not overflow.
    Ok((seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds.min(3_000_000_000))))
}

impl<S: Source> State<S> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let keep_alive = Instant::now() + KEEP_ALIVE;
        tokio::select! {
            biased;
            () = self.closing.cancelled() => None,
            () = sleep_until(self.ends.unwrap_or(keep_alive)), if self.ends.is_some() => None,
            found = self.source.next() => match found {
                Ok(piece) => piece.map(Bytes::from),
                Err(fault) => {
                    self.over = true;
                    let mut piece = Vec::new();
                    self.encoding.write(&broken(&fault), &mut piece);
                    Some(piece.into())
                }
            },
            () = sleep_until(keep_alive) => Some(self.encoding.keep_alive()),
        }
    }
}

/// Final value of a stream that failed after it had begun.
fn broken(fault: &Fault) -> Value {
    let status = answer::argo_status(fault);
    json!({"error": {
        "grpc_code": answer::grpc_code(fault), "http_code": status.as_u16(), "message": fault.message,
        "http_status": status.canonical_reason().unwrap_or_default(),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_data_or_too_short_to_be_cut() {
        let value = json!({"result": {"content": "a\nb"}});
        let written = |encoding: Encoding| {
            let mut bytes = Vec::new();
            encoding.write(&value, &mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(written(Encoding::Events), "data: {\"result\":{\"content\":\"a\\nb\"}}\n\n");
        assert_eq!(written(Encoding::Lines), "{\"result\":{\"content\":\"a\\nb\"}}\n");
        assert_eq!(Encoding::Events.keep_alive(), ":\n");
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_streams() {
        let told = broken(&Fault::gone("list again"));
        assert_eq!(told["error"]["grpc_code"], 5);
        assert_eq!(told["error"]["http_code"], 410);
        assert_eq!((&told["error"]["message"], &told["error"]["http_status"]), (&json!("list again"), &json!("Gone")));
    }
}
