//! The simulator over many seeds, as every change must pass it. One failing seed names the command that replays it.

use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use octoflow_testkit::sim::{Crashes, Effort, Flavour, Report, World, explore, run};

/// Seeds that once broke a guarantee, with what it was.
const BROKE_ONCE: &[(u64, &str)] = &[
    (8, "a pause whose value nobody supplied could not be resumed"),
    (131, "a retry whose back-off ended while the run was suspended"),
    (339, "a deadline that passed in a run that was being stopped already"),
    (2195, "retries that waited for room in a template that failed fast were told late"),
    (2994, "a task behind a suspended one was omitted late"),
];

const WHOLE: &str = "no worker panics while it adds to the sum";

/// Attacks seeds on all processors; every failure is told.
fn attack(seeds: Range<u64>, effort: Effort) -> Report {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Report::default());
    let failures = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match explore(seed, effort, &|| ()) {
                        Ok(report) => total.lock().expect(WHOLE).add(report),
                        Err(failure) => failures.lock().expect(WHOLE).push(failure.to_string()),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect(WHOLE);
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    total.into_inner().expect(WHOLE)
}

#[test]
fn worlds_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(0..2000, Effort::Light);
    // If worlds became trivial by accident, this test would prove nothing.
    assert!(report.nodes > 10 * report.stories, "{report:?}");
    assert!(report.crashes > 1000, "{report:?}");
}

#[test]
fn worlds_keep_the_guarantees_when_the_house_crashes_around_every_commit() {
    let report = attack(10_000..10_020, Effort::Everywhere);
    assert!(report.crashes > 500, "{report:?}");
}

#[test]
fn seeds_that_broke_something_once_hold() {
    for (seed, story) in BROKE_ONCE {
        if let Err(failure) = explore(*seed, Effort::Light, &|| ()) {
            panic!("{story}: {failure}");
        }
    }
}

#[test]
fn a_seed_always_tells_the_same_story() {
    for seed in 100..110 {
        let world = World::new(seed).unwrap();
        let told = || run(&world, Crashes::Sometimes, true).unwrap().story;
        assert_eq!(told(), told());
    }
}

#[test]
fn there_are_calm_and_wild_worlds() {
    let flavours: Vec<Flavour> = (0..4).map(|seed| World::new(seed).unwrap().flavour).collect();
    assert_eq!(flavours, [Flavour::Calm, Flavour::Wild, Flavour::Calm, Flavour::Wild]);
}
