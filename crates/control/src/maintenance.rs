//! The maintenance thread: runs schedules and deletes what has expired. It sleeps until the next due time, wakes on
//! commits, and checks the clock once a minute while there is a schedule, because clocks jump.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use crate::{
    Error, clock,
    cron::Timekeeper,
    expire::{Expirer, Overdue, RetentionPolicy},
    registry::Registry,
};

/// Longest sleep while there is a schedule.
const MINUTE: Duration = Duration::from_secs(60);

/// Debounce time after a commit.
const GATHER: Duration = Duration::from_millis(100);

/// Pause after a failed pass.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

pub(crate) struct MaintenanceThread {
    line: Arc<Line>,
    thread: JoinHandle<Result<(), Error>>,
}

#[derive(Default)]
struct Line {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    rung: bool,
    closing: bool,
    overdue: Vec<Overdue>,
}

impl Registry {
    /// Starts the maintenance thread, which runs until the registry is closed.
    pub fn attend(&self, retention: RetentionPolicy) -> Result<(), Error> {
        let mut place = self.maintenance().lock().unwrap_or_else(PoisonError::into_inner);
        assert!(place.is_none(), "a controller has one maintenance thread");
        let line = Arc::new(Line::default());
        let ears = Arc::downgrade(&line);
        self.on_change(move |_| {
            if let Some(line) = ears.upgrade() {
                line.state.lock().unwrap_or_else(PoisonError::into_inner).rung = true;
                line.bell.notify_one();
            }
        });
        let (registry, own) = (self.clone(), line.clone());
        let work = move || {
            own.work(&registry, retention);
            Ok(())
        };
        let thread = self.controller().supervisor().spawn("maintenance", work).map_err(Error::Thread)?;
        *place = Some(MaintenanceThread { line, thread });
        Ok(())
    }

    /// Returns overdue work that failed: schedules that cannot run, runs and artifacts that cannot be deleted.
    pub fn overdue(&self) -> Vec<Overdue> {
        let place = self.maintenance().lock().unwrap_or_else(PoisonError::into_inner);
        let seen = |maintenance: &MaintenanceThread| {
            maintenance.line.state.lock().unwrap_or_else(PoisonError::into_inner).overdue.clone()
        };
        let mut found = place.as_ref().map(seen).unwrap_or_default();
        found.extend(crate::sweep::overdue(self.controller().data_dir()));
        found
    }
}

impl MaintenanceThread {
    /// Stops the thread and waits for its current pass.
    pub(crate) fn finish(self) {
        self.line.state.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.line.bell.notify_one();
        let _ = self.thread.join();
    }
}

impl Line {
    fn work(&self, registry: &Registry, retention: RetentionPolicy) {
        let mut timekeeper = Timekeeper::new(registry);
        let mut expirer = Expirer::new(retention);
        loop {
            // Schedules follow the wall clock; retention is elapsed time.
            let scheduled = timekeeper.look(clock::now());
            let expiring = expirer.look(registry.controller(), clock::steady());
            let failed: Vec<String> =
                [&scheduled, &expiring].iter().filter_map(|looked| Some(looked.as_ref().err()?.to_string())).collect();
            let scheduled = scheduled.ok().flatten().map(|wake| wake.since(clock::now()));
            let expiring = expiring.ok().flatten().map(|wake| wake.since(clock::steady()));
            let mut patience = [scheduled, expiring].into_iter().flatten().min();
            if timekeeper.is_needed() {
                patience = Some(patience.map_or(MINUTE, |patience| patience.min(MINUTE)));
            }
            if !failed.is_empty() || !timekeeper.troubles().is_empty() {
                patience = Some(patience.map_or(AFTER_FAILURE, |patience| patience.min(AFTER_FAILURE)));
            }
            let mut overdue = expirer.overdue();
            overdue.extend(timekeeper.troubles().iter().map(|(name, why)| Overdue {
                what: format!("schedule {name}"),
                tries: 1,
                why: why.clone(),
            }));
            overdue.extend(failed.into_iter().map(|why| Overdue {
                what: "the maintenance thread".to_owned(),
                tries: 1,
                why,
            }));
            if self.wait(patience, overdue) {
                return;
            }
        }
    }

    /// Sleeps until a commit or the timeout. Returns whether the thread must end.
    fn wait(&self, patience: Option<Duration>, overdue: Vec<Overdue>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.overdue = overdue;
        match patience {
            None => {
                while !state.rung && !state.closing {
                    state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
            Some(patience) => {
                let waiting = |state: &mut State| !state.rung && !state.closing;
                let waited = self.bell.wait_timeout_while(state, patience, waiting);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        if state.rung && !state.closing {
            let open = |state: &mut State| !state.closing;
            let gather = patience.map_or(GATHER, |patience| patience.min(GATHER));
            let waited = self.bell.wait_timeout_while(state, gather, open);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.rung = false;
        }
        state.closing
    }
}
