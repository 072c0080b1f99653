//! Throttles runs that decide in slices while foreground requests are active: such a run rests between slices, and its
//! facts share the commits of others. Without foreground load it goes at full speed. Reads no clock: times and load are
//! handed in.

use std::time::Duration;

use octoflow_model::Time;
use octoflow_store::Load;

/// The rest between two slices, and how long decided facts wait for a commit of somebody else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Yielding {
    rest_until: Option<Time>,
}

impl Yielding {
    /// Notes a slice that began and ended at these times and has left something to decide.
    pub(super) fn worked(&mut self, began: Time, ended: Time, load: Load) {
        let rest = load.rest(ended.since(began));
        self.rest_until = (!rest.is_zero()).then(|| ended.saturating_add(rest));
    }

    /// The time until the next slice, if the run rests. A load that is gone ends the rest.
    pub(super) fn rest(self, now: Time, load: Load) -> Option<Duration> {
        let left = self.rest_until?.since(now);
        (!left.is_zero() && load.is_active()).then_some(left)
    }

    /// The time until facts that have been held for `held` get a commit of their own.
    pub(super) fn alone_in(held: Duration, load: Load) -> Duration {
        load.share_within().saturating_sub(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const NOBODY: Load = Load { in_flight: 0, idle: None };
    const SOMEBODY: Load = Load { in_flight: 1, idle: None };

    /// So many milliseconds of slices of one millisecond, and how many of them a run has under this load.
    fn slices(load: impl Fn(u32) -> Load, millis: u32) -> u32 {
        let (mut yielding, base, mut done) = (Yielding::default(), Time(1_700_000_000_000_000), 0);
        for at in 0..millis {
            let now = base.saturating_add(at * MILLI);
            if yielding.rest(now, load(at)).is_none() {
                yielding.worked(now, now.saturating_add(MILLI), load(at));
                done += 1;
            }
        }
        done
    }

    #[test]
    fn a_run_alone_never_rests() {
        assert_eq!(slices(|_| NOBODY, 300), 300);
    }

    #[test]
    fn beside_somebody_it_has_a_sixth_of_the_time() {
        assert_eq!(slices(|_| SOMEBODY, 300), 50);
    }

    #[test]
    fn it_goes_on_at_once_when_they_are_gone() {
        assert_eq!(slices(|at| if at == 0 { SOMEBODY } else { NOBODY }, 10), 10);
    }

    #[test]
    fn its_facts_wait_for_a_shared_commit_only_beside_somebody_and_not_for_long() {
        assert_eq!(Yielding::alone_in(Duration::ZERO, NOBODY), Duration::ZERO);
        let wait = Yielding::alone_in(Duration::ZERO, SOMEBODY);
        assert!(!wait.is_zero());
        assert_eq!(Yielding::alone_in(MILLI, SOMEBODY), wait - MILLI);
        assert_eq!(Yielding::alone_in(2 * wait, SOMEBODY), Duration::ZERO);
    }
}
