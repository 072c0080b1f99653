//! What a run writes, line by line with node, container and time, as a stream that tells its end: a client that hears no
//! end has lost the connection and comes back for the rest.

use std::{ops::ControlFlow, thread};

use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};
use futures_util::stream;
use octoflow_control::read::lines::{self, Frame, Line, Listener, Logs, MOMENT, Sieve, Stream, Wanted};
use octoflow_model::Time;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::runs::{named, number};
use crate::{
    answer::Answer,
    app::App,
    call::Call,
    fault::Fault,
    route::{Need, Table},
};

/// So many events wait for a client that reads slowly; then the reading waits.
const AHEAD: usize = 64;
/// Events are sent together up to this many bytes.
const CHUNK: usize = 32 * 1024;
/// A stream without news says that it lives so often: this many pauses.
const QUIET: u32 = 100;

pub(super) fn add_to(table: &mut Table) {
    table.get("/api/octoflow/v1/runs/{namespace}/{name}/lines", Need::ReadJob, say);
}

/// `node` (full names, repeatable), `container`, `grep`, `tail`, `since` in microseconds, `follow`; with `raw` the frames
/// of the node whose id it is.
async fn say(call: Call) -> Result<Answer, Fault> {
    let found = named(&call).await?;
    let query = call.query.clone();
    let wanted = Wanted {
        names: query.all("node").map(str::to_owned).collect(),
        tail: number(&query, "tail")?,
        follow: query.flag("follow"),
    };
    let container = query.get("container").map(str::to_owned);
    let sieve = Sieve::new(container, number(&query, "since")?.map(Time), query.get("grep"))
        .map_err(|error| Fault::bad_request(format!("grep: {error}")))?;
    let (send, receive) = mpsc::channel(AHEAD);
    let app = call.app.clone();
    let mut teller = Teller { send, app: app.clone(), sieve, held: String::new(), quiet: 0, frames: 0 };
    tokio::task::spawn_blocking(move || {
        let logs = Logs::new(app.registry.house().store().data_dir());
        let told =
            app.registry.house().store().reader().map_err(octoflow_control::Error::from).and_then(|reader| match query
                .get("raw")
            {
                Some(node) => lines::frames(&reader, &logs, found.run, node, wanted.follow, &mut |frame| match frame {
                    Some(frame) => teller.frame(&frame),
                    None => teller.pause(),
                }),
                None => lines::lines(&reader, &logs, found.run, &wanted, &mut teller),
            });
        teller.end(told.err().map(|error| Fault::from(error).message));
    });
    let body = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|text| (Ok::<_, std::convert::Infallible>(text), receive))
    });
    let mut answer = Response::new(Body::from_stream(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

struct Teller {
    send: mpsc::Sender<String>,
    app: App,
    sieve: Sieve,
    /// Events that are not sent yet.
    held: String,
    quiet: u32,
    frames: u64,
}

impl Teller {
    fn event(&mut self, event: &Value) -> ControlFlow<()> {
        self.held.push_str(&format!("data: {event}\n\n"));
        if self.held.len() >= CHUNK { self.flush() } else { ControlFlow::Continue(()) }
    }

    fn flush(&mut self) -> ControlFlow<()> {
        let text = std::mem::take(&mut self.held);
        if text.is_empty() {
            return ControlFlow::Continue(());
        }
        self.quiet = 0;
        match self.send.blocking_send(text) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        let mut event = json!({
            "number": self.frames, "at": frame.at.0, "stream": word(frame.stream),
            "container": frame.container.as_deref(),
        });
        self.frames += 1;
        put_bytes(&mut event, &frame.bytes);
        self.event(&json!({ "line": event }))
    }

    fn end(mut self, error: Option<String>) {
        if self.app.closing.is_cancelled() || self.send.is_closed() {
            return;
        }
        let event = match error {
            Some(message) => json!({"error": {"message": message}}),
            None => json!({"end": {"containers": self.sieve.heard()}}),
        };
        let _ = self.event(&event);
        let _ = self.flush();
    }
}

impl Listener for Teller {
    fn wants(&mut self, line: &Line) -> bool {
        self.sieve.wants(line)
    }

    fn hear(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()> {
        let mut event = json!({
            "node": node, "number": number, "at": line.at.0, "stream": word(line.stream),
            "container": line.container.as_deref(),
        });
        put_bytes(&mut event, &line.bytes);
        self.event(&json!({ "line": event }))
    }

    fn pause(&mut self) -> ControlFlow<()> {
        self.flush()?;
        if self.send.is_closed() || self.app.closing.is_cancelled() {
            return ControlFlow::Break(());
        }
        self.quiet += 1;
        if self.quiet >= QUIET {
            self.held.push_str(":\n");
            self.flush()?;
        }
        thread::sleep(MOMENT);
        ControlFlow::Continue(())
    }
}

fn word(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Note => "note",
    }
}

/// What is text goes as text, anything else as numbers, so that no byte is lost.
fn put_bytes(event: &mut Value, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => event["text"] = json!(text),
        Err(_) => event["bytes"] = json!(bytes),
    }
}
