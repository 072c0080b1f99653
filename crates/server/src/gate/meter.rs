//! Counters of the server: requests, connections, and request ids. Exported by the metrics.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::{Method, StatusCode};
use octoflow_control::gauge::Histogram;

use crate::route::Face;

/// Bucket bounds: from a millisecond to the request timeout.
const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

pub(crate) struct Meter {
    /// Differs between starts, so that request ids do not repeat.
    start: String,
    next: AtomicU64,
    /// Counts by face, method and status. Bounded, because all three are.
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    seconds: [Histogram; 4],
    connections: Arc<AtomicUsize>,
    connection_refused: AtomicU64,
}

/// Guard of an open connection, counted until it is dropped.
pub(crate) struct Connected(Arc<AtomicUsize>);

impl Meter {
    pub(crate) fn new(start: String) -> Self {
        Self {
            start,
            next: AtomicU64::new(1),
            requests: Mutex::default(),
            seconds: std::array::from_fn(|_| Histogram::new(SECONDS)),
            connections: Arc::default(),
            connection_refused: AtomicU64::new(0),
        }
    }

    pub(crate) fn next_id(&self) -> String {
        format!("{}-{}", self.start, self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn answered(&self, face: Face, method: &Method, status: StatusCode, took: Duration) {
        self.seconds[place(face)].add(took.as_secs_f64());
        let key = (word(face), method_word(method), status.as_u16());
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    pub(crate) fn connected(&self) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(self.connections.clone())
    }

    pub(crate) fn connection_refused(&self) {
        self.connection_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn connections_refused(&self) -> u64 {
        self.connection_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Vec<((&'static str, &'static str, u16), u64)> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().map(|(key, count)| (*key, *count)).collect()
    }

    pub(crate) fn seconds(&self) -> [(&'static str, &Histogram); 4] {
        [Face::Kube, Face::Argo, Face::Own, Face::Submission].map(|face| (word(face), &self.seconds[place(face)]))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn place(face: Face) -> usize {
    match face {
        Face::Kube => 0,
        Face::Argo => 1,
        Face::Own => 2,
        Face::Submission => 3,
    }
}

fn word(face: Face) -> &'static str {
    match face {
        Face::Kube => "kube",
        Face::Argo => "argo",
        Face::Own => "own",
        Face::Submission => "submission",
    }
}

/// Unknown methods are counted together, because clients may invent them.
fn method_word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
