//! The simulator over many seeds, as every change must pass it. One failing seed names the command that replays it.

mod fuzz;
mod scheduler;
mod trace;

use std::{
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use octoflow_testkit::sim::{
    CLUSTERS, COMPANIES, Crashes, Effort, FAMILIES, FLOWS, Flavour, JOBS, KUBE_JOBS, MIXED, PARENTS, Report, WALKS,
    Watch, World, explore, run,
};

/// Seeds that once broke a guarantee, with what it was.
const BROKE_ONCE: &[(u64, &str)] = &[
    (2195, "the engine did not come back from handlers that waited for room in a template that failed fast"),
    (2481, "a deadline that passed in a run that was being stopped was decided only after a restart"),
    (288, "tasks that waited for a lock took all the room of the one who held it"),
    (738, "nobody looked at those who waited for a lock when a daemon's room became free"),
    (21351, "a retried call was given a lock without a slot, and whoever had the slot waited for the lock"),
    (22192, "the same, with an exit handler inside of the sibling that had the slot"),
    (23271, "a retried daemon that was being stopped when its steps ended was started again, and nobody ended it"),
    (3_000_000_083, "a task was ended for a replica that had been dropped and did not wait any more"),
    (3_000_000_245, "room on offer that was kept for somebody meanwhile left a shape unasked for ever"),
    (3_000_000_620, "a task that guarantees of others exclude held up a queue in strict order"),
    (3_000_001_049, "members of a gang that waited alone counted as started when it had to start together again"),
    (3_000_001_371, "the same, with a gang of two runs"),
    (3_000_002_031, "a replica that had been dropped stayed in the unit of a gang"),
    (3_000_002_143, "a strict queue was not looked at again when its first task fitted on no open node any more"),
    (3_000_002_822, "a promise was given up while tasks on other nodes held the quota that it waited for"),
    (40399, "a node that was parked for its hook was not parked for its next child, and nobody came back to it"),
    (3758, "a DAG forgot a task that was ready when the same command resumed the run and ended a pause"),
    (1_000_000_059, "a retried daemon went on in a slot that it had given back"),
    (1_000_000_182, "a role that was stopped in slices went on where an earlier stop had paused"),
    (1_000_040_445, "a record that was on its way to the disk was packed again when runs were restored meanwhile"),
    (1_000_000_508, "replicas that were queued and dropped in one turn came to the scheduler"),
    (7_000_000_041, "a pod that is started again in its place lost its room while its run had more to decide"),
    (9_000_002_253, "a run that was deleted before its end left tasks running that nobody had told to end"),
    (9_000_002_490, "a daemon whose steps ended with the termination of the run was not killed"),
    (9_000_000_000, "a run that ended in the step in which it was deleted was packed, and its record refused"),
];

const WHOLE: &str = "no worker panics while it adds to the sum";

/// Attacks seeds on all processors; every failure is told.
fn attack(seeds: &[u64], effort: Effort) -> Report {
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Report::default());
    let failures = Mutex::new(Vec::new());
    let watch = Watch::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(Watch::LANES);
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..workers)
            .map(|lane| {
                let (next, total, failures, watch) = (&next, &total, &failures, &watch);
                scope.spawn(move || {
                    while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match explore(*seed, effort, &|| watch.begin(lane, *seed)) {
                            Ok(report) => total.lock().expect(WHOLE).add(report),
                            Err(failure) => failures.lock().expect(WHOLE).push(failure.to_string()),
                        }
                    }
                    watch.end(lane);
                })
            })
            .collect();
        scope.spawn(|| watch.guard(hangs));
        let panicked = lanes.into_iter().map(std::thread::ScopedJoinHandle::join).filter(Result::is_err).count();
        watch.dismiss();
        assert_eq!(panicked, 0, "a story ended in a panic");
    });
    let failures = failures.into_inner().expect(WHOLE);
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    total.into_inner().expect(WHOLE)
}

/// A hanging engine cannot be interrupted, so the whole test ends.
fn hangs(seed: u64) {
    let _ = writeln!(std::io::stderr(), "seed {seed} hangs: see it with: cargo xtask sim {seed} -v");
    std::process::abort();
}

#[test]
fn worlds_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(0..2000).collect::<Vec<_>>(), Effort::Light);
    // If worlds became trivial by accident, this test would prove nothing.
    assert!(report.nodes > 10 * report.stories, "{report:?}");
    assert!(report.crashes > 1000, "{report:?}");
}

#[test]
fn worlds_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(10_000..10_020).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 500, "{report:?}");
}

#[test]
fn task_sets_beside_workflows_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(MIXED..MIXED + 300).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 200, "{report:?}");
}

#[test]
fn task_sets_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(MIXED + 10_000..MIXED + 10_004).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn volcano_jobs_beside_others_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(JOBS..JOBS + 200).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 200, "{report:?}");
}

#[test]
fn volcano_jobs_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(JOBS + 10_000..JOBS + 10_004).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn kubernetes_jobs_beside_others_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(KUBE_JOBS..KUBE_JOBS + 200).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 200, "{report:?}");
}

#[test]
fn flows_and_their_jobs_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(FLOWS..FLOWS + 200).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 200, "{report:?}");
}

#[test]
fn submitted_jobs_keep_the_guarantees_whatever_plugins_answer() {
    let report = attack(&(WALKS..WALKS + 200).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 200, "{report:?}");
}

#[test]
fn submitted_jobs_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(WALKS + 10_000..WALKS + 10_006).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn kubernetes_jobs_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(KUBE_JOBS + 10_000..KUBE_JOBS + 10_004).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn flows_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(FLOWS + 10_000..FLOWS + 10_003).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn workflows_that_order_runs_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(PARENTS..PARENTS + 100).collect::<Vec<_>>(), Effort::Light);
    assert!(report.crashes > 200, "hardly anything crashed: {report:?}");
}

#[test]
fn workflows_that_order_runs_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(PARENTS + 10_000..PARENTS + 10_002).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 100, "hardly anything crashed: {report:?}");
}

#[test]
fn runs_that_belong_to_others_end_with_them_whatever_crashes() {
    let report = attack(&(FAMILIES..FAMILIES + 200).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 100, "{report:?}");
}

#[test]
fn families_of_runs_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&(FAMILIES + 10_000..FAMILIES + 10_003).collect::<Vec<_>>(), Effort::Everywhere);
    assert!(report.crashes > 50, "{report:?}");
}

#[test]
fn clusters_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(CLUSTERS..CLUSTERS + 30).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 30, "{report:?}");
    // Of everything that is judged there is something.
    let seen = report.seen;
    assert!(seen.starts > 500 && seen.preemptions > 5 && seen.gangs > 10 && seen.drained > 5, "{report:?}");
}

#[test]
fn clusters_keep_the_guarantees_when_the_controller_crashes_around_every_commit() {
    let report = attack(&[CLUSTERS + 10_000], Effort::Everywhere);
    assert!(report.crashes > 30, "{report:?}");
}

#[test]
fn runs_of_every_kind_in_a_cluster_keep_the_guarantees_with_and_without_crashes() {
    let report = attack(&(COMPANIES + 100..COMPANIES + 140).collect::<Vec<_>>(), Effort::Light);
    assert!(report.commits > 10 * report.stories && report.crashes > 30, "{report:?}");
    let seen = report.seen;
    assert!(seen.starts > 500 && seen.preemptions > 5 && seen.gangs > 10 && seen.drained > 5, "{report:?}");
}

#[test]
fn seeds_that_broke_something_once_hold() {
    let seeds: Vec<u64> = BROKE_ONCE.iter().map(|(seed, _)| *seed).collect();
    attack(&seeds, Effort::Light);
}

#[test]
fn a_seed_always_tells_the_same_story() {
    for seed in (100..110).chain(CLUSTERS..CLUSTERS + 5) {
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
