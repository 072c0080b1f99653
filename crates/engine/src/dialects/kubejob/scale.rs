//! How many pods a job wants: creates missing ones once their back-off is over, and deletes those that are too many.

use octoflow_model::{
    Time,
    kubejob::{Counted, KubeJobFact, PodPhase, PodStop, Verdict},
};

use super::{backoff, ident, run::Run, turn::Turn};
use crate::engine::slice::MEMBERS_A_FACT;

/// Pods that are deleted between two looks at the slice. Each that runs takes a fact of its own.
const DELETED_AT_ONCE: usize = 40;

impl Turn<'_> {
    /// Brings the number of active pods to what the job wants. Returns when pods that wait for a back-off are created.
    pub(super) fn scale(&mut self) -> Option<Time> {
        if self.run.state.head.suspended {
            self.delete_all(PodStop::Suspended);
            return None;
        }
        let (state, active) = (&self.run.state, self.run.state.active());
        let wanted = wanted(self.run, active);
        let surplus = self.surplus(active.saturating_sub(wanted));
        if !surplus.is_empty() {
            self.delete_later(surplus, PodStop::Scaled);
            return None;
        }
        let ending = if self.run.program.waits_for_ends() { state.count(PodPhase::Terminating) } else { 0 };
        let missing = wanted.saturating_sub(active).saturating_sub(ending);
        if missing == 0 {
            return None;
        }
        match (self.run.program.indexed, self.run.program.limit_per_index) {
            (true, Some(_)) => self.create_apart(missing),
            (indexed, _) => {
                if let Some(at) = state.last_failure {
                    let due = at.saturating_add(backoff::of_pods(state.failures_in_a_row));
                    if state.failures_in_a_row > 0 && due > self.now {
                        return Some(due);
                    }
                }
                let most = missing.min(MEMBERS_A_FACT);
                let indexes = if indexed { state.vacant.first(most) } else { Vec::new() };
                let count = if indexed { count_of(&indexes) } else { most };
                self.create(count, indexes);
                None
            }
        }
    }

    /// Creates pods of indexes whose failures are counted apart: each waits for its own back-off only.
    fn create_apart(&mut self, missing: u32) -> Option<Time> {
        let state = &self.run.state;
        let mut ready: Vec<(u32, u32)> = Vec::new();
        let mut next: Option<Time> = None;
        for index in state.vacant.first(missing).into_iter().flat_map(|range| range.0..=range.1) {
            let due = state
                .failures
                .get(&index)
                .map(|failures| failures.last.saturating_add(backoff::of_pods(failures.counted + failures.ignored)));
            match (due.filter(|due| *due > self.now), ready.last_mut()) {
                (Some(due), _) => next = Some(next.map_or(due, |next| next.min(due))),
                (None, Some(range)) if range.1 + 1 == index => range.1 = index,
                (None, _) => ready.push((index, index)),
            }
            if count_of(&ready) == MEMBERS_A_FACT {
                break;
            }
        }
        self.create(count_of(&ready), ready);
        next
    }

    fn create(&mut self, count: u32, indexes: Vec<(u32, u32)>) {
        if count > 0 {
            let first = self.run.state.pods.len() as u32;
            let seed = ident::seed(&self.run.state.head.uid);
            self.decide(KubeJobFact::Created { first, count, indexes, seed, at: self.now });
        }
        if count == MEMBERS_A_FACT {
            // There may be more to create.
            self.run.todo.job = true;
            self.run.todo.lacks_pods = true;
        }
    }

    pub(super) fn active_pods(&self) -> Vec<u32> {
        let state = &self.run.state;
        state.open.iter().copied().filter(|pod| state.pods[*pod as usize].phase.active()).collect()
    }

    /// Returns the pods to delete: those whose index is not wanted any more, and others up to `least`, beginning with those
    /// that have come least far.
    fn surplus(&self, least: u32) -> Vec<u32> {
        let state = &self.run.state;
        if least == 0 && state.beyond == 0 {
            return Vec::new();
        }
        let beyond = |pod: &u32| state.is_beyond(state.pods[*pod as usize].index);
        let (mut gone, mut left): (Vec<u32>, Vec<u32>) = self.active_pods().into_iter().partition(beyond);
        let more = (least as usize).saturating_sub(gone.len());
        left.sort_by_key(|pod| {
            let slot = &state.pods[*pod as usize];
            let far = match slot.phase {
                PodPhase::Queued => 0,
                PodPhase::Starting => 1,
                PodPhase::BackOff => 2,
                PodPhase::Running => 3,
                PodPhase::Terminating | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone => 4,
            };
            // Of those that run, the one that runs longest goes last.
            (far, std::cmp::Reverse(slot.started), std::cmp::Reverse(*pod))
        });
        gone.extend(left.into_iter().take(more));
        gone
    }

    /// Deletes all active pods.
    pub(super) fn delete_all(&mut self, why: PodStop) {
        if self.run.state.active() > 0 {
            let active = self.active_pods();
            self.delete_later(active, why);
        }
    }

    /// Deletes these pods before the job is looked at again, as slices allow.
    fn delete_later(&mut self, pods: Vec<u32>, why: PodStop) {
        self.run.todo.surplus.extend(pods.into_iter().map(|pod| (pod, why)));
        self.run.todo.job = true;
    }

    /// Deletes some of the pods that are to be deleted for the same reason.
    pub(super) fn delete_some(&mut self) {
        let surplus = &mut self.run.todo.surplus;
        let Some((_, why)) = surplus.front().copied() else { return };
        let same = surplus.iter().take(DELETED_AT_ONCE).take_while(|(_, other)| *other == why).count();
        let mut pods: Vec<u32> = surplus.drain(..same).map(|(pod, _)| pod).collect();
        pods.retain(|pod| self.run.state.pods[*pod as usize].phase.active());
        let message = match why {
            PodStop::Scaled => "the Job wants fewer pods",
            PodStop::Suspended => "the Job is suspended",
            PodStop::Finished => "the Job is over",
            PodStop::Deleted | PodStop::Deadline | PodStop::Evicted | PodStop::Preempted => "",
        };
        self.delete(pods, why, message);
    }

    /// Deletes active pods: those that wait for room at once, the others by ending them.
    pub(super) fn delete(&mut self, pods: Vec<u32>, why: PodStop, message: &str) {
        let waits = |run: &Run, pod: &u32| run.state.pods[*pod as usize].phase == PodPhase::Queued;
        let (queued, placed): (Vec<u32>, Vec<u32>) = pods.into_iter().partition(|pod| waits(self.run, pod));
        let counted = |pod: &u32| if why.by_job() { Counted::Nothing } else { self.failure(*pod, &[], "").0 };
        let mut removed: Vec<(Counted, Vec<u32>)> = Vec::new();
        for pod in queued {
            let counted = counted(&pod);
            match removed.iter_mut().find(|(same, _)| *same == counted) {
                Some((_, pods)) => pods.push(pod),
                None => removed.push((counted, vec![pod])),
            }
        }
        for (counted, pods) in removed {
            self.decide(KubeJobFact::Removed { pods, at: self.now, counted });
        }
        for pod in placed {
            self.end_pod(pod, why, message.to_owned());
        }
    }

    /// Returns what a pod counts as from the moment it is being ended; `None` if its end decides.
    pub(super) fn counted_at_once(&self, pod: u32, why: PodStop) -> Option<Counted> {
        let judged = self.run.state.judgement.as_ref().map(|judgement| judgement.verdict);
        match why {
            PodStop::Scaled | PodStop::Suspended => Some(Counted::Nothing),
            // Its containers are ended like those of any pod that ends by itself.
            PodStop::Deadline => None,
            PodStop::Finished if judged == Some(Verdict::Failed) => Some(self.failure(pod, &[], "").0),
            PodStop::Finished | PodStop::Deleted | PodStop::Evicted | PodStop::Preempted => {
                (!self.run.program.waits_for_ends()).then(|| self.failure(pod, &[], "").0)
            }
        }
    }

    /// Sends every pod that is being ended its order again, after the shutdown was escalated.
    pub(super) fn resend_stops(&mut self) {
        let state = &self.run.state;
        let ending = |pod: &u32| state.pods[*pod as usize].phase == PodPhase::Terminating;
        let told: Vec<u32> = state.open.iter().copied().filter(ending).collect();
        self.run.todo.stops.extend(told);
    }
}

/// Returns how many pods should be active.
fn wanted(run: &Run, active: u32) -> u32 {
    let state = &run.state;
    let parallelism = state.settings.parallelism;
    match state.settings.completions {
        Some(completions) => completions.saturating_sub(state.succeeded).min(parallelism),
        // Once a pod of a work queue has succeeded, there is no new work.
        None if state.succeeded > 0 => active,
        None => parallelism,
    }
}

fn count_of(ranges: &[(u32, u32)]) -> u32 {
    ranges.iter().map(|(first, last)| last - first + 1).sum()
}
