//! What happens when: the world's clock jumps from one event to the next.
//! Events of one moment come in the order they were put down.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{AttemptId, Report, RunId, Time};

/// The first moment of every world.
pub(super) const DAWN: Time = Time(1_700_000_000_000_000);

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A person does what the world's plan has at this place.
    Act(usize),
    /// Nodes or queues change, as the world's plan has it at this place.
    Cluster(usize),
    /// Something happens to a task.
    Task(AttemptId, Moment),
    /// Templates change, or a person tells a job something, as the world's plan has it at this place.
    Flows(usize),
    /// Somebody has an ordered run deleted that was told to end.
    Delete(RunId),
    /// The worker that makes jobs takes up what it was asked for.
    Make(AttemptId),
    /// A report reaches the engine.
    Report(Report),
    /// So many submissions of others are under way from now on.
    Burst(usize),
    /// The oldest commit on its way reaches the disk.
    Durable,
    /// The disk cannot be written.
    Outage,
    /// The store is opened again.
    Reopen,
    /// The controller comes back after a crash.
    Up,
    /// The runtime loses everything it runs.
    Collapse,
}

/// What can happen to a task by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Begin,
    End,
    /// It gives in to the polite signal.
    GiveIn,
    /// The final signal.
    Killed,
}

#[derive(Debug, Default)]
pub(super) struct Calendar {
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
}

impl Calendar {
    pub(super) fn put(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.events.keys().next().map(|(at, _)| *at)
    }

    pub(super) fn pop_until(&mut self, until: Time) -> Option<(Time, Event)> {
        let first = self.events.first_entry()?;
        (first.key().0 <= until).then(|| (first.key().0, first.remove()))
    }

    /// A crash of the controller takes with it what was in its inbox, and what was on its way to the disk.
    pub(super) fn forget_controller(&mut self) {
        self.events
            .retain(|_, event| !matches!(event, Event::Report(_) | Event::Durable | Event::Reopen | Event::Make(_)));
    }

    /// A failed write takes with it what was on its way to the disk.
    pub(super) fn forget_commits(&mut self) {
        self.events.retain(|_, event| !matches!(event, Event::Durable));
    }
}

/// Spans come in steps of ten milliseconds, so that things often happen at the same moment.
pub(super) fn ticks(count: u64) -> Duration {
    Duration::from_millis(10 * count)
}
