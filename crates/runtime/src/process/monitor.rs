//! The engine's view of its spawner: whether there is one, whether it answers, and which conditions it reported. Only
//! stores state; connecting and pinging are the caller's part.

use std::{
    fs,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use octoflow_model::time::Time;

use super::sys;
use crate::port::{Condition, ConditionKind};

/// Silence after which a spawner counts as hanging or stopped; it answers within milliseconds.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// Minimum interval between pings.
const ASK_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Monitor {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Time since which there is no spawner, and why.
    down: Option<(Time, String)>,
    /// Pid of the spawner.
    pid: Option<u32>,
    /// Time of the last ping without an answer.
    pinged: Option<(Instant, Time)>,
    last_message: Option<Instant>,
    /// Conditions that the spawner reported.
    reported: Vec<Condition>,
}

impl Monitor {
    pub(crate) fn up(&self, pid: Option<u32>) {
        *self.lock() = State { pid, last_message: Some(Instant::now()), ..State::default() };
    }

    /// Records that there is no spawner. The reason may change from one attempt to the next, the time does not.
    pub(crate) fn down(&self, why: String) {
        let mut state = self.lock();
        let since = state.down.as_ref().map_or_else(sys::now, |(since, _)| *since);
        *state = State { down: Some((since, why)), ..State::default() };
    }

    pub(crate) fn is_down(&self) -> bool {
        self.lock().down.is_some()
    }

    /// Records a message of the spawner, which proves that it lives.
    pub(crate) fn mark_alive(&self) {
        let mut state = self.lock();
        state.pinged = None;
        state.last_message = Some(Instant::now());
    }

    pub(crate) fn set_conditions(&self, conditions: Vec<Condition>) {
        self.lock().reported = conditions;
    }

    /// Returns whether a ping is due; the caller sends it.
    pub(crate) fn ping_due(&self) -> bool {
        let mut state = self.lock();
        let fresh = state.last_message.is_some_and(|last_message| last_message.elapsed() < ASK_EVERY);
        let ask = state.down.is_none() && state.pinged.is_none() && !fresh;
        if ask {
            state.pinged = Some((Instant::now(), sys::now()));
        }
        ask
    }

    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let state = self.lock();
        if let Some((since, why)) = &state.down {
            let message = format!("{why}; it is tried again, and tasks wait meanwhile");
            return vec![Condition { kind: ConditionKind::SpawnerDown, since: *since, message }];
        }
        let mut conditions = state.reported.clone();
        let stopped = state.pid.filter(|pid| is_stopped(*pid));
        let silent = state.pinged.filter(|(pinged, _)| pinged.elapsed() >= SILENT_AFTER).map(|(_, since)| since);
        let message = match (stopped, silent) {
            (Some(pid), _) => format!("the spawner was stopped: resume it with `kill -CONT {pid}`"),
            (None, Some(_)) => "the spawner does not answer; its log is `spawner/log` in the data directory".to_owned(),
            (None, None) => return conditions,
        };
        let since = silent.or(state.pinged.map(|(_, since)| since)).unwrap_or_else(sys::now);
        conditions.push(Condition { kind: ConditionKind::SpawnerSilent, since, message });
        conditions
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything, so parse after its end.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_remembers_since_when_and_says_the_latest_reason() {
        let monitor = Monitor::default();
        monitor.up(None);
        assert_eq!(monitor.conditions(), []);
        monitor.down("first".to_owned());
        let since = monitor.conditions()[0].since;
        monitor.down("second".to_owned());
        let condition = monitor.conditions().remove(0);
        assert_eq!((condition.kind, condition.since), (ConditionKind::SpawnerDown, since));
        assert!(condition.message.starts_with("second"));
        assert!(monitor.is_down() && !monitor.ping_due(), "nobody is there to be asked");
        monitor.up(None);
        assert_eq!(monitor.conditions(), []);
    }

    #[test]
    fn a_sign_of_life_is_asked_for_once_until_it_comes() {
        let monitor = Monitor::default();
        assert!(monitor.ping_due());
        assert!(!monitor.ping_due());
        monitor.mark_alive();
        assert!(!monitor.ping_due(), "it has just been heard");
    }

    #[test]
    fn a_stopped_process_is_told_from_a_running_one() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_stopped(child.id()));
        sys::signal_process(i32::try_from(child.id()).unwrap(), libc::SIGSTOP);
        let give_up = Instant::now() + Duration::from_secs(30);
        while !is_stopped(child.id()) {
            assert!(Instant::now() < give_up);
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
