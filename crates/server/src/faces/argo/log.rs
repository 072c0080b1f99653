//! Logs as a stream of lines, merged over the pods of a workflow; with `follow` until the workflow is over.

use octoflow_control::{
    now,
    registry::{Fault as RegistryFault, LabelSelector, LogBatch, LogLine, LogQuery, LogReader},
};
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::namespace;
use crate::{
    answer::{
        Answer,
        fault::Fault,
        follow::{Follower, Log, Reading},
        query::Query,
        stream::{Encoding, Source, stream},
    },
    call::Call,
    faces::openapi::operation::{Parameter, count, flag, text, time},
};

/// LogLines read at a time.
const LINES: usize = 512;

pub(super) const OPTIONS: &[Parameter] = &[
    text("podName", "Only this pod"),
    text("selector", "Only pods with these labels"),
    text("grep", "Only lines this regular expression is found in"),
    text("logOptions.container", "Only this container; `main` is a step's own"),
    flag("logOptions.follow", "Go on until the workflow is over"),
    count("logOptions.tailLines", "Only so many last lines"),
    count("logOptions.sinceSeconds", "Only what was written so long ago or later"),
    time("logOptions.sinceTime", "Only what was written since then"),
    flag("logOptions.timestamps", "Begin each line with its time"),
    count("logOptions.limitBytes", "At most so many bytes"),
];

pub(super) async fn log(call: Call) -> Result<Answer, Fault> {
    let mut query = asked(&call.query)?;
    query.namespace = namespace(&call)?.unwrap_or_default();
    query.run = Some((super::kind("Workflow"), call.param("name").to_owned()));
    if let Some(pod) = call.optional_param("pod") {
        query.pod = Some(pod.to_owned());
    }
    let reader = call.work(move |registry| registry.logs(query)).await?;
    let encoding = Encoding::of(&call);
    stream(&call, encoding, call.app.followers().follow(LogLines(reader, encoding)))
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

/// LogLines as stream entries.
struct LogLines(LogReader, Encoding);

impl Log for LogLines {
    type Piece = Vec<u8>;

    fn run(&self) -> RunId {
        self.0.run()
    }

    fn read(&mut self) -> Result<Reading<Vec<u8>>, RegistryFault> {
        let LogBatch { lines, finished, more } = self.0.read(LINES)?;
        let mut piece = Vec::new();
        lines.iter().for_each(|line| self.1.write(&entry(line), &mut piece));
        Ok(Reading { piece: (!piece.is_empty()).then_some(piece), finished, more })
    }
}

impl Source for Follower<LogLines> {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        Self::next(self).await
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
