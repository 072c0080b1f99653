//! What steps wrote, for every face: lines of all pods of a run in order of time, or the bytes of one pod. The same call
//! works before, during and after the run. Memory does not grow with the log.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use octoflow_model::{AttemptId, RunId, Time, taskset::KIND};
use octoflow_runtime::logs::Logs;
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Fault, LabelSelector, Registry, find, podded, replica, run, view};
use crate::read::lines::Sieve;

mod bytes;
mod merge;
mod snapshot;
mod whole;

pub use bytes::{LogBytes, LogChunk};
pub use merge::{LogBatch, LogLine, LogReader};
pub(super) use snapshot::Snapshots;
pub use whole::{Piece as LogPiece, RunFrame, RunFrames, RunLine, RunLines};

use snapshot::{Shared, Snapshot};

/// What somebody wants to read.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub namespace: String,
    /// A workflow's name, or `@latest` for the newest. Left out, the pod's name alone must tell.
    pub workflow: Option<String>,
    /// Only this pod, by its name; a node's id, name and display name do as well.
    pub pod: Option<String>,
    /// Only pods with these labels.
    pub selector: LabelSelector,
    /// Only what this container wrote. Left out: the main one, or all of a pod that has none.
    pub container: Option<String>,
    /// Only lines in which this regular expression is found.
    pub grep: Option<String>,
    /// Only so many lines of each pod, its last.
    pub tail: Option<usize>,
    /// Only what was written at this time or later.
    pub since: Option<Time>,
    /// Each line begins with the time it was written.
    pub timestamps: bool,
    /// Go on until the run, or the pod that is meant, is over and everything it wrote has been told.
    pub follow: bool,
    /// No more than so many bytes in all.
    pub limit_bytes: Option<u64>,
}

impl Registry {
    /// Lines of everything the query means, merged by time.
    pub fn logs(&self, query: LogQuery) -> Result<LogReader, Fault> {
        LogReader::open(self, query)
    }

    /// The bytes of one pod, as they were written unless the query wants lines chosen or marked.
    pub fn pod_log_bytes(&self, query: LogQuery) -> Result<LogBytes, Fault> {
        LogBytes::open(self, query)
    }
}

/// The pods that are meant, looked up again while the run goes on.
struct Scope {
    registry: Registry,
    run: RunId,
    query: LogQuery,
    files: Logs,
    /// What all who read this run's logs have seen of it last.
    shared: Arc<Shared>,
    /// What this one has seen of it last.
    seen: Option<Arc<Snapshot>>,
}

/// A pod that has a log, or will have one.
#[derive(Clone)]
struct Written {
    pod: Arc<str>,
    attempt: AttemptId,
    began: Time,
    over: bool,
    /// What its main container is called.
    main: Arc<str>,
    /// It has one.
    has_main: bool,
}

/// What there is to read now.
struct Look {
    pods: Vec<Written>,
    /// The run is over.
    over: bool,
}

impl Scope {
    fn open(registry: &Registry, query: LogQuery) -> Result<Self, Fault> {
        let run = match (&query.workflow, &query.pod) {
            (Some(name), _) => registry.find_run(run::workflow(), &query.namespace, name)?.run,
            (None, Some(pod)) => registry.run_of_pod(&query.namespace, pod)?.run,
            (None, None) => return Err(Fault::BadRequest("a log is read of a workflow or of a pod; name one".into())),
        };
        let files = Logs::new(registry.desk().store.data_dir());
        let shared = registry.0.snapshots.of(run);
        let mut scope = Self { registry: registry.clone(), run, query, files, shared, seen: None };
        let look = scope.look()?;
        let found = look.is_some_and(|look| !look.pods.is_empty() || scope.query.follow && !look.over);
        if let (Some(pod), false) = (&scope.query.pod, found) {
            return Err(Fault::NotFound { kind: find("Pod").expect("the table has pods"), name: pod.clone() });
        }
        // The reader's first look is to find what there is.
        scope.seen = None;
        Ok(scope)
    }

    /// What there is now, or nothing when it is what there was at the last look. Whatever was written before the end that
    /// is told here is seen by reading after it.
    fn look(&mut self) -> Result<Option<Look>, Fault> {
        let snapshot = self.shared.latest(&self.registry, self.run)?;
        if self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &snapshot)) {
            return Ok(None);
        }
        self.seen = Some(snapshot.clone());
        self.files.expect(&snapshot.sizes);
        let Some(row) = &snapshot.row else { return Ok(Some(Look { pods: Vec::new(), over: true })) };
        let mut pods = if row.kind == KIND {
            self.replicas(row, &snapshot.object, &snapshot.attempts)
        } else {
            self.nodes(row, &snapshot.object, &snapshot.attempts)
        };
        pods.sort_by_key(|pod| (pod.began, pod.attempt));
        Ok(Some(Look { pods, over: row.archived }))
    }

    /// Every pod a TaskSet ever had; those that are gone have left their logs.
    fn replicas(&self, row: &RunRow, object: &Value, attempts: &[(String, AttemptId)]) -> Vec<Written> {
        let live: HashSet<&str> = replica::live(object).map(|replica| replica.pod()).collect();
        let wanted = attempts.iter().filter(|(pod, _)| self.query.pod.as_ref().is_none_or(|wanted| wanted == pod));
        let mut pods = Vec::new();
        for (pod, attempt) in wanted {
            let Some(role) = replica::role_of(object, pod) else { continue };
            let labels = json!({"metadata": {"name": pod, "labels": replica::labels(object, role)}});
            if !self.query.selector.0.is_empty() && !self.query.selector.matches(&labels) {
                continue;
            }
            pods.push(Written {
                pod: pod.as_str().into(),
                attempt: *attempt,
                // When those began that are gone is not known any more.
                began: row.created,
                over: row.archived || !live.contains(pod.as_str()),
                main: replica::main_container(role).into(),
                has_main: true,
            });
        }
        pods
    }

    fn nodes(&self, row: &RunRow, object: &Value, attempts: &[(String, AttemptId)]) -> Vec<Written> {
        let attempts: HashMap<&str, AttemptId> = attempts.iter().map(|(id, attempt)| (id.as_str(), *attempt)).collect();
        let sets: HashSet<&str> = containers(object).filter_map(|node| node["boundaryID"].as_str()).collect();
        let mains: HashSet<&str> = containers(object)
            .filter(|node| node["displayName"] == podded::MAIN)
            .filter_map(|node| node["boundaryID"].as_str())
            .collect();
        podded::of(object)
            .filter(|pod| self.query.pod.as_deref().is_none_or(|wanted| pod.is_called(wanted)))
            .filter(|pod| {
                self.query.selector.0.is_empty() || self.query.selector.matches(&view::labelled(object, *pod))
            })
            .filter_map(|pod| {
                let id = pod.text("id");
                Some(Written {
                    pod: pod.name().into(),
                    attempt: *attempts.get(id)?,
                    began: pod.began(),
                    over: row.archived || pod.over(),
                    main: podded::MAIN.into(),
                    has_main: !sets.contains(id) || mains.contains(id),
                })
            })
            .collect()
    }

    fn sieve(&self) -> Result<Sieve, Fault> {
        let sieve = Sieve::new(None, self.query.since, self.query.grep.as_deref());
        sieve.map_err(|error| Fault::BadRequest(format!("grep: {error}")))
    }

    /// The container that is meant; `None` for all of them.
    fn container<'a>(&'a self, pod: &'a Written) -> Option<&'a str> {
        match self.query.container.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => Some(name),
            None => pod.has_main.then_some(&*pod.main),
        }
    }
}

fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter(|node| node["type"] == "Container")
}
