//! Decisions about very many pods, which are carried out in slices. What is left of them is a fact, so that a restart goes
//! on with it. It decides nothing: which pods are meant is decided before.

use octoflow_model::volcano::{Event, JobFact, KillWork, LeftWork, PodPhase, PodStop};

use super::turn::{Turn, contiguous};

/// So few pods are ended at once, whatever is left to do.
const FEW: u32 = 40;

impl Turn<'_> {
    /// Ends pods, as far as the slice lasts; the rest is left. What they end with raises no event.
    pub(super) fn kill(&mut self, work: KillWork) {
        let all: u32 = work.pods.iter().map(|(_, count)| count).sum();
        // What was left before comes first.
        let done = if all <= FEW || self.run.state.left.is_empty() { self.kill_some(&work, 0, all <= FEW) } else { 0 };
        if done < all {
            let pods = after(&work.pods, done);
            self.leave(LeftWork::Kill(KillWork { pods, ..work }));
        }
    }

    /// Raises that pods are pending, as far as the slice lasts; the rest is left.
    pub(super) fn are_pending(&mut self, pods: &[u32]) {
        let ranges = contiguous(pods);
        let done = if self.run.state.left.is_empty() { self.raise_some(&ranges, 0) } else { 0 };
        if (done as usize) < pods.len() {
            self.leave(LeftWork::Pending { pods: after(&ranges, done) });
        }
    }

    fn leave(&mut self, work: LeftWork) {
        let mut left = self.run.state.left.clone();
        if !left.contains(&work) {
            left.push(work);
            self.decide(JobFact::Left { at: self.now, work: left });
        }
    }

    /// Goes on with the first of what is left.
    pub(super) fn go_on(&mut self) {
        let Some(work) = self.run.state.left.first().cloned() else { return };
        let from = self.run.todo.left_at;
        let (all, done) = match &work {
            LeftWork::Kill(work) => (&work.pods, self.kill_some(work, from, false)),
            LeftWork::Pending { pods } => (pods, self.raise_some(pods, from)),
        };
        if done < all.iter().map(|(_, count)| count).sum() {
            self.run.todo.left_at = done;
        } else {
            self.run.todo.left_at = 0;
            let work = self.run.state.left[1..].to_vec();
            self.decide(JobFact::Left { at: self.now, work });
        }
    }

    /// Ends pods, beginning with the one at this place. Returns the place of the first that is left.
    fn kill_some(&mut self, work: &KillWork, from: u32, all: bool) -> u32 {
        let (mut gone, mut done) = (Vec::new(), from);
        for pod in numbers(&work.pods).skip(from as usize) {
            self.slice.visited();
            done += 1;
            let slot = &self.run.state.pods[pod as usize];
            match slot.phase {
                PodPhase::Absent => {}
                PodPhase::Succeeded | PodPhase::Failed if work.keep_finished => {}
                PodPhase::Queued | PodPhase::Succeeded | PodPhase::Failed => {
                    self.slice.covered(1);
                    gone.push(pod);
                }
                PodPhase::Starting | PodPhase::Running | PodPhase::BackOff => {
                    self.end_pod(pod, PodStop::Killed, work.why.clone());
                    self.call_off(pod, &[Event::PodPending]);
                }
                PodPhase::Terminating if slot.closing != Some(PodStop::Killed) => {
                    self.end_pod(pod, PodStop::Killed, work.why.clone());
                }
                PodPhase::Terminating => {}
            }
            if !all && self.slice.is_spent() {
                break;
            }
        }
        for (first, count) in contiguous(&gone) {
            self.decide(JobFact::Removed { first, count, at: self.now });
            (first..first + count).for_each(|pod| self.call_off(pod, &[Event::PodPending]));
        }
        for pod in numbers(&work.pods).skip(from as usize).take((done - from) as usize) {
            let waiting = self.run.state.delayed.get(&pod);
            if waiting.is_some_and(|waiting| Some(waiting.action) == work.calls_off) {
                self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: true });
            }
        }
        done
    }

    fn raise_some(&mut self, pods: &[(u32, u32)], from: u32) -> u32 {
        let mut done = from;
        for pod in numbers(pods).skip(from as usize) {
            self.slice.visited();
            let phase = self.run.state.pods[pod as usize].phase;
            if self.run.state.admitted && matches!(phase, PodPhase::Queued | PodPhase::Starting) {
                self.is_pending(pod);
            }
            done += 1;
            if self.slice.is_spent() {
                break;
            }
        }
        done
    }
}

fn numbers(ranges: &[(u32, u32)]) -> impl Iterator<Item = u32> + '_ {
    ranges.iter().flat_map(|(first, count)| *first..first + count)
}

/// Returns the ranges without their first numbers.
fn after(ranges: &[(u32, u32)], mut skipped: u32) -> Vec<(u32, u32)> {
    let mut left = Vec::new();
    for (first, count) in ranges.iter().copied() {
        let gone = skipped.min(count);
        skipped -= gone;
        if gone < count {
            left.push((first + gone, count - gone));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_begins_where_the_rest_does() {
        let ranges = [(0, 3), (10, 2), (20, 1)];
        assert_eq!(after(&ranges, 0), ranges);
        assert_eq!(after(&ranges, 3), [(10, 2), (20, 1)]);
        assert_eq!(after(&ranges, 4), [(11, 1), (20, 1)]);
        assert_eq!(after(&ranges, 6), []);
        assert_eq!(numbers(&ranges).collect::<Vec<_>>(), [0, 1, 2, 10, 11, 20]);
    }
}
