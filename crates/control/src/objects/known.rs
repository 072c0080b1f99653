//! Context of a submission: the host, and how long the last similar run took. Looked up once; a run never asks again.

use std::{fs, time::Duration};

use octoflow_engine::dialect;
use octoflow_model::{
    Time,
    submission::{EarlierDurations, SubmitContext},
};
use octoflow_store::{Filter, LabelTest, Page, Reader, RunRow, Store};
use serde_json::Value;

use crate::{Error, clock, random, read};

/// Runs with the same value of one of these labels have the same origin.
const ORIGINS: [&str; 3] = [
    "workflows.argoproj.io/workflow-template",
    "workflows.argoproj.io/cluster-workflow-template",
    "workflows.argoproj.io/cron-workflow",
];

/// Of a larger run only the total is estimated: its nodes would be read and kept for every later run.
const MAX_NODES: usize = 10_000;

/// The same limit in bytes of its final record, whatever kinds of nodes it has.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// Returns whether submitting this manifest reads the record of an earlier run, which may take a while.
pub fn looks_back(manifest: &Value) -> bool {
    let labels = &manifest["metadata"]["labels"];
    ORIGINS.into_iter().any(|origin| labels[origin].is_string()) || manifest["spec"]["workflowTemplateRef"].is_object()
}

pub(crate) fn known(
    store: &Store,
    namespace: &str,
    manifest: &Value,
    host: Option<&str>,
) -> Result<SubmitContext, Error> {
    let mut known = SubmitContext { host: host.map(str::to_owned), skew: clock::skew(), ..SubmitContext::default() };
    let wants_keys = dialect::of(manifest).ok().and_then(|dialect| dialect.wants_keys);
    if wants_keys.is_some_and(|wanted| wanted(manifest)) {
        known.keys = Some(Box::new(random::new_key_pair()?));
    }
    let labels = &manifest["metadata"]["labels"];
    let origins = || ORIGINS.into_iter().filter_map(|origin| Some((origin, labels[origin].as_str()?)));
    if origins().next().is_none() {
        return Ok(known);
    }
    let reader = store.reader()?;
    for (origin, value) in origins() {
        if let Some(row) = newest(&reader, namespace, origin, value)? {
            known.earlier = Some(Box::new(of(&reader, &row)?));
            break;
        }
    }
    Ok(known)
}

/// Returns the host name, if there is one.
pub(crate) fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| fs::read_to_string("/etc/hostname")).ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn newest(reader: &Reader, namespace: &str, origin: &str, value: &str) -> Result<Option<RunRow>, Error> {
    let filter = Filter {
        kind: Some("Workflow".to_owned()),
        namespace: Some(namespace.to_owned()),
        phases: vec!["Succeeded".to_owned()],
        labels: vec![LabelTest::Equals { key: origin.to_owned(), value: value.to_owned() }],
        ..Filter::default()
    };
    let (rows, _) = reader.list(&filter, Page { limit: 1, after: None })?;
    Ok(rows.into_iter().next())
}

fn of(reader: &Reader, row: &RunRow) -> Result<EarlierDurations, Error> {
    let span = row.started.zip(row.finished).map_or(Duration::ZERO, |(started, finished)| finished.since(started));
    let mut earlier = EarlierDurations { run: whole_seconds(span), ..EarlierDurations::default() };
    let tasks = row.progress.split_once('/').and_then(|(_, all)| all.parse::<usize>().ok()).unwrap_or(0);
    if tasks > MAX_NODES || reader.archive_size(row.run)?.is_some_and(|bytes| bytes > MAX_RECORD_BYTES) {
        return Ok(earlier);
    }
    let object = match read::object(reader, row.run) {
        // It is being deleted at this moment.
        Err(Error::UnknownRun(_)) => return Ok(earlier),
        object => object?,
    };
    let time = |node: &Value, field: &str| node[field].as_str().and_then(Time::parse);
    for node in object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()).take(MAX_NODES) {
        let suffix = node["name"].as_str().and_then(|name| name.strip_prefix(row.name.as_str()));
        if let (Some(suffix), Some(started), Some(finished)) =
            (suffix, time(node, "startedAt"), time(node, "finishedAt"))
        {
            earlier.nodes.insert(suffix.to_owned(), whole_seconds(finished.since(started)));
        }
    }
    Ok(earlier)
}

/// Rounded up: a run that ended at once still took some time, and zero would mean no estimate.
fn whole_seconds(span: Duration) -> u64 {
    (span.as_secs() + u64::from(span.subsec_nanos() > 0)).max(1)
}
