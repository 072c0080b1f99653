//! The sweeper deletes artifacts that are due. Deletions are queued on disk first and dequeued when done, so a crash
//! loses none. A failed deletion is retried and never keeps a run from being deleted.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::{self, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use octoflow_engine::{argo::garbage, engine::SharedState};
use octoflow_model::{
    RunId,
    garbage::{Garbage, GcStrategy},
    location::Location,
};
use octoflow_runtime::{artifacts::ArtifactClient, egress::Policy};
use octoflow_store::{Archive, Batch, Change, Reader, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Error, Supervisor, maintenance::expire::Overdue};

/// After this many tries an operator must intervene.
const MAX_TRIES: u32 = 12;
/// Pause after the first try; doubled after each further one, up to a day.
const PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of tries to record the result while others write to the run.
const WRITE_TRIES: u32 = 8;
/// Number of tries, and pause between them, to record the result while storage is unavailable.
const OUTAGE_TRIES: u32 = 60;
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// After this many consecutive failures the rest is postponed.
const MAX_CONSECUTIVE_FAILURES: u32 = 3;

/// Artifacts of one run that are queued for deletion.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedDeletion {
    run: u64,
    namespace: String,
    strategy: GcStrategy,
    items: Vec<Garbage>,
    #[serde(default)]
    tries: u32,
}

/// Queued deletion with the location of each artifact.
pub(crate) struct LocatedDeletion {
    deletion: QueuedDeletion,
    locations: Vec<Result<Option<Location>, String>>,
}

impl QueuedDeletion {
    pub(crate) fn new(run: RunId, namespace: &str, strategy: GcStrategy, items: Vec<Garbage>) -> Self {
        Self { run: run.0, namespace: namespace.to_owned(), strategy, items, tries: 0 }
    }

    pub(crate) fn write(&self, data_dir: &Path) -> io::Result<()> {
        let path = self.path(data_dir);
        fs::create_dir_all(dir(data_dir))?;
        let half = path.with_extension("half");
        fs::write(&half, serde_json::to_vec(self)?)?;
        fs::rename(half, path)
    }

    pub(crate) fn locate(self, world: &SharedState) -> LocatedDeletion {
        let locations =
            self.items.iter().map(|item| garbage::remote_location(world, &self.namespace, &item.artifact)).collect();
        LocatedDeletion { deletion: self, locations }
    }

    fn path(&self, data_dir: &Path) -> PathBuf {
        dir(data_dir).join(format!("{}-{}.json", self.run, self.strategy.word()))
    }
}

fn dir(data_dir: &Path) -> PathBuf {
    data_dir.join("artifacts").join("doomed")
}

/// Returns whether any deletion is queued.
pub(crate) fn has_queued(data_dir: &Path) -> bool {
    fs::read_dir(dir(data_dir)).is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns deletions that were tried and failed.
pub(crate) fn overdue(data_dir: &Path) -> Vec<Overdue> {
    let entries = fs::read_dir(dir(data_dir)).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read(entry.path()).ok());
    let tried = texts
        .filter_map(|text| serde_json::from_slice::<QueuedDeletion>(&text).ok())
        .filter(|deletion| deletion.tries > 0);
    let mut found: Vec<Overdue> = tried
        .map(|deletion| Overdue {
            what: format!("{} artifacts of run {}", deletion.items.len(), deletion.run),
            tries: deletion.tries,
            why: "where they are kept could not be reached, or refused; the run's conditions may say more".to_owned(),
        })
        .collect();
    found.sort_by(|one, other| one.what.cmp(&other.what));
    found
}

/// Returns the queued deletions that are due. Those that belong to a run's deletion wait while the run exists.
pub(crate) fn due_deletions(data_dir: &Path, reader: &Reader) -> Result<Vec<QueuedDeletion>, Error> {
    let Ok(entries) = fs::read_dir(dir(data_dir)) else { return Ok(Vec::new()) };
    let mut found: Vec<QueuedDeletion> = Vec::new();
    for entry in entries.flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let Some(deletion) =
            fs::read(entry.path()).ok().and_then(|text| serde_json::from_slice::<QueuedDeletion>(&text).ok())
        else {
            continue;
        };
        if deletion.tries > 0 && since_last_try(&entry.path()) < pause(deletion.tries) {
            continue;
        }
        let row = reader.run(RunId(deletion.run))?;
        let due = match deletion.strategy {
            GcStrategy::OnWorkflowDeletion => row.is_none(),
            GcStrategy::OnWorkflowCompletion | GcStrategy::Unset | GcStrategy::Never => {
                row.is_none_or(|row| row.archived)
            }
        };
        if due {
            found.push(deletion);
        }
    }
    found.sort_by_key(|deletion| deletion.run);
    Ok(found)
}

/// Backs off exponentially: an unreachable server must not slow down every later run.
fn pause(tries: u32) -> Duration {
    PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(MAX_PAUSE)
}

/// Returns the time since the last try.
fn since_last_try(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|about| about.modified());
    written.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// Dequeues what could not be deleted at the end of a run that is retried: the run continues under another id, and its
/// artifacts are deleted when that one ends.
pub(crate) fn dequeue_deletion(data_dir: &Path, run: RunId) -> io::Result<()> {
    let path = QueuedDeletion::new(run, "", GcStrategy::OnWorkflowCompletion, Vec::new()).path(data_dir);
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Queues the artifacts of a run for deletion, before the run is deleted.
pub fn queue_artifact_deletion(data_dir: &Path, run: RunId, namespace: &str, items: Vec<Garbage>) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    // All remaining artifacts are deleted, whatever their strategy.
    QueuedDeletion::new(run, namespace, GcStrategy::OnWorkflowDeletion, items).write(data_dir)
}

/// Deletes the artifacts of deleted runs and retries failed deletions. Returns a message for each failure.
pub fn sweep_deleted(store: &Store, data_dir: &Path, policy: Policy) -> Vec<String> {
    let mut warnings = Vec::new();
    let reader = match store.reader() {
        Ok(reader) => reader,
        Err(error) => return vec![error.to_string()],
    };
    let world = crate::controller::world(&reader);
    let (Ok(world), Ok(all)) = (world, due_deletions(data_dir, &reader)) else {
        warnings.push("what is to be deleted could not be read; it is tried again later".to_owned());
        return warnings;
    };
    if all.is_empty() {
        return warnings;
    }
    let artifact_client = ArtifactClient::new(data_dir, policy);
    for deletion in all {
        warnings.extend(sweep(deletion.locate(&world), &artifact_client, store, data_dir));
    }
    warnings
}

type Thread = JoinHandle<Result<(), Error>>;

/// Background thread for deletions. Started on first use.
pub(crate) struct Sweeper {
    queue: Option<(Sender<LocatedDeletion>, Thread)>,
    store: Store,
    data_dir: PathBuf,
    policy: Policy,
    supervisor: Supervisor,
}

impl Sweeper {
    pub(crate) fn new(store: Store, data_dir: PathBuf, policy: Policy, supervisor: Supervisor) -> Self {
        Self { queue: None, store, data_dir, policy, supervisor }
    }

    /// Returns a artifact_client with the sweeper's access policy.
    pub(crate) fn artifact_client(&self) -> ArtifactClient {
        ArtifactClient::new(&self.data_dir, self.policy.clone())
    }

    pub(crate) fn send(&mut self, located: LocatedDeletion) {
        if self.queue.is_none() {
            let (queue, deletions) = mpsc::channel::<LocatedDeletion>();
            let (store, data_dir, policy) = (self.store.clone(), self.data_dir.clone(), self.policy.clone());
            let work = move || {
                let artifact_client = ArtifactClient::new(&data_dir, policy);
                for located in deletions {
                    // Failures are in the run's status and retried.
                    drop(sweep(located, &artifact_client, &store, &data_dir));
                }
                Ok(())
            };
            // Without a thread the deletion stays queued on disk for the next one or the next start.
            self.queue = self.supervisor.spawn("sweeper", work).ok().map(|thread| (queue, thread));
        }
        if let Some((queue, _)) = &self.queue {
            // If the thread died, the deletion is still queued on disk.
            let _ = queue.send(located);
        }
    }

    /// Hands over the running thread, so that it can be joined without blocking new deletions.
    pub(crate) fn release(&mut self) -> Option<Thread> {
        self.queue.take().map(|(_, thread)| thread)
    }

    /// Waits until every queued deletion was tried once.
    pub(crate) fn finish(&mut self) {
        if let Some((queue, thread)) = self.queue.take() {
            drop(queue);
            let _ = thread.join();
        }
    }
}

fn sweep(located: LocatedDeletion, artifact_client: &ArtifactClient, store: &Store, data_dir: &Path) -> Vec<String> {
    let LocatedDeletion { mut deletion, locations } = located;
    let mut gone = Vec::new();
    let mut left = Vec::new();
    let mut warnings = Vec::new();
    let mut failures = 0;
    for (item, place) in std::mem::take(&mut deletion.items).into_iter().zip(locations) {
        let done = if failures >= MAX_CONSECUTIVE_FAILURES {
            Err("others before it could not be deleted".to_owned())
        } else {
            place.and_then(|place| {
                artifact_client
                    .delete(place.as_ref(), &deletion.namespace, &item.artifact)
                    .map_err(|error| error.to_string())
            })
        };
        match done {
            Ok(()) => {
                failures = 0;
                gone.push(item);
            }
            Err(why) => {
                failures += 1;
                warnings.push(format!("the artifact `{}` could not be deleted: {why}", item.name));
                left.push(item);
            }
        }
    }
    let mut told = record_result(store, &deletion, &gone, warnings.first().map(String::as_str));
    for _ in 0..OUTAGE_TRIES {
        if !told.as_ref().is_err_and(Error::is_outage) {
            break;
        }
        thread::sleep(OUTAGE_PAUSE);
        told = record_result(store, &deletion, &gone, warnings.first().map(String::as_str));
    }
    if let Err(error) = told {
        warnings.push(format!("the deletion of artifacts could not be noted: {error}"));
    }
    deletion.items = left;
    deletion.tries += 1;
    let kept = if deletion.items.is_empty() || deletion.tries >= MAX_TRIES {
        fs::remove_file(deletion.path(data_dir))
    } else {
        deletion.write(data_dir)
    };
    if let Err(error) = kept.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    {
        warnings.push(format!("what is left to delete could not be written down: {error}"));
    }
    warnings
}

/// Records the result of a deletion in the record of the finished run.
fn record_result(
    store: &Store,
    deletion: &QueuedDeletion,
    gone: &[Garbage],
    trouble: Option<&str>,
) -> Result<(), Error> {
    for _ in 1..WRITE_TRIES {
        match note(store, deletion, gone, trouble) {
            // A concurrent write to the run must not be lost: retry.
            Err(Error::Store(octoflow_store::Error::Stale { .. })) => {}
            done => return done,
        }
    }
    note(store, deletion, gone, trouble)
}

fn note(store: &Store, deletion: &QueuedDeletion, gone: &[Garbage], trouble: Option<&str>) -> Result<(), Error> {
    let run = RunId(deletion.run);
    let reader = store.reader()?;
    let Some(row) = reader.run(run)? else { return Ok(()) };
    let Some(bytes) = reader.archive(run)? else { return Ok(()) };
    let mut record: Value =
        serde_json::from_slice(&bytes).map_err(|error| Error::Journal { run, why: error.to_string() })?;
    let status = &mut record["object"]["status"];
    for node in status["nodes"].as_object_mut().into_iter().flat_map(|nodes| nodes.values_mut()) {
        mark_deleted(node, gone);
    }
    mark_deleted(status, gone);
    status["artifactGCStatus"]["strategiesProcessed"][deletion.strategy.word()] = json!(trouble.is_none());
    if let Some(conditions) = status["conditions"].as_array_mut() {
        conditions.retain(|condition| condition["type"] != "ArtifactGCError");
        if let Some(trouble) = trouble {
            conditions.push(json!({"type": "ArtifactGCError", "status": "True", "message": trouble}));
        }
    }
    if let Some(list) = record["garbage"].as_array_mut() {
        list.retain(|item| !gone.iter().any(|gone| item["node"] == gone.node && item["name"] == gone.name));
    }
    let text = serde_json::to_vec(&record).expect("a value is always writable");
    let archive = store.stage(run, Archive::pack(&text))?;
    store.commit_wait(Batch::from_iter([
        Change::ExpectRun { run, revision: row.revision },
        Change::Rewrite { run, archive },
    ]))?;
    Ok(())
}

/// Marks artifacts as deleted wherever they are listed, also in nodes that passed them on.
fn mark_deleted(holder: &mut Value, gone: &[Garbage]) {
    // Mutable indexing would create missing fields.
    let outputs = holder.get_mut("outputs");
    let Some(artifacts) = outputs.and_then(|outputs| outputs.get_mut("artifacts")).and_then(Value::as_array_mut) else {
        return;
    };
    for artifact in artifacts {
        let same = |gone: &Garbage| {
            artifact["local"]["key"] == gone.artifact.key && artifact["local"]["digest"] == gone.artifact.digest
        };
        if gone.iter().any(same) {
            artifact["deleted"] = json!(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::task::StoredArtifact;
    use octoflow_store::{RunRow, RunUpdate};

    use super::*;

    fn garbage(key: &str) -> Garbage {
        let artifact = StoredArtifact {
            digest: format!("sha256:{}", "a".repeat(64)),
            key: key.to_owned(),
            ..StoredArtifact::default()
        };
        Garbage { node: "n".to_owned(), name: key.to_owned(), strategy: GcStrategy::OnWorkflowCompletion, artifact }
    }

    /// A store with one run, finished or not.
    fn store(dir: &Path, finished: bool) -> Store {
        let store = Store::open(dir).unwrap();
        let run = RunId(1);
        let row = RunRow::new(run, "ns", "Workflow", "w", "u", octoflow_model::Time(1));
        store.commit_wait(Batch::from(Change::NewRun(Box::new(row)))).unwrap();
        if finished {
            let record = json!({
                "object": {"status": {"conditions": [], "nodes": {"n": {"outputs": {"artifacts": [
                    {"name": "k", "local": {"key": "k", "digest": format!("sha256:{}", "a".repeat(64))}},
                    {"name": "other", "local": {"key": "other", "digest": "x"}},
                ]}}, "m": {}}}},
                "garbage": [garbage("k")],
            });
            let archive = Archive::pack(record.to_string().as_bytes());
            store.commit_wait(Batch::from(Change::Finish { run, archive, row: RunUpdate::default() })).unwrap();
        }
        store
    }

    #[test]
    fn what_was_written_down_before_a_crash_is_deleted_by_the_next_controller() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), true);
        QueuedDeletion::new(RunId(1), "ns", GcStrategy::OnWorkflowCompletion, vec![garbage("k")])
            .write(dir.path())
            .unwrap();
        let reader = store.reader().unwrap();
        let found = due_deletions(dir.path(), &reader).unwrap();
        assert_eq!(found.len(), 1);
        let artifact_client = ArtifactClient::new(dir.path(), Policy::strict());
        for deletion in found {
            assert_eq!(sweep(deletion.locate(&SharedState::default()), &artifact_client, &store, dir.path()), [""; 0]);
        }
        let record: Value =
            serde_json::from_slice(&store.reader().unwrap().archive(RunId(1)).unwrap().unwrap()).unwrap();
        let artifacts = &record["object"]["status"]["nodes"]["n"]["outputs"]["artifacts"];
        assert_eq!((&artifacts[0]["deleted"], &artifacts[1]["deleted"]), (&json!(true), &Value::Null));
        assert_eq!(record["object"]["status"]["nodes"]["m"], json!({}), "nothing is invented");
        let processed = &record["object"]["status"]["artifactGCStatus"]["strategiesProcessed"];
        assert_eq!(processed["OnWorkflowCompletion"], true);
        assert_eq!(record["garbage"], json!([]));
        assert!(due_deletions(dir.path(), &reader).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_deleted_is_told_and_waits_for_another_day() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), true);
        let mut item = garbage("k");
        item.artifact.noted =
            Some(json!({"s3": {"bucket": "b", "key": "k", "accessKeySecret": {"name": "gone", "key": "a"}}}));
        let deletion = QueuedDeletion::new(RunId(1), "ns", GcStrategy::OnWorkflowCompletion, vec![item]);
        deletion.write(dir.path()).unwrap();
        let artifact_client = ArtifactClient::new(dir.path(), Policy::strict());
        let warnings = sweep(deletion.locate(&SharedState::default()), &artifact_client, &store, dir.path());
        assert!(warnings[0].contains("Secret 'gone'"), "{warnings:?}");
        let record: Value =
            serde_json::from_slice(&store.reader().unwrap().archive(RunId(1)).unwrap().unwrap()).unwrap();
        assert_eq!(record["object"]["status"]["conditions"][0]["type"], "ArtifactGCError");
        let kept = dir.path().join("artifacts/doomed/1-OnWorkflowCompletion.json");
        assert!(kept.exists());
        let reader = store.reader().unwrap();
        assert!(due_deletions(dir.path(), &reader).unwrap().is_empty(), "not again at once");
        let past = std::time::SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(kept).unwrap().set_modified(past).unwrap();
        assert_eq!(due_deletions(dir.path(), &reader).unwrap().len(), 1);
        assert_eq!((pause(1), pause(2), pause(40)), (PAUSE, PAUSE * 2, MAX_PAUSE));
    }

    #[test]
    fn a_run_that_goes_on_under_another_number_takes_its_artifacts_along() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), true);
        QueuedDeletion::new(RunId(1), "ns", GcStrategy::OnWorkflowCompletion, vec![garbage("k")])
            .write(dir.path())
            .unwrap();
        dequeue_deletion(dir.path(), RunId(1)).unwrap();
        dequeue_deletion(dir.path(), RunId(1)).unwrap();
        let row = RunRow::new(RunId(2), "ns", "Workflow", "w", "u", octoflow_model::Time(1));
        let replace = Change::ReplaceRun { old: RunId(1), row: Box::new(row) };
        store.commit_wait(Batch::from(replace)).unwrap();
        assert!(due_deletions(dir.path(), &store.reader().unwrap()).unwrap().is_empty());
    }

    #[test]
    fn an_open_run_keeps_its_artifacts_and_a_run_that_is_there_what_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), false);
        QueuedDeletion::new(RunId(1), "ns", GcStrategy::OnWorkflowCompletion, vec![garbage("k")])
            .write(dir.path())
            .unwrap();
        queue_artifact_deletion(dir.path(), RunId(1), "ns", vec![garbage("k")]).unwrap();
        assert!(due_deletions(dir.path(), &store.reader().unwrap()).unwrap().is_empty());
        store.commit_wait(Batch::from(Change::DeleteRun { run: RunId(1) })).unwrap();
        assert_eq!(due_deletions(dir.path(), &store.reader().unwrap()).unwrap().len(), 2);
        assert_eq!(sweep_deleted(&store, dir.path(), Policy::strict()), [""; 0]);
        assert!(due_deletions(dir.path(), &store.reader().unwrap()).unwrap().is_empty());
    }
}
