//! What every request can reach. Cheap to clone; it holds handles, never state of its own.

use std::{
    ops::Deref,
    sync::{Arc, Mutex},
    time::Instant,
};

use octoflow_control::{Foreground, StartProgress, registry::Registry};
use octoflow_model::Revision;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    access::Access, audit::Audit, config::Limits, follow::Followers, hosts::Hosts, meter::Meter, streams::Streams,
};

#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    inner: Inner,
    changes: watch::Receiver<Revision>,
    followers: Followers,
}

pub(crate) struct Inner {
    pub registry: Registry,
    pub access: Access,
    pub hosts: Hosts,
    pub longest_body: usize,
    pub limits: Limits,
    /// Watches and followed logs end when this is cancelled.
    pub closing: CancellationToken,
    pub started: Instant,
    pub streams: Arc<Streams>,
    pub meter: Meter,
    pub audit: Audit,
    pub metrics_open: bool,
    /// When writing last succeeded.
    pub ready: Mutex<Option<Instant>>,
}

impl App {
    /// Within a runtime.
    pub(crate) fn new(inner: Inner) -> Self {
        let (bell, changes) = watch::channel(Revision(0));
        inner.registry.on_change(move |revision| {
            // Nobody listens once the server closes.
            let _ = bell.send(revision);
        });
        let followers = Followers::new(inner.registry.clone(), changes.clone(), inner.closing.clone());
        Self(Arc::new(Shared { inner, changes, followers }))
    }

    /// Everybody who follows a log.
    pub(crate) fn followers(&self) -> &Followers {
        &self.0.followers
    }

    /// How far the start is.
    pub(crate) fn progress(&self) -> &StartProgress {
        self.registry.controller().start_progress()
    }

    /// Where requests are noted that somebody waits for.
    pub(crate) fn foreground(&self) -> &Foreground {
        self.registry.controller().foreground()
    }

    /// Hears of every commit from now on. However many there are, one wake-up tells them all.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        let mut changes = self.0.changes.clone();
        changes.mark_unchanged();
        changes
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0.inner
    }
}
