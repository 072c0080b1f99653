//! Fetches from other machines on behalf of the resource worker: key listings and external manifests. Servers may be
//! slow, so fetches run on helper threads, a few at a time. A fetch without a thread waits for one; it never fails for it.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
};

use octoflow_model::{
    AttemptId,
    location::Location,
    request::{Answer, ListingRequest, ManifestText, ObjectRequest},
};
use octoflow_runtime::{artifacts::ArtifactClient, egress::Policy};

use super::{ResourceWorker, WorkItem};
use crate::{Supervisor, supervisor::panic_message};

/// Maximum number of concurrent fetches.
const MAX_CONCURRENT: usize = 8;

pub(super) struct Fetcher {
    data_dir: PathBuf,
    policy: Policy,
    /// Created on first use: most runs fetch nothing.
    artifact_client: Option<Arc<ArtifactClient>>,
    /// Fetches not yet started, and all attempts that wait for one.
    queue: VecDeque<(AttemptId, Fetch)>,
    wanted: std::collections::HashSet<AttemptId>,
    at_work: usize,
    /// True while no thread can be started: the worker tries again after a pause.
    stuck: bool,
}

pub(super) enum Fetch {
    Listing(ListingRequest),
    /// Manifest of this request; the flag says that the action may have been done before.
    Manifest(Box<ObjectRequest>, bool),
}

/// Result of a fetch.
pub(crate) enum Fetched {
    Listing(Result<Vec<String>, String>),
    Manifest(Result<(Box<ObjectRequest>, bool), String>),
}

impl Fetcher {
    pub(super) fn new(data_dir: &Path, policy: Policy) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            policy,
            artifact_client: None,
            queue: VecDeque::new(),
            wanted: std::collections::HashSet::new(),
            at_work: 0,
            stuck: false,
        }
    }

    fn artifact_client(&mut self) -> Arc<ArtifactClient> {
        let (data_dir, policy) = (&self.data_dir, &self.policy);
        self.artifact_client.get_or_insert_with(|| Arc::new(ArtifactClient::new(data_dir, policy.clone()))).clone()
    }

    pub(super) fn is_wanted(&self, attempt: AttemptId) -> bool {
        self.wanted.contains(&attempt)
    }

    /// Cancels the fetch of an attempt. Returns whether there was one.
    pub(super) fn forget(&mut self, attempt: AttemptId) -> bool {
        self.queue.retain(|(waiting, _)| *waiting != attempt);
        self.wanted.remove(&attempt)
    }

    fn add(&mut self, attempt: AttemptId, fetch: Fetch) {
        self.wanted.insert(attempt);
        self.queue.push_back((attempt, fetch));
    }

    /// Returns whether fetches wait for a thread.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Starts as many fetches as may run at once. Without a thread they stay in the queue.
    fn start(&mut self, supervisor: &Supervisor, results: &Sender<WorkItem>) {
        self.stuck = false;
        while self.at_work < MAX_CONCURRENT && !self.queue.is_empty() {
            let (artifact_client, results) = (self.artifact_client(), results.clone());
            // The fetch follows once there is a thread, so that it is not lost if there is none.
            let (hand_over, work) = mpsc::sync_channel::<(AttemptId, Fetch)>(1);
            let thread = supervisor.spawn("fetcher", move || {
                let Ok((attempt, fetch)) = work.recv() else { return Ok(()) };
                let listing = matches!(fetch, Fetch::Listing(_));
                let fetched =
                    catch_unwind(AssertUnwindSafe(|| perform(&artifact_client, fetch))).unwrap_or_else(|panic| {
                        let why = format!("a bug of octoflow: asking for it panicked: {}", panic_message(&*panic));
                        if listing { Fetched::Listing(Err(why)) } else { Fetched::Manifest(Err(why)) }
                    });
                // The send fails only if the resource worker has closed.
                let _ = results.send(WorkItem::Fetched(attempt, fetched));
                Ok(())
            });
            if let Err(error) = thread {
                tracing::warn!(%error, waiting = self.queue.len(), "no thread can be started; fetches wait for one");
                self.stuck = true;
                return;
            }
            self.at_work += 1;
            if let Some(next) = self.queue.pop_front() {
                // The thread waits for it.
                let _ = hand_over.send(next);
            }
        }
    }
}

impl ResourceWorker {
    pub(super) fn fetch(&mut self, attempt: AttemptId, fetch: Fetch) {
        self.fetcher.add(attempt, fetch);
        self.start_fetches();
    }

    pub(super) fn fetched(&mut self, attempt: AttemptId, fetched: Fetched) {
        self.fetcher.at_work -= 1;
        if self.fetcher.forget(attempt) {
            match fetched {
                Fetched::Listing(found) => {
                    self.answer(attempt, found.map_or_else(Answer::Refused, Answer::Listing));
                }
                Fetched::Manifest(Ok((request, again))) => self.object(attempt, &request, again),
                Fetched::Manifest(Err(why)) => self.answer(attempt, Answer::Refused(why)),
            }
        }
        self.start_fetches();
    }

    pub(super) fn start_fetches(&mut self) {
        self.fetcher.start(&self.supervisor, &self.queue);
    }
}

fn perform(artifact_client: &ArtifactClient, fetch: Fetch) -> Fetched {
    match fetch {
        Fetch::Listing(request) => Fetched::Listing(list(artifact_client, &request)),
        Fetch::Manifest(request, again) => {
            Fetched::Manifest(with_text(artifact_client, *request).map(|found| (found, again)))
        }
    }
}

fn list(artifact_client: &ArtifactClient, request: &ListingRequest) -> Result<Vec<String>, String> {
    let keys = artifact_client.list(&request.location).map_err(|error| error.to_string())?;
    let plain = |key: String| key.strip_prefix(&request.cut).map_or_else(|| key.clone(), str::to_owned);
    Ok(keys.into_iter().map(plain).collect())
}

fn with_text(artifact_client: &ArtifactClient, mut request: ObjectRequest) -> Result<Box<ObjectRequest>, String> {
    if let ManifestText::Located { location, sub_path } = &request.manifest {
        let text = artifact_client.text(location, sub_path.as_deref());
        request.manifest = ManifestText::Inline(text.map_err(|error| format!("{}: {error}", kind(location)))?);
    }
    Ok(Box::new(request))
}

fn kind(location: &Location) -> &'static str {
    match location {
        Location::Local(_) => "the manifest in the local store",
        Location::S3(_) => "the manifest in a bucket",
        Location::Http(_) => "the manifest on a web server",
        Location::Git(_) => "the manifest in a git repository",
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::{NodeIx, RunId, location::LocalKey};

    use super::*;

    #[test]
    fn a_fetch_without_a_thread_waits_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let (supervisor, (results, fetched)) = (Supervisor::default(), mpsc::channel());
        let mut fetcher = Fetcher::new(dir.path(), Policy::strict());
        let attempt = AttemptId { run: RunId(1), task: NodeIx(0), attempt: 0 };
        let location = Location::Local(LocalKey { namespace: "default".to_owned(), key: String::new() });
        fetcher.add(attempt, Fetch::Listing(ListingRequest { location, cut: String::new() }));
        supervisor.refuse_threads(2);
        for _ in 0..2 {
            fetcher.start(&supervisor, &results);
            assert!(fetcher.is_stuck() && fetcher.is_wanted(attempt) && fetched.try_recv().is_err());
        }
        fetcher.start(&supervisor, &results);
        assert!(!fetcher.is_stuck());
        let Ok(WorkItem::Fetched(of, Fetched::Listing(Ok(keys)))) = fetched.recv() else { panic!("not a listing") };
        assert!(of == attempt && keys.is_empty());
        assert!(supervisor.failure().is_none());
    }
}
