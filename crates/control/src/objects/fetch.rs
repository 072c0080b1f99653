//! Fetches from other machines on behalf of the resource worker: key listings and external manifests. Servers may be
//! slow, so fetches run on helper threads, a few at a time.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use octoflow_model::{
    AttemptId,
    location::Location,
    request::{Answer, ListingRequest, ManifestText, ObjectRequest},
};
use octoflow_runtime::{artifacts::ArtifactClient, egress::Policy};

use super::{ResourceWorker, WorkItem};
use crate::supervisor::panic_message;

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
}

impl ResourceWorker {
    pub(super) fn fetch(&mut self, attempt: AttemptId, fetch: Fetch) {
        self.fetcher.wanted.insert(attempt);
        self.fetcher.queue.push_back((attempt, fetch));
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

    fn start_fetches(&mut self) {
        while self.fetcher.at_work < MAX_CONCURRENT {
            let Some((attempt, fetch)) = self.fetcher.queue.pop_front() else { return };
            let (artifact_client, queue) = (self.fetcher.artifact_client(), self.queue.clone());
            let work = move || {
                let listing = matches!(fetch, Fetch::Listing(_));
                let fetched =
                    catch_unwind(AssertUnwindSafe(|| perform(&artifact_client, fetch))).unwrap_or_else(|panic| {
                        let why = format!("a bug of octoflow: asking for it panicked: {}", panic_message(&*panic));
                        if listing { Fetched::Listing(Err(why)) } else { Fetched::Manifest(Err(why)) }
                    });
                // The send fails only if the resource worker has closed.
                let _ = queue.send(WorkItem::Fetched(attempt, fetched));
            };
            match thread::Builder::new().name("fetcher".to_owned()).spawn(work) {
                Ok(_) => self.fetcher.at_work += 1,
                Err(error) => {
                    self.fetcher.forget(attempt);
                    self.answer(attempt, Answer::Refused(format!("no thread could be started: {error}")));
                }
            }
        }
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
