//! The engine's time as a function of what clocks say. It reads none itself.

use std::time::Duration;

use octoflow_model::Time;
use serde::{Deserialize, Serialize};

/// The wall clock was set when it differs by more than this from where it should be. Less is left to whoever slews it.
const STEP: i64 = 200_000;

/// How many settings of the clock are remembered. Each is another way to understand an old date.
const MAX_OFFSETS: usize = 64;

/// What both clocks said at one moment, in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Which start of the machine; empty when nobody knows.
    pub(super) boot: String,
    pub(super) since_boot: i64,
    pub(super) wall: i64,
}

/// How the engine's time follows from the boot clock, and how the wall clock stood to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Timeline {
    boot: String,
    /// The engine's time when the machine booted.
    origin: i64,
    /// The newest moment of the engine's time that is known to have been.
    seen: i64,
    /// How far the wall clock was ahead of the engine's time, as it was found one after the other; the last is how it is.
    offsets: Vec<i64>,
}

impl Timeline {
    /// Goes on from what was kept, at a moment when the clocks say this.
    pub(super) fn resume(kept: Option<Self>, reading: &Reading) -> Self {
        let mut timeline = match kept {
            // The same start of the machine: its clock knows how much time has passed, whatever the date is.
            Some(kept)
                if !kept.boot.is_empty()
                    && kept.boot == reading.boot
                    && kept.origin.saturating_add(reading.since_boot) >= kept.seen =>
            {
                kept
            }
            // Another one: only the wall clock says how long the machine was off. It may be wrong, but time does not go back.
            Some(mut kept) => {
                let by_date = reading.wall.saturating_sub(kept.ahead());
                kept.origin = by_date.max(kept.seen).saturating_sub(reading.since_boot);
                kept.boot.clone_from(&reading.boot);
                kept
            }
            None => Self {
                boot: reading.boot.clone(),
                origin: reading.wall.saturating_sub(reading.since_boot),
                seen: reading.wall,
                offsets: vec![0],
            },
        };
        timeline.observe(reading);
        timeline
    }

    /// One timeline for a process that opens a second directory: the first one's, set forward if the other was ahead.
    pub(super) fn joined(mut self, other: Self, reading: &Reading) -> Self {
        self.observe(reading);
        self.origin = self.origin.saturating_add(other.seen.saturating_sub(self.seen).max(0));
        self.seen = self.seen.max(other.seen);
        for offset in other.offsets {
            if !self.offsets.contains(&offset) {
                self.offsets.insert(0, offset);
            }
        }
        self
    }

    pub(super) fn at(&self, since_boot: i64) -> Time {
        Time(self.origin.saturating_add(since_boot))
    }

    /// How far the wall clock is ahead, as far as was observed.
    pub(super) fn ahead(&self) -> i64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Notices when the wall clock was set.
    pub(super) fn observe(&mut self, reading: &Reading) {
        let now = self.at(reading.since_boot).0;
        self.seen = self.seen.max(now);
        let ahead = reading.wall.saturating_sub(now);
        let near = |offset: &i64| ahead.saturating_sub(*offset).saturating_abs() <= STEP;
        if self.offsets.last().is_some_and(near) {
            return;
        }
        // A clock that is set back to where it was is as it was, to the microsecond.
        let ahead = match self.offsets.iter().position(near) {
            Some(at) => self.offsets.remove(at),
            None => ahead,
        };
        self.offsets.push(ahead);
        if self.offsets.len() > MAX_OFFSETS {
            self.offsets.remove(0);
        }
    }

    /// The shortest time that can have passed until `steady` since something got this date.
    pub(super) fn age(&self, stamp: Time, steady: Time) -> Duration {
        let then = self.offsets.iter().map(|offset| stamp.0.saturating_sub(*offset));
        let latest = then.filter(|then| *then <= steady.0.saturating_add(STEP)).max();
        latest.map_or(Duration::ZERO, |then| steady.since(Time(then)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3600 * SECOND;
    const TEN_YEARS: i64 = 10 * 365 * 24 * HOUR;
    const START: i64 = 1_790_000_000 * SECOND;

    /// A machine whose clocks are what a test says.
    struct Machine {
        boot: u32,
        since_boot: i64,
        wall: i64,
    }

    impl Machine {
        fn read(&self) -> Reading {
            Reading { boot: format!("boot {}", self.boot), since_boot: self.since_boot, wall: self.wall }
        }

        fn pass(&mut self, span: i64) {
            self.since_boot += span;
            self.wall += span;
        }
    }

    fn machine() -> Machine {
        Machine { boot: 1, since_boot: 500 * SECOND, wall: START }
    }

    #[test]
    fn setting_the_date_neither_moves_nor_stops_the_engine() {
        for jump in [HOUR, -HOUR, TEN_YEARS] {
            let mut machine = machine();
            let mut timeline = Timeline::resume(None, &machine.read());
            assert_eq!(timeline.at(machine.since_boot), Time(START));
            assert_eq!(timeline.ahead(), 0);
            machine.wall += jump;
            machine.pass(10 * SECOND);
            timeline.observe(&machine.read());
            assert_eq!(timeline.at(machine.since_boot), Time(START + 10 * SECOND));
            assert_eq!(timeline.ahead(), jump);
            // A restart of the program in between changes nothing.
            machine.pass(HOUR);
            let timeline = Timeline::resume(Some(timeline), &machine.read());
            assert_eq!(timeline.at(machine.since_boot), Time(START + 10 * SECOND + HOUR));
        }
    }

    #[test]
    fn a_date_set_while_nobody_ran_is_noticed() {
        let mut machine = machine();
        let kept = Timeline::resume(None, &machine.read());
        machine.wall += TEN_YEARS;
        machine.pass(SECOND);
        let timeline = Timeline::resume(Some(kept), &machine.read());
        assert_eq!((timeline.at(machine.since_boot), timeline.ahead()), (Time(START + SECOND), TEN_YEARS));
    }

    #[test]
    fn after_a_restart_of_the_machine_the_date_counts_but_time_never_goes_back() {
        let mut machine = machine();
        let kept = Timeline::resume(None, &machine.read());
        (machine.boot, machine.since_boot) = (2, 20 * SECOND);
        machine.wall += HOUR;
        let timeline = Timeline::resume(Some(kept), &machine.read());
        assert_eq!(timeline.at(machine.since_boot), Time(START + HOUR), "it was off for an hour");
        (machine.boot, machine.since_boot) = (3, 20 * SECOND);
        machine.wall = START - TEN_YEARS;
        let timeline = Timeline::resume(Some(timeline), &machine.read());
        assert_eq!(timeline.at(machine.since_boot), Time(START + HOUR), "nobody knows how long it was off");
        assert_eq!(timeline.ahead(), -TEN_YEARS - HOUR);
    }

    #[test]
    fn nothing_is_taken_to_be_older_than_it_is() {
        let mut machine = machine();
        let mut timeline = Timeline::resume(None, &machine.read());
        let before = Time(machine.wall);
        machine.pass(60 * SECOND);
        machine.wall += TEN_YEARS;
        timeline.observe(&machine.read());
        let after = Time(machine.wall);
        machine.pass(60 * SECOND);
        let steady = timeline.at(machine.since_boot);
        assert_eq!(timeline.age(before, steady), Duration::from_secs(120));
        assert_eq!(timeline.age(after, steady), Duration::from_secs(60));
        assert_eq!(timeline.age(Time(machine.wall + TEN_YEARS), steady), Duration::ZERO, "a date that is yet to come");
    }

    #[test]
    fn a_second_directory_never_sets_the_first_one_back() {
        let mut machine = machine();
        let first = Timeline::resume(None, &machine.read());
        machine.pass(30 * SECOND);
        let same = Timeline::resume(Some(first.clone()), &machine.read());
        assert_eq!(first.clone().joined(same, &machine.read()).at(machine.since_boot), Time(START + 30 * SECOND));
        let ahead = Timeline { seen: START + HOUR, origin: START + HOUR - machine.since_boot, ..first.clone() };
        assert_eq!(first.joined(ahead, &machine.read()).at(machine.since_boot), Time(START + HOUR));
    }

    #[test]
    fn a_clock_that_is_slewed_was_not_set() {
        let mut machine = machine();
        let mut timeline = Timeline::resume(None, &machine.read());
        machine.wall += STEP / 2;
        timeline.observe(&machine.read());
        assert_eq!(timeline.ahead(), 0);
        machine.wall += HOUR;
        timeline.observe(&machine.read());
        machine.wall -= HOUR;
        timeline.observe(&machine.read());
        assert_eq!(timeline.ahead(), 0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Pass(i64),
        Set(i64),
        Restart,
        Reboot { off: i64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..HOUR).prop_map(Step::Pass),
            prop::sample::select(vec![HOUR, -HOUR, TEN_YEARS, -TEN_YEARS, 1, -1]).prop_map(Step::Set),
            Just(Step::Restart),
            (0..HOUR).prop_map(|off| Step::Reboot { off }),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        #[test]
        fn the_engines_time_is_what_has_passed(steps in steps()) {
            let mut machine = machine();
            let mut timeline = Timeline::resume(None, &machine.read());
            let mut passed = timeline.at(machine.since_boot);
            for step in steps {
                match step {
                    Step::Pass(span) => {
                        machine.pass(span);
                        passed = passed.shifted(span);
                    }
                    Step::Set(by) => machine.wall += by,
                    Step::Restart => timeline = Timeline::resume(Some(timeline), &machine.read()),
                    Step::Reboot { off } => {
                        timeline.observe(&machine.read());
                        machine.boot += 1;
                        machine.wall += off;
                        machine.since_boot = SECOND;
                        timeline = Timeline::resume(Some(timeline), &machine.read());
                        let now = timeline.at(machine.since_boot);
                        prop_assert!(now >= passed && now <= passed.shifted(off + STEP), "{now:?} {passed:?}");
                        passed = now;
                    }
                }
                timeline.observe(&machine.read());
                let now = timeline.at(machine.since_boot);
                prop_assert_eq!(now, passed);
                let shown = now.shifted(timeline.ahead()).0;
                prop_assert!((shown - machine.wall).abs() <= STEP, "dates follow the wall clock");
            }
        }
    }
}
