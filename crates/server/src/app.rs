//! Shared context of all requests. Cheap to clone; it holds handles, never state of its own.

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
    answer::follow::Followers,
    config::Limits,
    gate::{access::Access, audit::Audit, hosts::Hosts, meter::Meter},
    listen::streams::Streams,
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
    /// Cancelled at shutdown; ends watches and followed logs.
    pub closing: CancellationToken,
    pub started: Instant,
    pub streams: Arc<Streams>,
    pub meter: Meter,
    pub audit: Audit,
    pub metrics_open: bool,
    /// Time of the last successful write probe.
    pub ready: Mutex<Option<Instant>>,
}

impl App {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(inner: Inner) -> Self {
        let (bell, changes) = watch::channel(Revision(0));
        inner.registry.on_change(move |revision| {
            // There are no receivers once the server closes.
            let _ = bell.send(revision);
        });
        let followers = Followers::new(inner.registry.clone(), changes.clone(), inner.closing.clone());
        Self(Arc::new(Shared { inner, changes, followers }))
    }

    /// Returns the registry of log followers.
    pub(crate) fn followers(&self) -> &Followers {
        &self.0.followers
    }

    /// Returns the progress of the start.
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
