//! Watchers of runs: those who want every fact, and those who only want to know that they should look again.

use std::sync::mpsc::Sender;

use octoflow_model::{Fact, RunId};

use crate::objects::WorkItem;

pub(crate) enum Watcher {
    /// Gets every fact.
    Facts(Sender<Vec<Fact>>),
    /// Is told that something happened.
    Signal(RunSignal),
}

/// Signals that something happened to a run, and once more when the run is over and its end is durable.
pub(crate) struct RunSignal {
    pub run: RunId,
    pub to: Sender<WorkItem>,
    /// Only changes of the run's lifecycle, not those of its parts.
    pub lifecycle_only: bool,
}

/// The watchers of one run.
#[derive(Default)]
pub(crate) struct Audience {
    pub watchers: Vec<Watcher>,
    /// The number of the first fact that they have not been told.
    pub next: u64,
}

impl Audience {
    /// Tells the watchers of these facts, which change the run's lifecycle or not. Those who are gone are dropped. The last
    /// who wants the facts gets them without a copy.
    pub(crate) fn tell(&mut self, mut facts: Vec<Fact>, lifecycle: bool) {
        if facts.is_empty() {
            return;
        }
        self.next = self.next.saturating_add(facts.len() as u64);
        let mut readers = self.watchers.iter().filter(|watcher| matches!(watcher, Watcher::Facts(_))).count();
        self.watchers.retain(|watcher| match watcher {
            Watcher::Facts(reader) => {
                readers -= 1;
                let copy = if readers == 0 { std::mem::take(&mut facts) } else { facts.clone() };
                reader.send(copy).is_ok()
            }
            Watcher::Signal(signal) => signal.lifecycle_only && !lifecycle || signal.send(),
        });
    }

    /// Signals that something may have happened, without saying what.
    pub(crate) fn signal(&mut self) {
        let listens = |watcher: &Watcher| match watcher {
            Watcher::Facts(_) => true,
            Watcher::Signal(signal) => signal.send(),
        };
        self.watchers.retain(listens);
    }
}

impl RunSignal {
    /// Whether anybody still listens.
    fn send(&self) -> bool {
        self.to.send(WorkItem::RunChanged(self.run)).is_ok()
    }
}

impl Drop for RunSignal {
    fn drop(&mut self) {
        // Whoever is gone needs no signal.
        self.send();
    }
}
