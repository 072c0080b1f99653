//! Pod logs as a text stream; with `follow` until the pod ends.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, http::StatusCode};
use futures_util::stream;
use octoflow_control::{
    now,
    registry::{Fault as RegistryFault, Kind, LogBytes, LogChunk, LogQuery},
};
use octoflow_model::{RunId, Time};
use tokio_util::sync::CancellationToken;

use super::{options::number, target::Target};
use crate::{
    answer::{
        self, Answer,
        fault::Fault,
        follow::{Follower, Log, Reading},
    },
    call::Call,
    faces::openapi::operation::{Parameter, count, flag, text, time},
};

pub(super) const OPTIONS: &[Parameter] = &[
    text("container", "Which container; the only one when left out"),
    flag("follow", "Go on until the pod is over"),
    count("tailLines", "Only so many last lines"),
    count("sinceSeconds", "Only what was written so long ago or later"),
    time("sinceTime", "Only what was written since then"),
    flag("timestamps", "Begin each line with its time"),
    count("limitBytes", "At most so many bytes"),
    flag("previous", "Always refused: every attempt is a pod of its own"),
];

pub(super) async fn log(call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let wanted = query(&call, &target)?;
    let log = call.work(move |registry| registry.pod_log_bytes(wanted)).await?;
    let following = Some(call.app.followers().follow(Bytes(log)));
    let closing = call.app.closing.clone();
    let stream = stream::unfold(following, move |following| {
        let closing = closing.clone();
        async move {
            let (bytes, rest) = next(following, closing).await?;
            Some((Ok::<_, Infallible>(bytes), rest))
        }
    });
    let mut answer = answer::bytes_as(StatusCode::OK, "text/plain; charset=utf-8", Vec::new());
    *answer.body_mut() = Body::from_stream(stream);
    Ok(answer)
}

fn query(call: &Call, target: &Target) -> Result<LogQuery, Fault> {
    let query = &call.query;
    let since = match (number::<u64>(query, "sinceSeconds")?, query.get("sinceTime")) {
        (Some(_), Some(_)) => return Err(Fault::bad_request("say sinceSeconds or sinceTime, not both")),
        (Some(seconds), None) => {
            let micros = i64::try_from(Duration::from_secs(seconds).as_micros()).unwrap_or(i64::MAX);
            Some(Time(now().0.saturating_sub(micros)))
        }
        (None, Some(text)) => {
            let wrong = || Fault::bad_request(format!("sinceTime={text} is no time; write 2006-01-02T15:04:05Z"));
            Some(Time::parse(text).ok_or_else(wrong)?)
        }
        (None, None) => None,
    };
    if query.flag("previous") {
        return Err(Fault::bad_request(format!(
            "previous terminated container of pod \"{}\" not found: every attempt is a pod of its own here",
            target.name()
        )));
    }
    Ok(LogQuery {
        namespace: target.space(),
        pod: Some(target.name()),
        container: query.get("container").map(str::to_owned),
        tail: number(query, "tailLines")?,
        since,
        timestamps: query.flag("timestamps"),
        follow: query.flag("follow"),
        limit_bytes: number(query, "limitBytes")?,
        ..LogQuery::default()
    })
}

/// Log of one pod as bytes.
struct Bytes(LogBytes);

impl Log for Bytes {
    type Piece = Vec<u8>;

    fn run(&self) -> RunId {
        self.0.run()
    }

    fn read(&mut self) -> Result<Reading<Vec<u8>>, RegistryFault> {
        let LogChunk { bytes, finished, more } = self.0.read()?;
        Ok(Reading { piece: (!bytes.is_empty()).then_some(bytes), finished, more })
    }
}

/// Returns the next bytes as the client takes them, never ahead, and the remaining stream.
async fn next(
    mut following: Option<Follower<Bytes>>,
    closing: CancellationToken,
) -> Option<(Vec<u8>, Option<Follower<Bytes>>)> {
    let log = following.as_mut()?;
    tokio::select! {
        () = closing.cancelled() => None,
        piece = log.next() => match piece {
            Ok(piece) => piece.map(|bytes| (bytes, following)),
            // The answer has begun, so the error can only go into the log text itself.
            Err(fault) => Some((format!("the log cannot be read on: {}\n", fault.message).into_bytes(), None)),
        },
    }
}
