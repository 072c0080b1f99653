//! Answers without an end: a line for each thing that happens, as server-sent events or as bare JSON.
//! A source prepares one piece at a time, when the client has taken the one before, so a slow client costs that much
//! memory and no more; a silent stream stays alive.

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
    answer::{self, Answer},
    call::Call,
    fault::Fault,
};

/// A connection that is silent longer is taken for dead by what is in between.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What is ready is sent together up to about this many bytes.
const PIECE: usize = 64 * 1024;

/// A piece is made in about this time, however little is in it; then others have their turn.
const SLICE: Duration = Duration::from_millis(10);

/// So many watches look things up at one time: one change may concern thousands, and those who ask for something else are
/// not to wait behind them. Some of them wait for the engine or the disk meanwhile.
pub(crate) static LOOKS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from) + 1));

/// Where the pieces of a stream come from.
pub(crate) trait Source: Send + 'static {
    /// Waits for what comes next; `None` at the end. It may be given up at any time and asked again.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Fault>> + Send;
}

/// A piece while it is made. It is full when it has so many bytes, or when making it has taken long enough.
pub(crate) struct Piece {
    pub bytes: Vec<u8>,
    began: Clock,
}

impl Piece {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), began: Clock::now() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= PIECE || self.began.elapsed() >= SLICE
    }
}

/// How one value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dress {
    Events,
    Lines,
}

impl Dress {
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

    /// Clients cut six letters off every line that has more, so a line is data or nothing.
    pub(crate) fn write(self, value: &Value, to: &mut Vec<u8>) {
        let (before, after): (&[u8], &[u8]) = match self {
            Self::Events => (b"data: ", b"\n\n"),
            Self::Lines => (b"", b"\n"),
        };
        to.extend_from_slice(before);
        serde_json::to_writer(&mut *to, value).expect("a value can always be written to memory");
        to.extend_from_slice(after);
    }

    fn beat(self) -> Bytes {
        match self {
            Self::Events => Bytes::from_static(b":\n"),
            // Between two JSON values white space means nothing.
            Self::Lines => Bytes::from_static(b"\n"),
        }
    }
}

struct State<S> {
    source: S,
    dress: Dress,
    closing: CancellationToken,
    /// When the client wants it to be over.
    ends: Option<Instant>,
    over: bool,
}

/// The answer's head goes out at once; `source` is asked when the client can take more.
pub(crate) fn stream<S: Source>(call: &Call, dress: Dress, source: S) -> Result<Answer, Fault> {
    let (ends, closing) = (ends(call)?, call.app.closing.clone());
    let state = State { source, dress, closing, ends, over: false };
    let body = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<_, Infallible>(bytes), state))
    });
    let mut answer = Response::new(Body::from_stream(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(dress.kind()));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some proxies would collect the whole answer first.
    answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(answer)
}

/// Zero and nothing mean that the client has time.
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
        let beat = Instant::now() + KEEP_ALIVE;
        tokio::select! {
            biased;
            () = self.closing.cancelled() => None,
            () = sleep_until(self.ends.unwrap_or(beat)), if self.ends.is_some() => None,
            found = self.source.next() => match found {
                Ok(piece) => piece.map(Bytes::from),
                Err(fault) => {
                    self.over = true;
                    let mut piece = Vec::new();
                    self.dress.write(&broken(&fault), &mut piece);
                    Some(piece.into())
                }
            },
            () = sleep_until(beat) => Some(self.dress.beat()),
        }
    }
}

/// The last word of a stream that failed after it had begun.
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
        let written = |dress: Dress| {
            let mut bytes = Vec::new();
            dress.write(&value, &mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(written(Dress::Events), "data: {\"result\":{\"content\":\"a\\nb\"}}\n\n");
        assert_eq!(written(Dress::Lines), "{\"result\":{\"content\":\"a\\nb\"}}\n");
        assert_eq!(Dress::Events.beat(), ":\n");
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_streams() {
        let told = broken(&Fault::gone("list again"));
        assert_eq!(told["error"]["grpc_code"], 5);
        assert_eq!(told["error"]["http_code"], 410);
        assert_eq!((&told["error"]["message"], &told["error"]["http_status"]), (&json!("list again"), &json!("Gone")));
    }
}
