//! The queue of waiting entries: priority first; runs of equal priority take turns; the entries of one run go in the order
//! of their arrival. It knows nothing of room. Every operation costs O(log n).

use std::collections::{BTreeMap, HashMap};

use octoflow_model::RunId;

use super::Entry;

/// Position of an entry in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    line: LineKey,
    arrival: u64,
}

/// The waiting entries of one run at one priority.
type LineKey = (Rank, RunId);

/// The negated priority: the highest priority comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rank(i64);

#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: HashMap<LineKey, Line>,
    /// Runs that wait, by priority and then by whose turn it is. A run that had its turn goes behind all that wait now,
    /// and so does one that comes: between two turns of a run every other one has at most one. So a run of one task never
    /// waits for more than one task of each other run, and nobody who waits can be overtaken for ever.
    turns: BTreeMap<(Rank, u64), RunId>,
    arrivals: u64,
    last_turn: u64,
}

#[derive(Debug)]
struct Line {
    turn: u64,
    entries: BTreeMap<u64, Entry>,
}

impl Queue {
    /// Adds an entry in the queue of this run.
    pub(super) fn push(&mut self, priority: i32, run: RunId, entry: Entry) -> Place {
        self.arrivals += 1;
        let (rank, arrival) = (Rank(-i64::from(priority)), self.arrivals);
        let line = self.lines.entry((rank, run)).or_insert_with(|| {
            self.last_turn += 1;
            self.turns.insert((rank, self.last_turn), run);
            Line { turn: self.last_turn, entries: BTreeMap::new() }
        });
        line.entries.insert(arrival, entry);
        Place { line: (rank, run), arrival }
    }

    /// Iterates over the first entry of each run, in order of turns.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Place, &Entry)> {
        self.turns.iter().filter_map(|(&(rank, _), &run)| {
            let (&arrival, entry) = self.lines.get(&(rank, run))?.entries.first_key_value()?;
            Some((Place { line: (rank, run), arrival }, entry))
        })
    }

    /// Removes an admitted entry; its run has had its turn.
    pub(super) fn take(&mut self, place: Place) -> Option<Entry> {
        let entry = self.remove(place)?;
        if let Some(line) = self.lines.get_mut(&place.line) {
            let (rank, run) = place.line;
            self.turns.remove(&(rank, line.turn));
            self.last_turn += 1;
            line.turn = self.last_turn;
            self.turns.insert((rank, line.turn), run);
        }
        Some(entry)
    }

    /// Removes an entry that no longer waits; its run keeps its turn for its other entries.
    pub(super) fn remove(&mut self, place: Place) -> Option<Entry> {
        let line = self.lines.get_mut(&place.line)?;
        let entry = line.entries.remove(&place.arrival)?;
        if line.entries.is_empty() {
            self.turns.remove(&(place.line.0, line.turn));
            self.lines.remove(&place.line);
        }
        Some(entry)
    }
}
