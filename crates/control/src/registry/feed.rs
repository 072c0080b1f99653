//! The feed: a bounded window of recent commits, and the subscribers to notify of new ones. A watcher that falls out of
//! the window lists again. Notes name what was touched and never hold its content, which is read when an event is
//! emitted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use octoflow_model::{Revision, RunId};
use octoflow_store::{ChangeEvent, ChangedItem};

/// Maximum number of notes in the window.
const MAX_NOTES: usize = 16 * 1024;

type Callback = Box<dyn Fn(Revision) + Send + Sync>;

pub(crate) struct Feed {
    state: Mutex<State>,
    subscribers: Mutex<Vec<Callback>>,
}

struct State {
    /// Notes by sequence number; several notes may have one revision.
    notes: BTreeMap<u64, ChangeEvent>,
    /// Sequence number of the latest "something changed" note of each run. It replaces earlier ones.
    changed: HashMap<RunId, u64>,
    next: u64,
    /// The window covers everything after this revision.
    floor: Revision,
    latest: Revision,
}

/// The revision is older than the window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired;

impl Feed {
    pub(crate) fn starting_at(revision: Revision) -> Self {
        let state =
            State { notes: BTreeMap::new(), changed: HashMap::new(), next: 0, floor: revision, latest: revision };
        Self { state: Mutex::new(state), subscribers: Mutex::new(Vec::new()) }
    }

    pub(crate) fn publish(&self, notes: Vec<ChangeEvent>) {
        let Some(latest) = notes.last().map(|note| note.revision) else { return };
        {
            let mut state = self.lock();
            notes.into_iter().for_each(|note| state.take(note));
            state.latest = state.latest.max(latest);
        }
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|callback| callback(latest));
    }

    /// Resets the window after the store was reopened at `revision`. If that is further than was published, the commits
    /// in between are unknown, so every watcher must list again.
    pub(crate) fn reset(&self, revision: Revision) {
        {
            let mut state = self.lock();
            if state.latest == revision {
                return;
            }
            state.notes.clear();
            state.changed.clear();
            // Watchers that saw the last published commit have missed something too.
            state.floor = revision.max(state.latest);
            state.latest = state.floor;
        }
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|callback| callback(revision));
    }

    /// Adds a subscriber, called after every commit on the writer's thread: it must only forward the notification.
    pub(crate) fn subscribe(&self, callback: Callback) {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(callback);
    }

    pub(crate) fn latest(&self) -> Revision {
        self.lock().latest
    }

    /// Returns the revision from which a watcher that knows everything up to `since` resumes. `stored` is the newest
    /// revision that a reader of the store sees. It may be ahead of the feed: a commit can be read a moment before it
    /// is published, and one transaction brings several revisions at once. A client that listed in between already
    /// knows them, and must not get them again as news of an older revision. A revision that the store has not reached
    /// cannot have come from it.
    pub(crate) fn resume_from(&self, since: Revision, stored: Revision) -> Result<Revision, Expired> {
        let state = self.lock();
        if since < state.floor { Err(Expired) } else { Ok(since.min(state.latest.max(stored))) }
    }

    /// Notes that the store is at this revision, and that everything watchers may want to know of it was published.
    pub(crate) fn reach(&self, revision: Revision) {
        let mut state = self.lock();
        state.latest = state.latest.max(revision);
    }

    /// Moves the floor up: commits from before the feed observed the store were never published.
    pub(crate) fn raise_floor(&self, revision: Revision) {
        let mut state = self.lock();
        state.floor = state.floor.max(revision);
        state.latest = state.latest.max(revision);
    }

    /// Returns the relevant notes after a revision in order, and the revision reached: never less than `revision`.
    pub(crate) fn since(
        &self,
        revision: Revision,
        concerned: impl Fn(&ChangedItem) -> bool,
    ) -> Result<(Vec<ChangeEvent>, Revision), Expired> {
        let state = self.lock();
        if revision < state.floor {
            return Err(Expired);
        }
        // Watchers are nearly always up to date, so the newest notes are checked first.
        let new = state.notes.values().rev().take_while(|note| note.revision > revision);
        let mut found: Vec<ChangeEvent> = new.filter(|note| concerned(&note.what)).cloned().collect();
        found.reverse();
        Ok((found, state.latest.max(revision)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, note: ChangeEvent) {
        let number = self.next;
        self.next += 1;
        if let ChangedItem::Run(run) = &note.what
            && let Some(earlier) = self.changed.insert(*run, number)
        {
            self.notes.remove(&earlier);
        }
        self.notes.insert(number, note);
        while self.notes.len() > MAX_NOTES {
            let Some((number, oldest)) = self.notes.pop_first() else { break };
            self.floor = self.floor.max(oldest.revision);
            if let ChangedItem::Run(run) = oldest.what
                && self.changed.get(&run) == Some(&number)
            {
                self.changed.remove(&run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    fn changed(revision: u64, run: u64) -> ChangeEvent {
        ChangeEvent { revision: Revision(revision), what: ChangedItem::Run(RunId(run)) }
    }

    fn put(revision: u64, name: &str) -> ChangeEvent {
        let (kind, namespace, name) = ("ConfigMap".to_owned(), "default".to_owned(), name.to_owned());
        ChangeEvent { revision: Revision(revision), what: ChangedItem::Put { kind, namespace, name, new: true } }
    }

    #[test]
    fn changes_of_one_run_are_told_once_and_late() {
        let feed = Feed::starting_at(Revision(5));
        feed.publish(vec![changed(6, 1), put(6, "a"), changed(7, 1)]);
        let (notes, latest) = feed.since(Revision(5), |_| true).unwrap();
        assert_eq!(notes.iter().map(|note| note.revision.0).collect::<Vec<_>>(), [6, 7]);
        assert!(matches!(notes[0].what, ChangedItem::Put { .. }));
        assert_eq!(latest, Revision(7));
        assert!(feed.since(Revision(7), |_| true).unwrap().0.is_empty());
        assert_eq!(feed.since(Revision(4), |_| true).unwrap_err(), Expired);
    }

    #[test]
    fn who_listed_before_a_commit_was_told_does_not_hear_of_it_again() {
        let feed = Feed::starting_at(Revision(2));
        // One transaction brought 3 and 4; a list saw both before the writer published them.
        let mut cursor = feed.resume_from(Revision(4), Revision(4)).unwrap();
        let mut listen = |told: &[u64]| {
            let (notes, latest) = feed.since(cursor, |_| true).unwrap();
            assert_eq!(notes.iter().map(|note| note.revision.0).collect::<Vec<_>>(), told);
            assert!(latest >= cursor, "a watch never goes back");
            cursor = latest;
        };
        listen(&[]);
        feed.publish(vec![put(3, "a"), put(4, "b")]);
        listen(&[]);
        feed.publish(vec![put(5, "c")]);
        listen(&[5]);
    }

    #[test]
    fn a_revision_that_nobody_gave_out_means_the_newest() {
        let feed = Feed::starting_at(Revision(2));
        assert_eq!(feed.resume_from(Revision(900), Revision(3)).unwrap(), Revision(3));
        assert_eq!(feed.resume_from(Revision(900), Revision(1)).unwrap(), Revision(2));
        assert_eq!(feed.resume_from(Revision(1), Revision(3)), Err(Expired));
        feed.raise_floor(Revision(3));
        assert_eq!(feed.resume_from(Revision(2), Revision(3)), Err(Expired));
        assert_eq!(feed.latest(), Revision(3));
    }

    #[test]
    fn a_store_that_is_further_than_was_told_makes_everybody_list_again() {
        let feed = Feed::starting_at(Revision(5));
        feed.publish(vec![put(6, "a")]);
        feed.reset(Revision(6));
        assert_eq!(feed.since(Revision(5), |_| true).unwrap().0.len(), 1, "nothing was missed");
        feed.reset(Revision(8));
        assert_eq!(feed.since(Revision(6), |_| true).unwrap_err(), Expired);
        assert_eq!(feed.latest(), Revision(8));
        feed.publish(vec![put(9, "b")]);
        assert_eq!(feed.since(Revision(8), |_| true).unwrap().0.len(), 1);
    }

    #[test]
    fn what_fell_out_of_the_window_is_forgotten_and_the_rest_is_whole() {
        let feed = Feed::starting_at(Revision(0));
        let rung = Arc::new(AtomicU64::new(0));
        let ear = rung.clone();
        feed.subscribe(Box::new(move |revision| ear.store(revision.0, Ordering::Relaxed)));
        let many = MAX_NOTES as u64 + 10;
        for revision in 1..=many {
            feed.publish(vec![put(revision, "x")]);
        }
        assert_eq!(rung.load(Ordering::Relaxed), many);
        assert!(feed.since(Revision(9), |_| true).is_err());
        assert_eq!(feed.since(Revision(10), |_| true).unwrap().0.len(), MAX_NOTES);
    }
}
