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
use octoflow_runtime::{artifacts::Carrier, egress::Policy};

use super::{Errand, ResourceWorker};
use crate::supervisor::said;

/// Maximum number of concurrent fetches.
const AT_ONCE: usize = 8;

pub(super) struct Bringer {
    data_dir: PathBuf,
    policy: Policy,
    /// Created on first use: most runs fetch nothing.
    carrier: Option<Arc<Carrier>>,
    /// Fetches not yet started, and all attempts that wait for one.
    queue: VecDeque<(AttemptId, Wish)>,
    wanted: std::collections::HashSet<AttemptId>,
    at_work: usize,
}

pub(super) enum Wish {
    Listing(ListingRequest),
    /// Manifest of this request; the flag says that the action may have been done before.
    Manifest(Box<ObjectRequest>, bool),
}

/// Result of a fetch.
pub(crate) enum Brought {
    Listing(Result<Vec<String>, String>),
    Manifest(Result<(Box<ObjectRequest>, bool), String>),
}

impl Bringer {
    pub(super) fn new(data_dir: &Path, policy: Policy) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            policy,
            carrier: None,
            queue: VecDeque::new(),
            wanted: std::collections::HashSet::new(),
            at_work: 0,
        }
    }

    fn carrier(&mut self) -> Arc<Carrier> {
        let (data_dir, policy) = (&self.data_dir, &self.policy);
        self.carrier.get_or_insert_with(|| Arc::new(Carrier::new(data_dir, policy.clone()))).clone()
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
    pub(super) fn wish(&mut self, attempt: AttemptId, wish: Wish) {
        self.bringer.wanted.insert(attempt);
        self.bringer.queue.push_back((attempt, wish));
        self.bring();
    }

    pub(super) fn brought(&mut self, attempt: AttemptId, brought: Brought) {
        self.bringer.at_work -= 1;
        if self.bringer.forget(attempt) {
            match brought {
                Brought::Listing(found) => {
                    self.answer(attempt, found.map_or_else(Answer::Refused, Answer::Listing));
                }
                Brought::Manifest(Ok((request, again))) => self.object(attempt, &request, again),
                Brought::Manifest(Err(why)) => self.answer(attempt, Answer::Refused(why)),
            }
        }
        self.bring();
    }

    fn bring(&mut self) {
        while self.bringer.at_work < AT_ONCE {
            let Some((attempt, wish)) = self.bringer.queue.pop_front() else { return };
            let (carrier, errands) = (self.bringer.carrier(), self.errands.clone());
            let work = move || {
                let listing = matches!(wish, Wish::Listing(_));
                let brought = catch_unwind(AssertUnwindSafe(|| fulfil(&carrier, wish))).unwrap_or_else(|panic| {
                    let why = format!("a bug of octoflow: asking for it panicked: {}", said(&*panic));
                    if listing { Brought::Listing(Err(why)) } else { Brought::Manifest(Err(why)) }
                });
                // The send fails only if the resource worker has closed.
                let _ = errands.send(Errand::Brought(attempt, brought));
            };
            match thread::Builder::new().name("bringer".to_owned()).spawn(work) {
                Ok(_) => self.bringer.at_work += 1,
                Err(error) => {
                    self.bringer.forget(attempt);
                    self.answer(attempt, Answer::Refused(format!("no thread could be started: {error}")));
                }
            }
        }
    }
}

fn fulfil(carrier: &Carrier, wish: Wish) -> Brought {
    match wish {
        Wish::Listing(request) => Brought::Listing(list(carrier, &request)),
        Wish::Manifest(request, again) => Brought::Manifest(with_text(carrier, *request).map(|found| (found, again))),
    }
}

fn list(carrier: &Carrier, request: &ListingRequest) -> Result<Vec<String>, String> {
    let keys = carrier.list(&request.location).map_err(|error| error.to_string())?;
    let plain = |key: String| key.strip_prefix(&request.cut).map_or_else(|| key.clone(), str::to_owned);
    Ok(keys.into_iter().map(plain).collect())
}

fn with_text(carrier: &Carrier, mut request: ObjectRequest) -> Result<Box<ObjectRequest>, String> {
    if let ManifestText::Located { location, sub_path } = &request.manifest {
        let text = carrier.text(location, sub_path.as_deref());
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
