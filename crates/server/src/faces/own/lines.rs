//! Log lines of a run with node, container and time, as a stream with an explicit end: a client that gets no end has
//! lost the connection and reconnects for the rest.

use std::collections::BTreeSet;

use octoflow_control::{
    read::lines::{LineFilter, LineQuery, Stream},
    registry::{Fault as RegistryFault, RunFrame, RunFrames, RunLine, RunLines},
};
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::runs::{KIND, named, number};
use crate::{
    answer::{
        Answer,
        fault::Fault,
        follow::{Follower, Log, Reading},
        stream::{Encoding, Source, stream},
    },
    call::Call,
    faces::openapi::operation::{Content, count, flag, text, texts},
    route::{Need, Table},
};

pub(super) fn add_to(table: &mut Table) {
    table
        .get("/api/octoflow/v1/runs/{namespace}/{name}/lines", Need::ReadJob, stream_lines)
        .about("What a run wrote, line by line, as server-sent events")
        .query(&[
            KIND,
            texts("node", "Only nodes of these full names"),
            text("container", "Only this container"),
            text("grep", "Only lines this regular expression is found in"),
            count("tail", "Only so many last lines of each node"),
            count("since", "Only lines written since this time, in microseconds"),
            flag("follow", "Go on until the run is over"),
            text("raw", "The frames of the node of this id instead of lines"),
        ])
        .gives(Content::default().or("text/event-stream", None));
}

/// Query parameters: `node` (full names, repeatable), `container`, `grep`, `tail`, `since` in microseconds, `follow`;
/// `raw` streams the frames of the node with that id.
async fn stream_lines(call: Call) -> Result<Answer, Fault> {
    let found = named(&call).await?;
    let query = call.query.clone();
    let lines_query = LineQuery {
        names: query.all("node").map(str::to_owned).collect(),
        tail: number(&query, "tail")?,
        follow: query.flag("follow"),
    };
    let container = query.get("container").map(str::to_owned);
    let filter = LineFilter::new(container, number(&query, "since")?.map(Time), query.get("grep"))
        .map_err(|error| Fault::bad_request(format!("grep: {error}")))?;
    let (run, follow) = (found.run, lines_query.follow);
    let log = match query.get("raw").map(str::to_owned) {
        Some(node) => LogStream::Frames(call.work(move |registry| registry.run_frames(run, &node, follow)).await?),
        None => LogStream::Lines(Box::new(call.app.registry.run_lines(run, lines_query, filter))),
    };
    stream(&call, Encoding::Events, call.app.followers().follow(log))
}

/// Streamed content: selected lines, or all frames of one node.
enum LogStream {
    Lines(Box<RunLines>),
    Frames(RunFrames),
}

impl Log for LogStream {
    type Piece = Vec<u8>;

    fn run(&self) -> RunId {
        match self {
            Self::Lines(lines) => lines.run(),
            Self::Frames(frames) => frames.run(),
        }
    }

    fn read(&mut self) -> Result<Reading<Vec<u8>>, RegistryFault> {
        let mut bytes = Vec::new();
        let mut event = |event: &Value| Encoding::Events.write(event, &mut bytes);
        let (finished, more) = match self {
            Self::Lines(lines) => {
                let piece = lines.read()?;
                piece.items.iter().for_each(|told| event(&line(told)));
                (piece.finished, piece.more)
            }
            Self::Frames(frames) => {
                let piece = frames.read()?;
                piece.items.iter().for_each(|told| event(&frame(told)));
                (piece.finished, piece.more)
            }
        };
        if finished {
            let none = BTreeSet::new();
            let containers = match self {
                Self::Lines(lines) => lines.containers_seen(),
                Self::Frames(_) => &none,
            };
            event(&json!({"end": {"containers": containers}}));
        }
        Ok(Reading { piece: (!bytes.is_empty()).then_some(bytes), finished, more })
    }
}

impl Source for Follower<LogStream> {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        Self::next(self).await
    }
}

fn line(told: &RunLine) -> Value {
    let RunLine { node, number, line } = told;
    let mut event = json!({
        "node": &**node, "number": number, "at": line.at.0, "stream": word(line.stream),
        "container": line.container.as_deref(),
    });
    put_bytes(&mut event, &line.bytes);
    json!({ "line": event })
}

fn frame(told: &RunFrame) -> Value {
    let RunFrame { number, frame } = told;
    let mut event = json!({
        "number": number, "at": frame.at.0, "stream": word(frame.stream), "container": frame.container.as_deref(),
    });
    put_bytes(&mut event, &frame.bytes);
    json!({ "line": event })
}

fn word(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Note => "note",
    }
}

/// Text is sent as a string, anything else as numbers, so that no byte is lost.
fn put_bytes(event: &mut Value, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => event["text"] = json!(text),
        Err(_) => event["bytes"] = json!(bytes),
    }
}
