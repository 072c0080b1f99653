//! A server as a source, over HTTP. Broken streams are resumed where they were.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::ControlFlow,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_control::read::lines::{Frame, Line, Stream};
use octoflow_engine::kinds;
use octoflow_model::{RunId, Time, plugin::JOB_KIND};
use octoflow_store::{Filter, RunRow};
use serde_json::{Value, json};

use super::{LogQuery, Source, Waiting, in_argo_api, kind_of, still_open};
use crate::{
    client::{Address, Client, Next, selector},
    commands::address,
    exit::{self, Exit, Failure},
    output::Output,
    source::{
        remote::Request,
        workflow::{Workflow, list, noun, text},
    },
};

/// Timeout of a silent stream, longer than the server's keep-alive interval.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(45);

/// Time to wait for a server to come back before a stream fails.
const RECONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Pause before reconnecting.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Time limit for a deletion, and its poll interval.
const DELETE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Formats of events: server-sent events, or JSON lines in the Kubernetes-style API.
const EVENTS: &str = "text/event-stream";
const JSON_LINES: &str = "application/json";

/// How the key of a life hook begins.
const LIFE_HOOK: &str = "LifeHook.";

/// Page size of a list.
const PAGE: usize = 500;

#[derive(Clone, Debug)]
pub(crate) struct ServerSource {
    client: Client,
    output: Output,
    /// True once the server has answered, so that reconnecting is worth it.
    was_there: Cell<bool>,
}

impl ServerSource {
    pub(crate) fn new(client: Client, output: Output) -> Self {
        Self { client, output, was_there: Cell::new(false) }
    }

    fn run(&self, row: &RunRow, more: &[&str]) -> Address {
        let parts = ["api", "octoflow", "v1", "runs", &row.namespace, &row.name];
        Address::of(&[&parts, more].concat()).with_some("kind", kind_parameter(row))
    }

    /// Returns the address of the run's object, in the API that serves its kind.
    fn place(row: &RunRow) -> Address {
        match in_argo_api(row) {
            true => workflow(row, &[]),
            false => address(kind_of(row), Some(&row.namespace), Some(&row.name)),
        }
    }

    /// Waits until a run is deleted: open runs are ended first, which takes a moment.
    fn until_gone(&self, row: &RunRow) -> Result<()> {
        let give_up = Instant::now() + DELETE_TIMEOUT;
        while !row.archived
            && self.look_up(&row.namespace, Some(&row.kind), &row.name)?.is_some_and(|found| found.uid == row.uid)
        {
            if Instant::now() >= give_up {
                self.output.talk(&format!("{} {} is still being ended and deleted", noun(&row.kind), row.name));
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Reads a stream, reconnecting until `take` breaks.
    fn stream(
        &self,
        form: &str,
        address: impl Fn(bool) -> Address,
        until: Option<Instant>,
        mut take: impl FnMut(Value) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut again = false;
        let mut gone_since: Option<Instant> = None;
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let patience =
                left.map_or(SILENCE_TIMEOUT, |left| left.min(SILENCE_TIMEOUT)).max(Duration::from_millis(10));
            match self.client.events(&address(again), form, patience) {
                Ok(events) => {
                    let mut events = events.until(until);
                    self.output.detail("the stream is open");
                    gone_since = None;
                    again = true;
                    while let Next::Event(event) = events.next() {
                        if let Some(message) = event.get("error").map(|error| text(error, "message")) {
                            return Err(Failure::new(Exit::Infrastructure, message).into());
                        }
                        if take(event)?.is_break() {
                            return Ok(());
                        }
                    }
                    self.output.detail("the stream was interrupted; reconnecting");
                }
                // A server that is restarting comes back; the first connection must succeed.
                Err(error) if self.was_there.get() && exit::of(&error) == Exit::Infrastructure => {
                    let since = *gone_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > RECONNECT_LIMIT {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
            thread::sleep(left.map_or(RECONNECT_PAUSE, |left| left.min(RECONNECT_PAUSE)));
        }
    }
}

impl ServerSource {
    fn list_kind(&self, filter: &Filter, limit: usize) -> Result<(Vec<RunRow>, bool)> {
        let mut rows = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut address = Address::of(&["api", "octoflow", "v1", "runs"])
                .with("limit", (limit - rows.len()).min(PAGE))
                .with_some("namespace", filter.namespace.as_ref())
                .with_some("kind", filter.kind.as_ref())
                .with_some("prefix", filter.name_prefix.as_ref())
                .with_some("since", filter.since.map(|time| time.0))
                .with_some("until", filter.until.map(|time| time.0))
                .with_some("continue", after.as_ref());
            if !filter.labels.is_empty() {
                address = address.with("labelSelector", selector(&filter.labels));
            }
            for phase in &filter.phases {
                address = address.with("phase", phase);
            }
            let page = self.client.get(&address)?;
            rows.extend(list(&page["items"]).iter().map(row_of));
            match page["continue"].as_str() {
                Some(_) if rows.len() >= limit => return Ok((rows, true)),
                Some(next) => after = Some(next.to_owned()),
                None => return Ok((rows, false)),
            }
        }
    }

    /// Stops a submitted job, or lets it go on where a gate or somebody holds it.
    fn steer_job(&self, row: &RunRow, word: &str, request: &Request) -> Result<()> {
        let reason = match request {
            Request::Stop { message, .. } => message.clone(),
            Request::Terminate | Request::Suspend | Request::Resume { .. } => None,
        };
        let body = without_nulls(json!({"jobID": row.name, "reason": reason}));
        let answer = self.client.put(&Address::of(&["v1", "job", word, &row.name]), &body)?;
        crate::commands::payload(answer).map(drop)
    }

    /// Commands a run that Argo's API does not serve, by changing its specification.
    fn steer_object(&self, row: &RunRow, request: &Request) -> Result<()> {
        let (field, value) = match request {
            Request::Stop { selector: Some(_), .. } | Request::Resume { selector: Some(_), .. } => {
                return Err(Failure::usage(format!("a {} has no nodes to choose from", kind_of(row).noun)).into());
            }
            Request::Resume { supplied, .. } if !supplied.is_empty() => {
                return Err(Failure::usage(format!("a {} waits for no values", kind_of(row).noun)).into());
            }
            Request::Stop { .. } => ("shutdown", json!("Stop")),
            Request::Terminate => ("shutdown", json!("Terminate")),
            Request::Suspend => ("suspend", json!(true)),
            Request::Resume { .. } => ("suspend", json!(false)),
        };
        let mut object = self.object(row)?;
        object["spec"][field] = value;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // It changes constantly; only the one field is meant.
            metadata.remove("resourceVersion");
        }
        self.client.put(&Self::place(row), &object).map(drop)
    }
}

impl Source for ServerSource {
    /// A server lists one kind at a time.
    fn list(&self, filter: &Filter, limit: usize) -> Result<(Vec<RunRow>, bool)> {
        if filter.kind.is_some() {
            return self.list_kind(filter, limit);
        }
        let (mut all, mut more) = (Vec::new(), false);
        for kind in kinds::of_runs().map(|kind| kind.key) {
            let (rows, left) = self.list_kind(&Filter { kind: Some(kind.to_owned()), ..filter.clone() }, limit)?;
            all.extend(rows.into_iter().filter(|row| row.kind == kind));
            more |= left;
        }
        all.sort_by_key(|row| std::cmp::Reverse((row.created, row.run)));
        more |= all.len() > limit;
        all.truncate(limit);
        Ok((all, more))
    }

    fn look_up(&self, namespace: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>> {
        let kinds = kind.map_or_else(|| kinds::of_runs().map(|kind| kind.key).collect(), |kind| vec![kind]);
        let mut found: Option<RunRow> = None;
        for kind in kinds {
            let address = Address::of(&["api", "octoflow", "v1", "runs", namespace, name]).with("kind", kind);
            let row = self.client.find(&address)?.as_ref().map(row_of);
            self.was_there.set(true);
            found = found.into_iter().chain(row).max_by_key(|row| (row.created, row.run));
        }
        Ok(found)
    }

    fn object(&self, row: &RunRow) -> Result<Value> {
        self.client.get(&Self::place(row))
    }

    fn waiting(&self, row: &RunRow) -> Result<Vec<Waiting>> {
        let found = self.client.get(&self.run(row, &["explain"]))?;
        let told = |one: &Value| Waiting {
            node: text(one, "node").to_owned(),
            phase: text(one, "phase").to_owned(),
            why: text(one, "reason").to_owned(),
            wait: one["wait"].clone(),
        };
        let mut found: Vec<Waiting> = list(&found["items"]).iter().map(told).collect();
        if row.archived {
            // The nodes of a run that is over stand in its object; what hooks have not heard does not.
            found.retain(|one| one.phase.is_empty() && one.node.starts_with(LIFE_HOOK));
        }
        Ok(found)
    }

    fn lines(
        &self,
        row: &RunRow,
        query: &LogQuery,
        on_item: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>> {
        let address = |again: bool| {
            let mut address = self
                .run(row, &["lines"])
                .with("follow", query.follow)
                // After a reconnect all following lines are requested; their numbers tell which are new.
                .with_some("tail", query.tail.filter(|_| !again))
                .with_some("container", query.container.as_ref())
                .with_some("grep", query.grep.as_ref())
                .with_some("since", query.since.map(|time| time.0));
            for name in &query.names {
                address = address.with("node", name);
            }
            address
        };
        let mut told: HashMap<String, u64> = HashMap::new();
        let mut heard = BTreeSet::new();
        self.stream(EVENTS, address, None, |event| {
            if let Some(end) = event.get("end") {
                heard = list(&end["containers"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
                return Ok(ControlFlow::Break(()));
            }
            let Some(event) = event.get("line") else { return Ok(ControlFlow::Continue(())) };
            let (node, number) = (text(event, "node"), number_of(event));
            if told.get(node).is_none_or(|last| number > *last) {
                told.insert(node.to_owned(), number);
                on_item(node, number, &line_of(event))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(heard)
    }

    fn frames(
        &self,
        row: &RunRow,
        node: &str,
        follow: bool,
        on_item: &mut dyn FnMut(&Frame) -> Result<()>,
    ) -> Result<()> {
        let address = |_| self.run(row, &["lines"]).with("raw", node).with("follow", follow);
        let mut told = None;
        self.stream(EVENTS, address, None, |event| {
            if event.get("end").is_some() {
                return Ok(ControlFlow::Break(()));
            }
            let Some(event) = event.get("line") else { return Ok(ControlFlow::Continue(())) };
            let number = number_of(event);
            let Line { stream, at, container, bytes, .. } = line_of(event);
            if told.is_none_or(|last| number > last) {
                told = Some(number);
                on_item(&Frame { stream, at, container, bytes })?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn log_files(&self, _: &RunRow) -> Result<HashMap<String, String>> {
        Ok(HashMap::new())
    }

    fn steer(&self, row: &RunRow, request: &Request) -> Result<()> {
        still_open(row, request)?;
        if row.kind == JOB_KIND
            && let Some(word) = job_verb(request)
        {
            return self.steer_job(row, word, request);
        }
        if !in_argo_api(row) {
            return self.steer_object(row, request);
        }
        let (verb, body) = match request {
            Request::Stop { selector, message } => ("stop", json!({"nodeFieldSelector": selector, "message": message})),
            Request::Terminate => ("terminate", json!({})),
            Request::Suspend => ("suspend", json!({})),
            Request::Resume { selector, supplied } => {
                if !supplied.is_empty() {
                    let outputs = serde_json::to_string(supplied)?;
                    let chosen = selector.clone().unwrap_or_else(|| "phase=Running".to_owned());
                    let values = json!({"nodeFieldSelector": chosen, "outputParameters": outputs});
                    self.client.put(&workflow(row, &["set"]), &values)?;
                }
                ("resume", json!({"nodeFieldSelector": selector}))
            }
        };
        self.client.put(&workflow(row, &[verb]), &without_nulls(body)).map(drop)
    }

    fn with_owned(&self, rows: Vec<RunRow>) -> Result<Vec<RunRow>> {
        // The server deletes owned runs itself.
        Ok(rows)
    }

    fn delete(&self, rows: &[RunRow], gone: &mut dyn FnMut(&RunRow) -> Result<()>) -> Result<()> {
        for row in rows {
            let address = Self::place(row).with_some("force", in_argo_api(row).then_some(true));
            match self.client.delete(&address) {
                // It was owned by another and deleted with it, or deleted concurrently.
                Err(error) if exit::of(&error) != Exit::NotFound => return Err(error),
                _ => {
                    self.until_gone(row)?;
                    gone(row)?;
                }
            }
        }
        Ok(())
    }

    fn watch(
        &self,
        row: &RunRow,
        until: Option<Instant>,
        see: &mut dyn FnMut(&Value) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let place = |_| {
            if !in_argo_api(row) {
                return address(kind_of(row), Some(&row.namespace), None)
                    .with("watch", true)
                    .with("fieldSelector", format!("metadata.name={}", row.name));
            }
            Address::of(&["api", "v1", "workflow-events", &row.namespace])
                .with("listOptions.fieldSelector", format!("metadata.name={}", row.name))
                .with("listOptions.resourceVersion", 0)
        };
        let form = if in_argo_api(row) { EVENTS } else { JSON_LINES };
        self.stream(form, place, until, |event| {
            let result = event.get("result").unwrap_or(&event);
            let object = &result["object"];
            if text(&object["metadata"], "uid") != row.uid {
                // Another run of that name, or not a run.
                return Ok(ControlFlow::Continue(()));
            }
            if text(result, "type") == "DELETED" {
                return Err(Failure::not_found(format!("run `{}` was deleted meanwhile", row.name)).into());
            }
            let over = Workflow::new(object).finished().is_some();
            Ok(if see(object)?.is_break() || over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }
}

/// Returns the kind if it must be sent: earlier servers know only workflows.
pub(crate) fn kind_parameter(row: &RunRow) -> Option<&str> {
    (!in_argo_api(row)).then_some(&row.kind)
}

/// Returns the address of a workflow in Argo's API.
pub(crate) fn workflow(row: &RunRow, more: &[&str]) -> Address {
    Address::of(&[&["api", "v1", "workflows", &row.namespace, &row.name], more].concat())
}

/// Removes null fields.
pub(crate) fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

/// The verb of the submission pipeline for a request; `None` if it knows none.
fn job_verb(request: &Request) -> Option<&'static str> {
    match request {
        Request::Stop { selector: None, .. } => Some("stop"),
        Request::Resume { selector: None, supplied } if supplied.is_empty() => Some("resume"),
        Request::Stop { .. } | Request::Resume { .. } | Request::Terminate | Request::Suspend => None,
    }
}

fn row_of(value: &Value) -> RunRow {
    let word = |key: &str| text(value, key).to_owned();
    let time = |key: &str| value[key].as_i64().map(Time);
    let run = RunId(value["run"].as_u64().unwrap_or_default());
    let mut row = RunRow::new(
        run,
        text(value, "namespace"),
        text(value, "kind"),
        text(value, "name"),
        text(value, "uid"),
        time("created").unwrap_or(Time(0)),
    );
    (row.phase, row.message, row.progress) = (word("phase"), word("message"), word("progress"));
    (row.started, row.finished) = (time("started"), time("finished"));
    row.priority = value["priority"].as_i64().unwrap_or_default();
    row.archived = value["archived"].as_bool().unwrap_or_default();
    let labels = value["labels"].as_object().into_iter().flatten();
    row.labels = labels
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect::<BTreeMap<_, _>>();
    row
}

fn number_of(event: &Value) -> u64 {
    event["number"].as_u64().unwrap_or_default()
}

/// Decodes a line of a stream or an export.
pub(super) fn line_of(event: &Value) -> Line {
    let bytes = match event.get("bytes").and_then(Value::as_array) {
        Some(numbers) => numbers.iter().filter_map(Value::as_u64).filter_map(|byte| u8::try_from(byte).ok()).collect(),
        None => text(event, "text").as_bytes().to_vec(),
    };
    Line {
        at: Time(event["at"].as_i64().unwrap_or_default()),
        source: 0,
        stream: match text(event, "stream") {
            "stderr" => Stream::Stderr,
            "note" => Stream::Note,
            _ => Stream::Stdout,
        },
        container: event["container"].as_str().map(Box::from),
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_asked_for_where_its_kind_is_kept() {
        let row = |kind: &str| RunRow::new(RunId(1), "team", kind, "x", "u", Time(0));
        let set = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/team/tasksets/x";
        assert_eq!(ServerSource::place(&row("TaskSet")).to_string(), set);
        assert_eq!(ServerSource::place(&row("Workflow")).to_string(), "/api/v1/workflows/team/x");
        assert_eq!((kind_parameter(&row("TaskSet")), kind_parameter(&row("Workflow"))), (Some("TaskSet"), None));
    }
}
