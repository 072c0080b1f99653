//! The keys of an artifact repository. Listing one far away takes its time, so it is never done by the clerk.

use std::{path::Path, sync::mpsc::Sender, thread};

use octoflow_model::{
    AttemptId,
    request::{Answer, ListingRequest},
};
use octoflow_runtime::{artifacts::Carrier, egress::Policy};

use super::Errand;

/// The answer comes as an errand; `false` when nobody could be sent.
pub(super) fn send(
    attempt: AttemptId,
    request: ListingRequest,
    data_dir: &Path,
    policy: Policy,
    to: Sender<Errand>,
) -> bool {
    let data_dir = data_dir.to_owned();
    let list = move || {
        let found = Carrier::new(&data_dir, policy).list(&request.location);
        let answer = found.map_or_else(|error| Answer::Refused(error.to_string()), Answer::Listing);
        // The house may have closed meanwhile.
        let _ = to.send(Errand::Listed(attempt, answer));
    };
    thread::Builder::new().name("listing".to_owned()).spawn(list).is_ok()
}
