//! The simulator's command: attacks a range of seeds, or replays one and tells its story.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program talks to the person who started it")]

use std::{
    ops::Range,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use octoflow_testkit::sim::{
    CLUSTERS, COMPANIES, Crashes, Effort, FAMILIES, FLOWS, Failure, JOBS, KUBE_JOBS, MIXED, PARENTS, Report, Seen,
    WALKS, Watch, World, compare, explore, run,
};

const HELP: &str = "\
The seeded simulator

    cargo xtask sim                          the first 2000 seeds
    cargo xtask sim --seeds A..B             these seeds
    cargo xtask sim SEED                     one seed
    cargo xtask sim SEED --crash HOW -v      one story of it: HOW is never, sometimes, or a commit with a or b (17b)

    cargo xtask sim --nightly                seeds that no day before this one had: 10000, and 60 crashed everywhere

    Worlds of seeds from 1000000000 on have TaskSets beside workflows; in those from 2000000000 on runs own others. Those
    from 3000000000 on have several nodes and queues, which change; those from 5000000000 on have Volcano Jobs,
    those from 6000000000 on Jobs of Kubernetes, those from 7000000000 on JobFlows; those from
    8000000000 on have runs of every kind in a cluster; in those from 9000000000 on workflows order runs of every kind, which
    people end and delete; those from
    10000000000 on have submitted jobs and plugins that answer late, wrong or never.

    --crash-everywhere   one story more for every commit and both sides of it
    -v                   tell the story

A seed that fails is printed with the command that replays it. Add it to BROKE_ONCE in crates/testkit/tests/it/main.rs
together with the fix.";

/// By family of worlds: its first seed, and how many seeds of a night are attacked lightly and everywhere.
const NIGHT: [(u64, u64, u64); 10] = [
    (0, 7_000, 40),
    (MIXED, 1_500, 14),
    (FAMILIES, 500, 6),
    (CLUSTERS, 1_000, 6),
    (JOBS, 1_500, 14),
    (KUBE_JOBS, 1_500, 14),
    (FLOWS, 1_000, 10),
    (COMPANIES, 1_000, 6),
    (PARENTS, 1_000, 10),
    (WALKS, 1_500, 14),
];

/// Seeds of one day. Days come again after some decades.
const DAY: u64 = 20_000;
const DAYS: u64 = 20_000;

/// Below this are the seeds of every change.
const FIRST_NIGHT: u64 = 1_000_000;

struct Options {
    seeds: Range<u64>,
    one: bool,
    nightly: bool,
    effort: Effort,
    crash: Option<Crashes>,
    tell: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match read(&words) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("{why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let failures = match options {
        Options { nightly: true, .. } => nightly(),
        Options { one: true, .. } => replay(&options),
        options => attack(options.seeds, options.effort),
    };
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(words: &[String]) -> Result<Option<Options>, String> {
    let mut options =
        Options { seeds: 0..2000, one: false, nightly: false, effort: Effort::Light, crash: None, tell: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |of: &str| words.next().ok_or_else(|| format!("{of} needs a value"));
        match word.as_str() {
            "-h" | "--help" => return Ok(None),
            "-v" | "--verbose" => options.tell = true,
            "--nightly" => options.nightly = true,
            "--crash-everywhere" => options.effort = Effort::Everywhere,
            "--crash" => options.crash = Some(value("--crash")?.parse().map_err(|why| format!("--crash: {why}"))?),
            "--seeds" => options.seeds = range(value("--seeds")?)?,
            seed => {
                let seed: u64 = seed.parse().map_err(|_| format!("`{seed}` is neither an option nor a seed"))?;
                (options.seeds, options.one) = (seed..seed + 1, true);
            }
        }
    }
    Ok(Some(options))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range of seeds; write it as 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let seeds = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
    if seeds.is_empty() { Err(wrong()) } else { Ok(seeds) }
}

/// One seed, in one story or in all of them.
fn replay(options: &Options) -> u64 {
    let seed = options.seeds.start;
    let watched = Watch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| watched.guard(hangs));
        watched.begin(0, seed);
        let outcome = match options.crash {
            Some(crashes) => tell(seed, crashes, options.tell),
            None if options.tell => {
                tell(seed, Crashes::Never, true).and_then(|()| tell(seed, Crashes::Sometimes, true))
            }
            None => Ok(()),
        };
        let outcome = outcome.and_then(|()| match options.crash {
            Some(_) => Ok(Report::default()),
            None => explore(seed, options.effort, &|| watched.begin(0, seed)),
        });
        watched.dismiss();
        match outcome {
            Ok(report) => {
                println!("seed {seed} holds ({} stories, {} crashes)", report.stories, report.crashes);
                0
            }
            Err(failure) => {
                println!("{failure}");
                1
            }
        }
    })
}

fn tell(seed: u64, crashes: Crashes, story: bool) -> Result<(), Box<Failure>> {
    let world = World::new(seed)?;
    let ending = run(&world, crashes, story)?;
    ending.story.iter().for_each(|line| println!("{line}"));
    compare(&world, crashes, &run(&world, Crashes::Never, false)?, &ending)
}

/// Nothing can be done about an engine that does not come back but to say where.
fn hangs(seed: u64) {
    println!("seed {seed} hangs: the engine does not come back; see it with: cargo xtask sim {seed} -v");
    std::process::abort();
}

/// The seeds of today, of every family.
fn nightly() -> u64 {
    let day = octoflow_control::now().0.unsigned_abs() / (24 * 3_600_000_000);
    let first = FIRST_NIGHT + day % DAYS * DAY;
    let mut failed = 0;
    for (family, light, everywhere) in NIGHT {
        let from = family + first;
        failed += attack(from..from + light, Effort::Light);
        failed += attack(from + light..from + light + everywhere, Effort::Everywhere);
    }
    failed
}

/// Many seeds, on all processors.
fn attack(seeds: Range<u64>, effort: Effort) -> u64 {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let end = seeds.end;
    let failed = AtomicU64::new(0);
    let total = Mutex::new(Report::default());
    let watched = Watch::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(Watch::LANES);
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..workers)
            .map(|lane| {
                let (next, failed, total, watched) = (&next, &failed, &total, &watched);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= end {
                            return;
                        }
                        match explore(seed, effort, &|| watched.begin(lane, seed)) {
                            Ok(report) => total.lock().unwrap_or_else(PoisonError::into_inner).add(report),
                            Err(failure) => {
                                failed.fetch_add(1, Ordering::Relaxed);
                                println!("{failure}");
                            }
                        }
                        watched.end(lane);
                    }
                })
            })
            .collect();
        scope.spawn(|| watched.guard(hangs));
        for lane in lanes {
            if lane.join().is_err() {
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        watched.dismiss();
    });
    let failed = failed.into_inner();
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (from, seeds) = (seeds.start, seeds.end - seeds.start);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds from {from}, {} stories, {} commits, {} crashes, {} nodes in {seconds:.1} s ({:.0} seeds/s): {failed} failed",
        total.stories,
        total.commits,
        total.crashes,
        total.nodes,
        seeds as f64 / seconds,
    );
    if total.seen != Seen::default() {
        let Seen { starts, preemptions, gangs, drained } = total.seen;
        println!(
            "    judged: {starts} starts, {preemptions} preemptions, {gangs} starts in gangs, {drained} drained nodes"
        );
    }
    failed
}
