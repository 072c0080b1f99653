//! What every request can reach. Cheap to clone; it holds handles, never state of its own.

use std::{ops::Deref, path::PathBuf, sync::Arc, time::Instant};

use octoflow_control::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::access::Access;

#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub registry: Registry,
    pub access: Access,
    pub longest_body: usize,
    pub data_dir: PathBuf,
    /// Watches and followed logs end when this is cancelled.
    pub closing: CancellationToken,
    pub started: Instant,
}

impl App {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
