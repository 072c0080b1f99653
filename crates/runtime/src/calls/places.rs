//! What the pool does next: reports first, then what tasks ask for, then the calls of each lane in turn. Every kind has
//! places of its own, so that a receiver that never answers keeps only those who ask the same one waiting. It starts no
//! thread and sends nothing.

use std::collections::{BTreeMap, VecDeque};

use octoflow_model::{
    ids::AttemptId,
    order::Report,
    request::{HttpRequest, Lane, ProbeRequest},
};

/// Limit of concurrent requests of tasks; more are queued. A waiting thread costs some kilobytes.
pub(super) const TASK_PLACES: usize = 64;
/// Limit of concurrent requests of all lanes together.
pub(super) const LANE_PLACES: usize = 512;
/// A lane that uses more places than this may only use the first half of all, so that the others find some.
const FAIR_SHARE: usize = 16;

/// Something that a thread of the pool does.
pub(super) enum Work {
    Send(AttemptId, Box<HttpRequest>),
    /// One round of a probe.
    Probe(AttemptId, Box<ProbeRequest>),
    /// Reports are queued and never sent from inside an order: the caller must not re-enter its own sink.
    Report(Report),
}

/// The place that a piece of work takes until it is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A report; it never waits for anybody outside.
    Nothing,
    Task,
    Lane(String),
}

#[derive(Default)]
pub(super) struct Places {
    reports: VecDeque<Report>,
    of_tasks: VecDeque<Work>,
    tasks_busy: usize,
    lanes: BTreeMap<String, LaneQueue>,
    /// Lanes with something in their queue, the next first.
    turns: VecDeque<String>,
    lanes_busy: usize,
}

#[derive(Default)]
struct LaneQueue {
    queue: VecDeque<(AttemptId, Box<HttpRequest>)>,
    busy: usize,
    limit: usize,
}

impl LaneQueue {
    /// How many more may be sent at once, of those that all lanes together may still send.
    fn free(&self, lanes_busy: usize) -> usize {
        let all = if self.busy < FAIR_SHARE { LANE_PLACES } else { LANE_PLACES / 2 };
        self.limit.saturating_sub(self.busy).min(all.saturating_sub(lanes_busy))
    }
}

impl Places {
    pub(super) fn push(&mut self, work: Work) {
        match work {
            Work::Report(report) => self.reports.push_back(report),
            Work::Probe(..) => self.of_tasks.push_back(work),
            Work::Send(attempt, request) => match request.lane.clone() {
                None => self.of_tasks.push_back(Work::Send(attempt, request)),
                Some(lane) => self.push_lane(&lane, attempt, request),
            },
        }
    }

    fn push_lane(&mut self, lane: &Lane, attempt: AttemptId, request: Box<HttpRequest>) {
        let found = self.lanes.entry(lane.name.clone()).or_default();
        // The limit may have been changed; the newest request knows best.
        found.limit = usize::try_from(lane.limit.max(1)).unwrap_or(usize::MAX);
        if found.queue.is_empty() {
            self.turns.push_back(lane.name.clone());
        }
        found.queue.push_back((attempt, request));
    }

    /// Takes the next piece of work that has a place.
    pub(super) fn next(&mut self) -> Option<(Work, Taken)> {
        if let Some(report) = self.reports.pop_front() {
            return Some((Work::Report(report), Taken::Nothing));
        }
        if self.tasks_busy < TASK_PLACES
            && let Some(work) = self.of_tasks.pop_front()
        {
            self.tasks_busy += 1;
            return Some((work, Taken::Task));
        }
        for _ in 0..self.turns.len() {
            let Some(name) = self.turns.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&name) else { continue };
            if lane.free(self.lanes_busy) == 0 {
                self.turns.push_back(name);
                continue;
            }
            let Some((attempt, request)) = lane.queue.pop_front() else { continue };
            lane.busy += 1;
            self.lanes_busy += 1;
            if !lane.queue.is_empty() {
                self.turns.push_back(name.clone());
            }
            return Some((Work::Send(attempt, request), Taken::Lane(name)));
        }
        None
    }

    pub(super) fn release(&mut self, taken: Taken) {
        match taken {
            Taken::Nothing => {}
            Taken::Task => self.tasks_busy -= 1,
            Taken::Lane(name) => {
                self.lanes_busy -= 1;
                if let Some(lane) = self.lanes.get_mut(&name) {
                    lane.busy -= 1;
                    if lane.busy == 0 && lane.queue.is_empty() {
                        self.lanes.remove(&name);
                    }
                }
            }
        }
    }

    /// Returns how many threads would find something to do.
    pub(super) fn runnable(&self) -> usize {
        let tasks = self.of_tasks.len().min(TASK_PLACES.saturating_sub(self.tasks_busy));
        let turns = self.turns.iter().filter_map(|name| self.lanes.get(name));
        let lanes: usize = turns.map(|lane| lane.queue.len().min(lane.free(self.lanes_busy))).sum();
        self.reports.len() + tasks + lanes.min(LANE_PLACES.saturating_sub(self.lanes_busy))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use octoflow_model::ids::{NodeIx, RunId};

    use super::*;

    fn request(lane: Option<(&str, u32)>) -> Work {
        let lane = lane.map(|(name, limit)| Lane { name: name.to_owned(), limit });
        let request = HttpRequest { lane, ..HttpRequest::new("POST", "http://a/", Duration::from_secs(1)) };
        Work::Send(AttemptId { run: RunId(1), task: NodeIx(1), attempt: 0 }, Box::new(request))
    }

    fn take_all(places: &mut Places) -> Vec<Taken> {
        std::iter::from_fn(|| places.next().map(|(_, taken)| taken)).collect()
    }

    #[test]
    fn a_full_lane_keeps_nobody_else_waiting() {
        let mut places = Places::default();
        for _ in 0..5 {
            places.push(request(Some(("slow", 2))));
        }
        places.push(request(Some(("quick", 1))));
        places.push(request(None));
        assert_eq!(places.runnable(), 4);
        let lane = |name: &str| Taken::Lane(name.to_owned());
        assert_eq!(take_all(&mut places), [Taken::Task, lane("slow"), lane("quick"), lane("slow")]);
        assert_eq!(places.runnable(), 0);
        places.release(lane("quick"));
        places.release(lane("slow"));
        assert_eq!(take_all(&mut places), [lane("slow")]);
    }

    #[test]
    fn tasks_keep_their_places_and_lanes_leave_each_other_some() {
        let mut places = Places::default();
        for lane in ["a", "b", "c"] {
            for _ in 0..300 {
                places.push(request(Some((lane, 1_000))));
            }
        }
        for _ in 0..100 {
            places.push(request(None));
        }
        let taken = take_all(&mut places);
        assert_eq!(taken.iter().filter(|taken| **taken == Taken::Task).count(), TASK_PLACES);
        assert_eq!(taken.len(), TASK_PLACES + LANE_PLACES / 2, "large lanes leave half of the places to others");
        for _ in 0..300 {
            places.push(request(Some(("small", 256))));
        }
        assert_eq!(take_all(&mut places).len(), FAIR_SHARE);
        for one in taken {
            places.release(one);
        }
        assert!(places.runnable() > 0);
    }

    #[test]
    fn a_lane_without_work_is_forgotten() {
        let mut places = Places::default();
        places.push(request(Some(("a", 0))));
        for taken in take_all(&mut places) {
            places.release(taken);
        }
        assert!(places.lanes.is_empty() && places.turns.is_empty());
    }
}
