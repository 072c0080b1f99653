//! Who hears of a run: somebody who wants every fact, or somebody who only wants to look again.

use std::sync::mpsc::Sender;

use octoflow_model::{Fact, RunFact, RunId, argo::WorkflowFact};

use crate::objects::WorkItem;

pub(crate) enum Watcher {
    Facts(Sender<Vec<Fact>>),
    Bell(Bell),
}

/// Rings when something happens to a run, and once more when the run is over and its end is on disk.
pub(crate) struct Bell {
    pub run: RunId,
    pub to: Sender<WorkItem>,
    /// Only what concerns the run as a whole.
    pub shallow: bool,
}

/// Everybody who watches one run.
#[derive(Default)]
pub(crate) struct Audience {
    pub watchers: Vec<Watcher>,
    /// The number of the first fact that they have not been told.
    pub next: u64,
}

impl Audience {
    pub(crate) fn tell(&mut self, facts: &[Fact]) {
        if !facts.is_empty() {
            self.watchers.retain(|watcher| watcher.tell(facts));
            self.next = self.next.saturating_add(facts.len() as u64);
        }
    }

    /// Whoever only wants to look again is told to.
    pub(crate) fn ring(&mut self) {
        let listens = |watcher: &Watcher| match watcher {
            Watcher::Facts(_) => true,
            Watcher::Bell(bell) => bell.to.send(WorkItem::RunChanged(bell.run)).is_ok(),
        };
        self.watchers.retain(listens);
    }
}

impl Watcher {
    /// Whether anybody still listens.
    pub(crate) fn tell(&self, facts: &[Fact]) -> bool {
        match self {
            Self::Facts(watcher) => watcher.send(facts.to_vec()).is_ok(),
            Self::Bell(bell) => {
                let error_chain = |fact: &Fact| {
                    matches!(
                        fact,
                        Fact::Workflow(WorkflowFact::Began { .. })
                            | Fact::Run(RunFact::Ended { .. })
                            | Fact::Run(RunFact::Suspended { .. })
                            | Fact::Run(RunFact::Resumed { .. })
                            | Fact::Run(RunFact::ShuttingDown { .. })
                    )
                };
                bell.shallow && !facts.iter().any(error_chain) || bell.to.send(WorkItem::RunChanged(bell.run)).is_ok()
            }
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // Whoever is gone needs no bell.
        let _ = self.to.send(WorkItem::RunChanged(self.run));
    }
}
