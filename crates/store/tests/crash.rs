//! Kills a process in the middle of committing, again and again, and checks what it left behind. The child is this same
//! test binary; an environment variable tells it which role it has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use octoflow_model::{RunId, Time};
use octoflow_store::{Batch, Change, Error, Reader, RunRow, Store};

const DATA_DIR: &str = "STORE_CRASH_DATA_DIR";
const ROUNDS: u64 = 10;
const RUNS: [RunId; 2] = [RunId(1), RunId(2)];

#[test]
fn every_acknowledged_batch_survives_ten_kills() {
    if let Some(dir) = env::var_os(DATA_DIR) {
        commit_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        // Some rounds die early, some after the log was merged a few times.
        let patience = 20 + round * 150;
        acknowledged = kill_after(dir.path(), patience, acknowledged);
        let kept = whole_batches(dir.path());
        assert!(kept >= acknowledged, "round {round}: {acknowledged} batches were acknowledged, {kept} are there");
        // The batches in flight may or may not be there; the next child continues after those that are.
        acknowledged = kept;
    }
    assert!(acknowledged > ROUNDS * 20);
}

/// Lets a child acknowledge about `patience` batches, kills it, and returns how many there are in all.
fn kill_after(dir: &Path, patience: u64, before: u64) -> u64 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "every_acknowledged_batch_survives_ten_kills", "--nocapture"])
        .env(DATA_DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = before;
    let mut told = 0;
    let mut see = |line: std::io::Result<String>| {
        // The harness prints lines of its own, and the kill may cut the last one short.
        if let Some(total) = line.unwrap().strip_prefix("durable ").and_then(|line| line.strip_suffix(" batches")) {
            acknowledged = total.parse().unwrap();
            told += 1;
        }
        told
    };
    while lines.next().map(&mut see).expect("the child commits until it is killed") < patience {}
    child.kill().unwrap();
    for line in lines {
        see(line);
    }
    child.wait().unwrap();
    acknowledged
}

/// Returns the number of batches in the store, after checking that none of them is incomplete.
fn whole_batches(dir: &Path) -> u64 {
    let reader = Reader::open(dir).unwrap();
    let counts = RUNS.map(|run| {
        let mut next = 0;
        reader
            .facts(run, 0, |facts| {
                assert_eq!(facts.first, next);
                assert_eq!(facts.lines.iter().filter(|byte| **byte == b'\n').count() as u64, facts.count);
                next += facts.count;
                Ok::<(), Error>(())
            })
            .unwrap();
        next
    });
    assert_eq!(counts[0], counts[1]);
    let object = reader.object("Count", "", "batches").unwrap().map_or(0, |object| number(&object.body));
    assert_eq!(object, counts[0]);
    counts[0]
}

/// The child process.
fn commit_until_killed(dir: &Path) -> ! {
    let store = Store::open(dir).unwrap();
    let reader = store.reader().unwrap();
    let mut next = match reader.object("Count", "", "batches").unwrap() {
        Some(object) => number(&object.body),
        None => {
            let row = |run: RunId| RunRow::new(run, "default", "Workflow", &format!("run-{run}"), "uid", Time(0));
            store.commit_wait(Batch::from_iter(RUNS.map(|run| Change::NewRun(Box::new(row(run)))))).unwrap();
            0
        }
    };
    loop {
        let total = next + 1;
        let mut batch = Batch::from(Change::PutObject {
            kind: "Count".to_owned(),
            namespace: String::new(),
            name: "batches".to_owned(),
            uid: String::new(),
            body: total.to_string().into_bytes(),
        });
        let lines = format!("{{\"batch\":{total},\"fill\":\"{}\"}}\n", "x".repeat(700)).into_bytes();
        batch.extend(RUNS.map(|run| Change::AppendFacts { run, first: next, count: 1, lines: lines.clone() }));
        let tell = move |outcome: Result<_, Error>| {
            outcome.unwrap();
            let mut told = std::io::stdout();
            writeln!(told, "durable {total} batches").unwrap();
        };
        // Every fourth batch is waited for, so that groups of several batches are in flight when the kill comes.
        store.commit(batch, tell);
        if total.is_multiple_of(4) {
            store.commit_wait(Batch::new()).unwrap();
        }
        next = total;
    }
}

fn number(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().parse().unwrap()
}
