//! Logs for every API face: lines of all pods of a run in order of time, or the bytes of one pod. The same call works
//! before, during and after the run. Memory does not grow with the log.

use std::sync::Arc;

use octoflow_engine::view::{LogFilter, PodLog};
use octoflow_model::{AttemptId, RunId, Time};
use octoflow_runtime::logs::Logs;
use serde_json::Value;

use super::{Fault, Kind, LabelSelector, Registry, kinds, run::of_row};
use crate::read::lines::LineFilter;

mod bytes;
mod merge;
mod snapshot;
mod whole;

pub use bytes::{LogBytes, LogChunk};
pub use merge::{LogBatch, LogLine, LogReader};
pub(super) use snapshot::Snapshots;
pub use whole::{LogPiece, RunFrame, RunFrames, RunLine, RunLines};

use snapshot::{SharedSnapshot, Snapshot};

/// Selection of log lines.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub namespace: String,
    /// Kind and name of a run, or `@latest` for the newest. `None`: the run is found by the pod's name.
    pub run: Option<(&'static Kind, String)>,
    /// Only this pod, by its name or by a node's id, name or display name.
    pub pod: Option<String>,
    /// Only pods with these labels.
    pub selector: LabelSelector,
    /// Only lines of this container. `None`: the main container, or all containers of a pod that has none.
    pub container: Option<String>,
    /// Only lines that match this regular expression.
    pub grep: Option<String>,
    /// Only the last lines of each pod, at most this many.
    pub tail: Option<usize>,
    /// Only lines written at this time or later.
    pub since: Option<Time>,
    /// Prefix each line with its time.
    pub timestamps: bool,
    /// Continue until the run, or the selected pod, is finished and its whole log has been read.
    pub follow: bool,
    /// Maximum number of bytes in all.
    pub limit_bytes: Option<u64>,
}

impl Registry {
    /// Reads the selected lines, merged by time.
    pub fn logs(&self, query: LogQuery) -> Result<LogReader, Fault> {
        LogReader::open(self, query)
    }

    /// Reads the bytes of one pod: as written, unless the query filters or marks lines.
    pub fn pod_log_bytes(&self, query: LogQuery) -> Result<LogBytes, Fault> {
        LogBytes::open(self, query)
    }
}

/// The selected pods, looked up again while the run continues.
struct Scope {
    registry: Registry,
    run: RunId,
    query: LogQuery,
    files: Logs,
    /// Latest snapshot of the run, shared by all readers of its logs.
    shared: Arc<SharedSnapshot>,
    /// Snapshot that this reader saw last.
    seen: Option<Arc<Snapshot>>,
}

/// Pod that has or will have a log.
#[derive(Clone)]
struct LogPod {
    pod: Arc<str>,
    attempt: AttemptId,
    began: Time,
    over: bool,
    /// Name of the main container.
    main: Arc<str>,
    /// True if the pod has a main container.
    has_main: bool,
}

/// Pods to read now.
struct LogSources {
    pods: Vec<LogPod>,
    /// True if the run is finished.
    over: bool,
}

impl Scope {
    fn open(registry: &Registry, query: LogQuery) -> Result<Self, Fault> {
        let run = match (&query.run, &query.pod) {
            (Some((kind, name)), _) => registry.find_run(kind, &query.namespace, name)?.run,
            (None, Some(pod)) => registry.run_of_pod(&query.namespace, pod)?.run,
            (None, None) => return Err(Fault::BadRequest("a log is read of a workflow or of a pod; name one".into())),
        };
        let files = Logs::new(registry.handle().store.data_dir());
        let shared = registry.0.snapshots.of(run);
        let mut scope = Self { registry: registry.clone(), run, query, files, shared, seen: None };
        let look = scope.look()?;
        let found = look.is_some_and(|look| !look.pods.is_empty() || scope.query.follow && !look.over);
        if let (Some(pod), false) = (&scope.query.pod, found) {
            return Err(Fault::NotFound { kind: &kinds::core::POD, name: pod.clone() });
        }
        // The reader's first look must report all pods.
        scope.seen = None;
        Ok(scope)
    }

    /// Returns the current pods, or `None` if nothing changed since the last look. Looking before reading ensures that
    /// everything written before a reported end is read.
    fn look(&mut self) -> Result<Option<LogSources>, Fault> {
        let snapshot = self.shared.latest(&self.registry, self.run)?;
        if self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &snapshot)) {
            return Ok(None);
        }
        self.seen = Some(snapshot.clone());
        self.files.expect(&snapshot.sizes);
        let Some(row) = &snapshot.row else { return Ok(Some(LogSources { pods: Vec::new(), over: true })) };
        let view = of_row(row).dialect().map(|dialect| dialect.view);
        let selects = |metadata: &Value| self.query.selector.matches(metadata);
        let filter = LogFilter {
            pod: self.query.pod.as_deref(),
            selects: if self.query.selector.0.is_empty() { None } else { Some(&selects) },
        };
        let found = view.map(|view| view.pod_logs(&snapshot.object, &snapshot.attempts, &filter)).unwrap_or_default();
        let written = |one: PodLog| LogPod {
            pod: one.pod.into(),
            attempt: one.attempt,
            began: one.began.unwrap_or(row.created),
            over: row.archived || one.over,
            main: one.main.into(),
            has_main: one.has_main,
        };
        let mut pods: Vec<LogPod> = found.into_iter().map(written).collect();
        pods.sort_by_key(|pod| (pod.began, pod.attempt));
        Ok(Some(LogSources { pods, over: row.archived }))
    }

    fn filter(&self) -> Result<LineFilter, Fault> {
        let filter = LineFilter::new(None, self.query.since, self.query.grep.as_deref());
        filter.map_err(|error| Fault::BadRequest(format!("grep: {error}")))
    }

    /// Returns the container to read; `None` for all of them.
    fn container<'a>(&'a self, pod: &'a LogPod) -> Option<&'a str> {
        match self.query.container.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => Some(name),
            None => pod.has_main.then_some(&*pod.main),
        }
    }
}
