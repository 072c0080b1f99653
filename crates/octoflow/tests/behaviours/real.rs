//! Scenarios that are run for real: manifests as processes, and command lines.

mod command;
mod process;
mod server;
mod stage;

use std::{
    sync::{Mutex, atomic::AtomicUsize, atomic::Ordering},
    thread,
};

pub(crate) use command::commands;
pub(crate) use process::process;

use crate::{
    files,
    scenario::{Misses, Scenario},
};

/// Most of a scenario is waiting for processes, so a few are run beside each other.
const AT_ONCE: usize = 4;

pub(crate) fn all(ending: &str, one: fn(&Scenario) -> Misses) {
    let scenarios: Vec<Scenario> = files(ending).iter().flat_map(|file| Scenario::all(file)).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let misses = one(scenario);
            let told = misses.iter().map(|(path, text)| scenario.tell(path, text));
            wrong.lock().unwrap().extend(told);
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
