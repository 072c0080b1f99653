//! Logs as a stream of lines, merged over the pods of a workflow; with `follow` until the workflow is over.

use octoflow_control::{
    now,
    registry::{Fault as RegistryFault, LOOK_AGAIN, LabelSelector, LogBatch, LogLine, LogQuery, LogReader},
};
use octoflow_model::Time;
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{
    namespace,
    stream::{Source, stream},
};
use crate::{answer::Answer, call::Call, fault::Fault, query::Query};

/// Lines read at a time.
const LINES: usize = 512;

pub(super) async fn log(call: Call) -> Result<Answer, Fault> {
    let mut query = asked(&call.query)?;
    query.namespace = namespace(&call)?.unwrap_or_default();
    query.workflow = Some(call.param("name").to_owned());
    if let Some(pod) = call.maybe("pod") {
        query.pod = Some(pod.to_owned());
    }
    let reader = call.work(move |registry| registry.logs(query)).await?;
    Ok(stream(&call, Telling { at: At::Ready(Box::new(reader)), again: Instant::now() }))
}

fn asked(query: &Query) -> Result<LogQuery, Fault> {
    let option = |name: &str| query.get(&format!("logOptions.{name}"));
    let number = |name: &str| -> Result<Option<u64>, Fault> {
        let wrong = |text: &str| Fault::bad_request(format!("logOptions.{name} must be a number, not `{text}`"));
        option(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    };
    let ago = number("sinceSeconds")?.map(|seconds| {
        let micros = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        Time(now().0.saturating_sub(micros))
    });
    let since = match (option("sinceTime"), number("sinceTime.seconds")?) {
        (Some(text), _) => Some(
            Time::parse(text)
                .ok_or_else(|| Fault::bad_request(format!("logOptions.sinceTime must be a time, not `{text}`")))?,
        ),
        (None, Some(seconds)) => Some(Time::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))),
        (None, None) => ago,
    };
    Ok(LogQuery {
        pod: query.get("podName").map(str::to_owned),
        selector: LabelSelector::parse(query.get("selector").unwrap_or_default()).map_err(Fault::bad_request)?,
        container: option("container").map(str::to_owned),
        grep: query.get("grep").map(str::to_owned),
        tail: number("tailLines")?.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX)),
        since,
        timestamps: query.flag("logOptions.timestamps"),
        follow: query.flag("logOptions.follow"),
        limit_bytes: number("limitBytes")?,
        ..LogQuery::default()
    })
}

struct Telling {
    at: At,
    /// Not before then, when there was nothing new.
    again: Instant,
}

/// Kept between two calls, because waiting may be given up at any point.
enum At {
    Ready(Box<LogReader>),
    Reading(JoinHandle<(Box<LogReader>, Result<LogBatch, RegistryFault>)>),
    Over,
}

impl Source for Telling {
    async fn next(&mut self) -> Result<Option<Vec<Value>>, Fault> {
        loop {
            match &mut self.at {
                At::Ready(_) => {
                    sleep_until(self.again).await;
                    let At::Ready(mut reader) = std::mem::replace(&mut self.at, At::Over) else { continue };
                    self.at = At::Reading(tokio::task::spawn_blocking(move || {
                        let batch = reader.read(LINES);
                        (reader, batch)
                    }));
                }
                At::Reading(read) => {
                    let (reader, batch) = read.await.map_err(|error| Fault::internal(error.to_string()))?;
                    self.at = At::Over;
                    let LogBatch { lines, finished } = batch?;
                    if !finished {
                        self.at = At::Ready(reader);
                    }
                    if lines.is_empty() {
                        self.again = Instant::now() + LOOK_AGAIN;
                    } else {
                        return Ok(Some(lines.iter().map(entry).collect()));
                    }
                }
                At::Over => return Ok(None),
            }
        }
    }
}

fn entry(line: &LogLine) -> Value {
    json!({"result": {"content": String::from_utf8_lossy(&line.content), "podName": &*line.pod}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let query = Query::parse(
            "podName=p&grep=x&selector=a%3Db&logOptions.container=side&logOptions.follow=true&logOptions.tailLines=5\
             &logOptions.sinceTime=2026-01-01T00:00:00Z&logOptions.timestamps=false",
        );
        let found = asked(&query).unwrap();
        assert_eq!((found.pod.as_deref(), found.grep.as_deref(), found.tail), (Some("p"), Some("x"), Some(5)));
        assert_eq!(found.container.as_deref(), Some("side"));
        assert!(found.follow && !found.timestamps && found.since.is_some());
        for wrong in
            ["logOptions.tailLines=x", "logOptions.sinceTime=now", "selector=a b", "logOptions.sinceSeconds=-1"]
        {
            assert!(asked(&Query::parse(wrong)).is_err(), "{wrong}");
        }
    }
}
