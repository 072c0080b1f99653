//! The maintenance thread: runs schedules and deletes what has expired. It sleeps until the next due time, wakes on
//! commits, and checks the clock once a minute while there is a schedule, because clocks jump.

pub mod cron;
pub mod expire;
pub(crate) mod sweep;

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use crate::{
    Error, clock,
    maintenance::{
        cron::CronScheduler,
        expire::{Expirer, Overdue, RetentionPolicy},
    },
    registry::Registry,
};

/// Longest sleep while there is a schedule.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Debounce time after a commit.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Pause after a failed pass.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct MaintenanceThread {
    shared: Arc<MaintenanceLoop>,
    thread: JoinHandle<Result<(), Error>>,
}

#[derive(Default)]
struct MaintenanceLoop {
    state: Mutex<State>,
    condvar: Condvar,
}

#[derive(Default)]
struct State {
    changed: bool,
    closing: bool,
    overdue: Vec<Overdue>,
}

impl Registry {
    /// Starts the maintenance thread, which runs until the registry is closed.
    pub fn start_maintenance(&self, retention: RetentionPolicy) -> Result<(), Error> {
        let mut place = self.maintenance().lock().unwrap_or_else(PoisonError::into_inner);
        assert!(place.is_none(), "a controller has one maintenance thread");
        let shared = Arc::new(MaintenanceLoop::default());
        let weak = Arc::downgrade(&shared);
        self.on_change(move |_| {
            if let Some(shared) = weak.upgrade() {
                shared.state.lock().unwrap_or_else(PoisonError::into_inner).changed = true;
                shared.condvar.notify_one();
            }
        });
        let (registry, own) = (self.clone(), shared.clone());
        let work = move || {
            own.work(&registry, retention);
            Ok(())
        };
        let thread = self.controller().supervisor().spawn("maintenance", work).map_err(Error::Thread)?;
        *place = Some(MaintenanceThread { shared, thread });
        Ok(())
    }

    /// Returns overdue work that failed: schedules that cannot run, runs and artifacts that cannot be deleted.
    pub fn overdue(&self) -> Vec<Overdue> {
        let place = self.maintenance().lock().unwrap_or_else(PoisonError::into_inner);
        let seen = |maintenance: &MaintenanceThread| {
            maintenance.shared.state.lock().unwrap_or_else(PoisonError::into_inner).overdue.clone()
        };
        let mut found = place.as_ref().map(seen).unwrap_or_default();
        found.extend(sweep::overdue(self.controller().data_dir()));
        found
    }
}

impl MaintenanceThread {
    /// Stops the thread and waits for its current pass.
    pub(crate) fn finish(self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.shared.condvar.notify_one();
        let _ = self.thread.join();
    }
}

impl MaintenanceLoop {
    fn work(&self, registry: &Registry, retention: RetentionPolicy) {
        let mut scheduler = CronScheduler::new(registry);
        let mut expirer = Expirer::new(retention);
        loop {
            // Schedules follow the wall clock; retention is elapsed time.
            let scheduled = scheduler.run_due(clock::now());
            let expiring = expirer.run_due(registry.controller(), clock::steady());
            let failed: Vec<String> =
                [&scheduled, &expiring].iter().filter_map(|looked| Some(looked.as_ref().err()?.to_string())).collect();
            let scheduled = scheduled.ok().flatten().map(|wake| wake.since(clock::now()));
            let expiring = expiring.ok().flatten().map(|wake| wake.since(clock::steady()));
            let mut timeout = [scheduled, expiring].into_iter().flatten().min();
            if scheduler.is_needed() {
                timeout = Some(timeout.map_or(MAX_SLEEP, |timeout| timeout.min(MAX_SLEEP)));
            }
            if !failed.is_empty() || !scheduler.failures().is_empty() {
                timeout = Some(timeout.map_or(FAILURE_PAUSE, |timeout| timeout.min(FAILURE_PAUSE)));
            }
            let mut overdue = expirer.overdue();
            overdue.extend(scheduler.failures().iter().map(|(name, why)| Overdue {
                what: format!("schedule {name}"),
                tries: 1,
                why: why.clone(),
            }));
            overdue.extend(failed.into_iter().map(|why| Overdue {
                what: "the maintenance thread".to_owned(),
                tries: 1,
                why,
            }));
            if self.wait(timeout, overdue) {
                return;
            }
        }
    }

    /// Sleeps until a commit or the timeout. Returns whether the thread must end.
    fn wait(&self, timeout: Option<Duration>, overdue: Vec<Overdue>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.overdue = overdue;
        match timeout {
            None => {
                while !state.changed && !state.closing {
                    state = self.condvar.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
            Some(timeout) => {
                let waiting = |state: &mut State| !state.changed && !state.closing;
                let waited = self.condvar.wait_timeout_while(state, timeout, waiting);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        if state.changed && !state.closing {
            let open = |state: &mut State| !state.closing;
            let gather = timeout.map_or(DEBOUNCE, |timeout| timeout.min(DEBOUNCE));
            let waited = self.condvar.wait_timeout_while(state, gather, open);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.changed = false;
        }
        state.closing
    }
}
