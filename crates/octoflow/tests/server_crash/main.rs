//! Kill -9 of the real server, again and again, under load: nothing acknowledged is lost, no end changes, no step runs
//! twice, everything ends, watchers miss nothing, no process is left behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop, and says what it saw")]

#[path = "../wire/wire.rs"]
mod wire;

mod check;
mod load;
mod others;
mod preempt;
mod sabotage;
mod shape;
mod witness;

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    load::{Dice, Ledger, RUNS, Town, client},
    sabotage::{Sabotage, Snapshot},
    shape::Shape,
    wire::{
        http::call,
        processes::{left_behind, naming},
        server::Server,
        waiting::{eventually, within},
    },
    witness::{Seen, terminal},
};

const CLIENTS: u64 = 4;
/// Everything that was begun ends well before this, unless it is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

fn start(data_dir: &Path) -> Server {
    Server::start(data_dir, &["--parallelism", "8"])
}

/// Configuration of one test.
struct Trial {
    kills: usize,
    /// Every so many kills the spawner is killed too; never when this is nothing.
    spawner: Option<usize>,
    /// Number of runs that wait from the first kill to the last.
    crowd: usize,
    sabotage: Option<Sabotage>,
}

/// Result of one test.
struct Outcome {
    /// Violated guarantees.
    broken: Vec<String>,
    runs: usize,
    sets: usize,
    jobs: usize,
}

#[test]
fn a_server_killed_twenty_times_keeps_every_promise() {
    const KILLS: usize = 20;
    let trial = Trial { kills: KILLS, spawner: Some(7), crowd: 210, sabotage: None };
    let Outcome { broken, runs, sets, jobs } = trial.run();
    assert!(broken.is_empty(), "{} promises are broken:\n{}", broken.len(), broken.join("\n"));
    assert!(
        runs > 210 + KILLS && sets > 3 && jobs > 3,
        "so few prove nothing: {runs} workflows, {sets} TaskSets, {jobs} Jobs"
    );
}

/// Checks that the checks find this fault.
fn finds(sabotage: Sabotage, what: &str) {
    let Outcome { broken, .. } = Trial { kills: 2, spawner: None, crowd: 5, sabotage: Some(sabotage) }.run();
    assert!(broken.iter().any(|told| told.contains(what)), "{sabotage:?} was not found:\n{}", broken.join("\n"));
}

#[test]
fn an_answer_before_its_sync_is_found() {
    finds(Sabotage::AnswerBeforeSync, "was acknowledged and is lost");
}

#[test]
fn a_dropped_commit_is_found() {
    finds(Sabotage::DroppedCommit, "was acknowledged and is lost");
}

#[test]
fn a_step_that_is_started_twice_is_found() {
    finds(Sabotage::SecondStart, "ran 2 times");
}

impl Trial {
    #[expect(clippy::print_stdout, reason = "how much was tried is part of the result")]
    fn run(&self) -> Outcome {
        let place = tempfile::tempdir().unwrap();
        let (data_dir, host) = (place.path().join("data"), place.path().join("out"));
        std::fs::create_dir(&host).unwrap();
        let server = start(&data_dir);
        let address = Mutex::new(server.address);
        let (over, unwatched) = (AtomicBool::new(false), AtomicBool::new(false));
        let (ledger, seen) = (Mutex::new(Ledger::default()), Mutex::new(Seen::default()));
        let town = Town { address: &address, over: &over, host: &host, ledger: &ledger };
        let (mut server, runs, sets, jobs, others) = thread::scope(|scope| {
            let _end = OnDrop(&[&over, &unwatched]);
            scope.spawn(|| witness::watch(&address, &unwatched, &seen));
            load::prepare(self.crowd, &town);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let town = &town;
                    scope.spawn(move || client(number, town))
                })
                .collect();
            let mut server = self.kill(server, &data_dir, &town);
            if let Some(sabotage) = self.sabotage {
                server = broken_by(sabotage, server, &data_dir, &town);
            }
            over.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().unwrap());
            let held = check::listed(server.address).into_iter().filter(|(name, run)| {
                name.starts_with("held-") && !terminal(run["status"]["phase"].as_str().unwrap_or_default())
            });
            assert!(
                self.sabotage.is_some() || held.count() == self.crowd,
                "the crowd waits until somebody lets it go on"
            );
            load::hold_schedule(server.address);
            others::hold(server.address);
            let (runs, sets) = until_all_are_over(&server);
            // The watcher gets every end soon or never; the check below reports what was missing.
            within(Duration::from_secs(10), || {
                check::watched(&seen.lock().unwrap(), &runs, &ledger.lock().unwrap()).is_empty()
            });
            unwatched.store(true, Ordering::Relaxed);
            let jobs = check::jobs(server.address);
            let others = others::listed(server.address);
            (server, runs, sets, jobs, others)
        });
        let (ledger, seen) = (ledger.into_inner().unwrap(), seen.into_inner().unwrap());
        println!(
            "{} workflows, {} TaskSets, {} Jobs, {} Kubernetes Jobs and JobFlows, {} requests, {} events, {} lists",
            runs.len(),
            sets.len(),
            jobs.len(),
            others.len(),
            ledger.requests,
            seen.events,
            seen.lists
        );
        let mut broken = check::promises(&ledger, &runs);
        broken.extend(check::scheduled(&ledger, &runs));
        broken.extend(check::task_sets(&ledger, &sets));
        broken.extend(check::volcano_jobs(&ledger, &jobs, server.address));
        broken.extend(check::objects(&ledger, server.address));
        broken.extend(check::watched(&seen, &runs, &ledger));
        server.stop();
        broken.extend(check::marks(&ledger, &runs, &sets, &jobs, &host));
        broken.extend(others::check(&ledger, &others, &host));
        broken.extend(check::stored(&data_dir, &runs));
        assert_eq!(left_behind(&data_dir), Vec::<String>::new());
        Outcome { broken, runs: runs.len(), sets: sets.len(), jobs: jobs.len() }
    }

    /// Kills the server again and again, at irregular but repeatable times; some kills come while unfinished runs are
    /// being resumed.
    fn kill(&self, mut server: Server, data_dir: &Path, town: &Town<'_>) -> Server {
        let mut dice = Dice(0x5eed);
        for number in 1..=self.kills {
            thread::sleep(Duration::from_millis(50 + dice.below(900) as u64));
            if self.spawner.is_some_and(|every| number % every == 0) {
                town.ledger.lock().unwrap().spawner_killed = true;
                kill_spawner(data_dir);
                // Sometimes the server lives long enough to notice.
                thread::sleep(Duration::from_millis(dice.below(2) as u64 * 300));
            }
            server.kill();
            server = start(data_dir);
            *town.address.lock().unwrap() = server.address;
        }
        server
    }
}

/// Kills the process that has the tasks, as if it ran out of memory.
fn kill_spawner(data_dir: &Path) {
    for told in naming(&format!("__spawner {}", data_dir.display())) {
        let Some((number, _)) = told.split_once(':') else { continue };
        // It may be gone already.
        let _ = Command::new("kill").args(["-KILL", number]).status();
    }
}

/// Makes the server fail in this way, once.
fn broken_by(sabotage: Sabotage, mut server: Server, data_dir: &Path, town: &Town<'_>) -> Server {
    let again = |mut server: Server, act: &mut dyn FnMut()| {
        server.kill();
        act();
        let server = start(data_dir);
        *town.address.lock().unwrap() = server.address;
        server
    };
    match sabotage {
        Sabotage::AnswerBeforeSync => {
            let mut snapshot = None;
            server = again(server, &mut || snapshot = Some(Snapshot::take(data_dir)));
            load::submit("acknowledged", Shape::Chain, town);
            server = again(server, &mut || snapshot.take().into_iter().for_each(|snapshot| snapshot.restore(data_dir)));
        }
        Sabotage::DroppedCommit => {
            load::submit("dropped", Shape::Held, town);
            server = again(server, &mut || sabotage::drop_run(data_dir, "dropped"));
        }
        Sabotage::SecondStart => {
            load::submit("twice", Shape::Long, town);
            eventually("its step runs", || {
                std::fs::read_to_string(town.host.join("marks")).unwrap_or_default().contains("twice l 0")
            });
            // Other losses with the spawner are not the subject here.
            town.ledger.lock().unwrap().spawner_killed = true;
            server = again(server, &mut || {
                kill_spawner(data_dir);
                sabotage::forget_decisions(data_dir, "twice");
            });
        }
    }
    server
}

/// Resumes everything that waits until nothing is open. Returns all workflows and all TaskSets.
fn until_all_are_over(server: &Server) -> (BTreeMap<String, Value>, BTreeMap<String, Value>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (runs, sets) = (check::listed(server.address), check::sets(server.address));
        let open: Vec<&String> = runs
            .iter()
            .filter(|(_, run)| {
                let over = terminal(run["status"]["phase"].as_str().unwrap_or_default());
                // What was deleted goes away once it has ended.
                !over || !run["metadata"]["deletionTimestamp"].is_null()
            })
            .map(|(name, _)| name)
            .collect();
        let working = |set: &&Value| !terminal(set["status"]["state"].as_str().unwrap_or_default());
        let jobs = check::jobs(server.address);
        let busy = |job: &&Value| {
            !matches!(job["status"]["state"]["phase"].as_str(), Some("Completed" | "Failed" | "Terminated"))
        };
        let others = others::listed(server.address);
        let unfinished = || others.iter().filter(|((path, _), object)| !others::is_over(path, object));
        if open.is_empty()
            && !sets.values().any(|set| working(&set))
            && !jobs.values().any(|job| busy(&job))
            && unfinished().next().is_none()
        {
            return (runs, sets);
        }
        for name in &open {
            call(server.address, "PUT", &format!("{RUNS}/{name}/resume"), Some(&json!({})))
                .expect("the server answers");
        }
        assert!(
            Instant::now() < deadline,
            "these are stuck:\n{}",
            open.iter()
                .map(|name| runs[*name].to_string())
                .chain(sets.values().filter(working).chain(jobs.values().filter(busy)).map(Value::to_string))
                .chain(unfinished().map(|(_, object)| object.to_string()))
                .collect::<Vec<_>>()
                .join("\n")
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// Lets the other threads end when this one fails, so that the failure is reported.
struct OnDrop<'a>(&'a [&'a AtomicBool]);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
    }
}
