//! The queue of waiting entries: priority first; runs of equal priority take turns; the entries of one run go in the
//! order of their arrival. It knows nothing of room. Every operation costs O(log n).

use std::collections::{BTreeMap, HashMap};

use octoflow_model::RunId;

use super::Entry;

/// Position of an entry in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    queue: RunQueueKey,
    arrival: u64,
}

/// The waiting entries of one run at one priority.
type RunQueueKey = (Rank, RunId);

/// The negated priority: the highest priority comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rank(i64);

#[derive(Debug, Default)]
pub(super) struct Queue {
    queues: HashMap<RunQueueKey, RunQueue>,
    /// Runs that wait, by priority and then by whose turn it is. A run that had its turn goes behind all that wait now,
    /// and so does one that comes: between two turns of a run every other one has at most one. So a run of one task never
    /// waits for more than one task of each other run, and nobody who waits can be overtaken for ever.
    turns: BTreeMap<(Rank, u64), RunId>,
    arrivals: u64,
    last_turn: u64,
}

#[derive(Debug)]
struct RunQueue {
    turn: u64,
    entries: BTreeMap<u64, Entry>,
}

impl Queue {
    /// Adds an entry in the queue of this run.
    pub(super) fn push(&mut self, priority: i32, run: RunId, entry: Entry) -> Position {
        self.arrivals += 1;
        let (rank, arrival) = (Rank(-i64::from(priority)), self.arrivals);
        let queue = self.queues.entry((rank, run)).or_insert_with(|| {
            self.last_turn += 1;
            self.turns.insert((rank, self.last_turn), run);
            RunQueue { turn: self.last_turn, entries: BTreeMap::new() }
        });
        queue.entries.insert(arrival, entry);
        Position { queue: (rank, run), arrival }
    }

    /// Iterates over the first entry of each run, in order of turns.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Position, &Entry)> {
        self.turns.iter().filter_map(|(&(rank, _), &run)| {
            let (&arrival, entry) = self.queues.get(&(rank, run))?.entries.first_key_value()?;
            Some((Position { queue: (rank, run), arrival }, entry))
        })
    }

    /// Removes an admitted entry; its run has had its turn.
    pub(super) fn take(&mut self, position: Position) -> Option<Entry> {
        let entry = self.remove(position)?;
        if let Some(queue) = self.queues.get_mut(&position.queue) {
            let (rank, run) = position.queue;
            self.turns.remove(&(rank, queue.turn));
            self.last_turn += 1;
            queue.turn = self.last_turn;
            self.turns.insert((rank, queue.turn), run);
        }
        Some(entry)
    }

    /// Removes an entry that no longer waits; its run keeps its turn for its other entries.
    pub(super) fn remove(&mut self, position: Position) -> Option<Entry> {
        let queue = self.queues.get_mut(&position.queue)?;
        let entry = queue.entries.remove(&position.arrival)?;
        if queue.entries.is_empty() {
            self.turns.remove(&(position.queue.0, queue.turn));
            self.queues.remove(&position.queue);
        }
        Some(entry)
    }
}
