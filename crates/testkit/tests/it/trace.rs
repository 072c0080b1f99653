//! The scheduler in virtual time: whole traces of jobs, with what an ideal scheduler could not beat beside them.

mod play;

use std::{io::Write, time::Duration};

use octoflow_engine::schedule::spec::QueueSpec;
use octoflow_testkit::sim::Draw;

use play::{Job, Played, Trace, node};

const QUEUES: [&str; 5] = ["a", "b", "c", "d", "default"];
const NODES: u64 = 16;
const CORES: u64 = 16;
/// Cores of tasks in the tests of shares.
const SIZES: [u64; 3] = [1, 2, 4];
/// Machines of the tests of shares.
const FEW: u64 = 4;

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// Returns a deadline that people would set: a power of two of seconds, which is more than it takes.
fn rounded(length: Duration) -> Duration {
    Duration::from_secs((length.as_secs() + 1).next_power_of_two())
}

/// Jobs of many sizes and lengths: most are small and short, some are gangs, some are chains of several tasks.
fn mixed(seed: u64, count: usize) -> Trace {
    let mut draw = Draw::new(seed, "trace");
    let nodes = (0..NODES).map(|at| {
        let gpus = if at % 4 == 0 { 4 } else { 0 };
        node(&format!("n{at}"), &[("cpu", CORES * 1000), ("pods", 64), ("nvidia.com/gpu", gpus)])
    });
    let mut arrival = Duration::ZERO;
    let jobs = (0..count).map(|_| {
        // They come faster than they can be served.
        arrival += Duration::from_secs(draw.below(25));
        let length = Duration::from_secs(match draw.below(10) {
            0..=4 => 10 + draw.below(290),
            5..=8 => 300 + draw.below(1500),
            _ => 1800 + draw.below(1800),
        });
        let cores = *draw.pick(&[1, 1, 1, 2, 2, 4, 4, 8, 16]);
        let members = if draw.chance(12) { *draw.pick(&[2, 4, 8]) } else { 1 };
        let stages = if members == 1 && draw.chance(10) { draw.between(2, 4) as u32 } else { 1 };
        Job {
            arrival,
            length: length / stages,
            stages,
            members,
            cpu_milli: cores * 1000,
            gpus: if members == 1 && draw.chance(8) { *draw.pick(&[1, 2, 4]) } else { 0 },
            queue: (*draw.pick(&QUEUES)).to_owned(),
            tenant: (*draw.pick(&["ann", "bob", "cid"])).to_owned(),
            priority: i32::try_from(draw.below(4)).unwrap_or(0),
            // Some jobs have no deadline.
            bound: (!draw.chance(20)).then(|| rounded(length / stages)),
        }
    });
    let jobs = jobs.collect();
    let queues = QUEUES.iter().map(|name| QueueSpec::new(*name)).collect();
    Trace { nodes: nodes.collect(), queues, jobs, preemptable: Some(false), longest_wait: None }
}

#[test]
fn two_thousand_mixed_jobs_end_near_what_is_possible() {
    let trace = mixed(1, 2000);
    let bound = trace.lower_bound().as_secs_f64();
    let played = trace.play();
    let strict = Trace {
        queues: trace.queues.iter().map(|queue| QueueSpec { strict: true, ..queue.clone() }).collect(),
        ..trace.clone()
    };
    let strict = strict.play().makespan.as_secs_f64();
    let took = played.makespan.as_secs_f64();
    let _ = writeln!(
        std::io::stderr(),
        "at least {bound:.0} s, took {took:.0} s ({:.3}), in strict order {strict:.0} s ({:.3}); longest wait {:.0} s",
        took / bound,
        strict / bound,
        played.longest_wait().as_secs_f64(),
    );
    assert_eq!(played.started, trace.tasks(), "every task ran");
    assert!(took <= 1.15 * bound, "it took {took} s where {bound} s are possible");
}

/// Reports whether a share is within 5 % of what it should be.
fn is_near(share: f64, ideal: f64) -> bool {
    (share / ideal - 1.0).abs() < 0.05
}

/// A queue that always has work of these sizes and lengths.
fn flood(draw: &mut Draw, queue: &str, sizes: &[u64], longest: u64, hours: u64) -> Vec<Job> {
    let mut work = 0;
    let mut jobs = Vec::new();
    // Twice as much as all nodes can do in that time.
    while work < 2 * FEW * CORES * hours * 3600 {
        let (cores, seconds) = (*draw.pick(sizes), 30 + draw.below(longest));
        work += cores * seconds;
        let length = Duration::from_secs(seconds);
        jobs.push(Job {
            queue: queue.to_owned(),
            cpu_milli: cores * 1000,
            length,
            bound: Some(rounded(length)),
            ..Job::default()
        });
    }
    jobs
}

/// Plays floods for some hours and returns what each queue used of all cpu of that time.
fn shares(queues: Vec<QueueSpec>, floods: &[(&[u64], u64)], hours: u64) -> Vec<f64> {
    let mut draw = Draw::new(7, "shares");
    let nodes = (0..FEW).map(|at| node(&format!("n{at}"), &[("cpu", CORES * 1000), ("pods", 64)])).collect();
    let names: Vec<String> = queues.iter().map(|queue| queue.name.to_string()).collect();
    let jobs =
        names.iter().zip(floods).flat_map(|(name, (sizes, longest))| flood(&mut draw, name, sizes, *longest, hours));
    let trace = Trace { nodes, jobs: jobs.collect(), queues, preemptable: Some(false), longest_wait: None };
    let until = minutes(60 * hours);
    let played: Played = trace.play_until(until);
    let all = (FEW * CORES * 1000) as f64 * until.as_secs_f64();
    names.iter().map(|name| played.used(name) / all).collect()
}

#[test]
fn equal_queues_under_load_get_equal_shares() {
    // Short tasks against long ones. Small tasks would get more than large ones: they fit where a large one waits for room,
    // and a queue that is blocked never stops others from borrowing.
    let queues = ["a", "b", "c", "d"].map(QueueSpec::new).to_vec();
    let found = shares(queues, &[(&SIZES, 120), (&SIZES, 1800), (&SIZES, 3600), (&SIZES, 600)], 6);
    let _ = writeln!(std::io::stderr(), "shares of equal queues: {found:.4?}");
    assert!(found.iter().all(|share| is_near(*share, 0.25)), "{found:?}");
    assert!(found.iter().sum::<f64>() > 0.95, "the machines are busy: {found:?}");
}

#[test]
fn weights_are_shares_at_every_level() {
    let below =
        |name: &'static str, weight: u32| QueueSpec { parent: Some("team".into()), weight, ..QueueSpec::new(name) };
    let mut queues = vec![below("a", 1), below("b", 3), QueueSpec { weight: 2, ..QueueSpec::new("c") }];
    queues.push(QueueSpec { weight: 2, ..QueueSpec::new("team") });
    let found = shares(queues, &[(&SIZES, 300), (&SIZES, 900), (&SIZES, 600)], 6);
    let _ = writeln!(std::io::stderr(), "shares by weight: {found:.4?}");
    // The queue `default` has weight 1 and is idle, so what it deserves is lent.
    assert!(is_near(found[0], 0.125) && is_near(found[1], 0.375) && is_near(found[2], 0.5), "{found:?}");
}

#[test]
fn nobody_waits_longer_than_its_longest_wait_and_the_longest_task() {
    let longest_task = minutes(20);
    let longest_wait = minutes(30);
    let mut draw = Draw::new(3, "starvation");
    let nodes = (0..4).map(|at| node(&format!("n{at}"), &[("cpu", 8000), ("pods", 64)])).collect();
    let mut jobs = Vec::new();
    // Small tasks of high priority and of tenants that use little take all room as it comes.
    for at in 0..4000_u64 {
        let length = Duration::from_secs(60 + draw.below(longest_task.as_secs() - 60));
        jobs.push(Job {
            arrival: Duration::from_secs(at * 25),
            cpu_milli: 1000,
            length,
            bound: (!draw.chance(10)).then_some(longest_task),
            priority: 1000,
            tenant: format!("tenant-{}", at % 200),
            ..Job::default()
        });
    }
    // Whole machines, and gangs over several of them, by a tenant that has used the most.
    for at in 0..20_u64 {
        jobs.push(Job {
            arrival: minutes(60 + at * 60),
            cpu_milli: 8000,
            members: if at % 4 == 0 { 3 } else { 1 },
            length: minutes(10),
            bound: Some(longest_task),
            tenant: "greedy".to_owned(),
            ..Job::default()
        });
    }
    let queues = vec![QueueSpec::new("default")];
    let trace = Trace { nodes, queues, jobs, preemptable: Some(false), longest_wait: Some(longest_wait) };
    let played = trace.play();
    let longest = played.longest_wait();
    let _ = writeln!(std::io::stderr(), "longest wait {:.0} s", longest.as_secs_f64());
    assert!(longest > longest_wait, "somebody was overtaken for as long as that may be: {longest:?}");
    assert_eq!(played.started, trace.tasks());
    assert!(longest <= longest_wait + longest_task, "{longest:?}");
}
