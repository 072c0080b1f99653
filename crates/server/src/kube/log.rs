//! What a pod wrote, as a stream of text that goes on while the pod does, for those who follow it.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, http::StatusCode};
use futures_util::stream;
use octoflow_control::{
    now,
    registry::{Kind, LOOK_AGAIN, LogBytes, LogQuery},
};
use octoflow_model::Time;
use tokio::time::sleep;

use super::{options::number, target::Target};
use crate::{
    answer::{self, Answer},
    app::App,
    call::Call,
    fault::Fault,
};

pub(super) async fn log(call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let wanted = query(&call, &target)?;
    let log = call.work(move |registry| registry.pod_log_bytes(wanted)).await?;
    let reading = Reading { app: call.app.clone(), log: Some(log), rest: false };
    let stream = stream::unfold(reading, |mut reading| async move {
        let bytes = reading.next().await?;
        Some((Ok::<_, Infallible>(bytes), reading))
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

/// Read as the client takes it, never ahead.
struct Reading {
    app: App,
    /// Away while it is being read, and when there is nothing more.
    log: Option<LogBytes>,
    /// There was nothing new.
    rest: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if std::mem::take(&mut self.rest) {
                let closing = self.app.closing.clone();
                tokio::select! {
                    () = closing.cancelled() => return None,
                    () = sleep(LOOK_AGAIN) => {}
                }
            }
            let mut log = self.log.take()?;
            let read = tokio::task::spawn_blocking(move || {
                let chunk = log.read();
                (log, chunk)
            });
            let chunk = match read.await {
                Ok((log, Ok(chunk))) => {
                    self.log = (!chunk.finished).then_some(log);
                    chunk
                }
                // The answer has begun, so there is no better place to say it than where people look.
                Ok((_, Err(trouble))) => return Some(format!("the log cannot be read on: {trouble}\n").into_bytes()),
                Err(error) => {
                    tracing::error!(%error, "a log could not be read on");
                    return None;
                }
            };
            if !chunk.bytes.is_empty() {
                return Some(chunk.bytes);
            }
            self.rest = true;
        }
    }
}
