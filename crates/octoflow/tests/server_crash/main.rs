//! Kill -9 of the real server, again and again, while clients make work and interfere with it: nothing acknowledged is
//! lost, no end changes, no step runs twice, everything ends, whoever watches misses nothing, no process stays behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop, and says what it saw")]

#[path = "../wire/wire.rs"]
mod wire;

mod check;
mod load;
mod shape;
mod witness;

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    load::{Dice, Ledger, RUNS, Town, client},
    wire::{http::call, processes::left_behind, server::Server, waiting::within},
    witness::{Seen, terminal},
};

const KILLS: usize = 20;
const CLIENTS: u64 = 4;
/// Everything that was begun ends well before this, unless it is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

fn start(data_dir: &Path) -> Server {
    Server::start(data_dir, &["--parallelism", "8"])
}

#[test]
fn a_server_killed_twenty_times_keeps_every_promise() {
    let place = tempfile::tempdir().unwrap();
    let (data_dir, host) = (place.path().join("data"), place.path().join("out"));
    std::fs::create_dir(&host).unwrap();
    let mut server = start(&data_dir);
    let address = Mutex::new(server.address);
    let (over, unwatched) = (AtomicBool::new(false), AtomicBool::new(false));
    let (ledger, seen) = (Mutex::new(Ledger::default()), Mutex::new(Seen::default()));
    let town = Town { address: &address, over: &over, host: &host, ledger: &ledger };
    let (mut server, runs) = thread::scope(|scope| {
        let _end = OnDrop(&[&over, &unwatched]);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let town = &town;
                scope.spawn(move || client(number, town))
            })
            .collect();
        scope.spawn(|| witness::watch(&address, &unwatched, &seen));
        let mut dice = Dice(0x5eed);
        for _ in 0..KILLS {
            // Irregular but repeatable moments; some come while everything unfinished is still being taken up.
            thread::sleep(Duration::from_millis(50 + dice.below(900) as u64));
            server.kill();
            server = start(&data_dir);
            *address.lock().unwrap() = server.address;
        }
        over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        let runs = until_all_are_over(&server);
        // Whoever watches hears of every end soon or never; the check below says what was missing.
        within(Duration::from_secs(10), || {
            check::watched(&seen.lock().unwrap(), &runs, &ledger.lock().unwrap()).is_empty()
        });
        unwatched.store(true, Ordering::Relaxed);
        (server, runs)
    });
    let (ledger, seen) = (ledger.into_inner().unwrap(), seen.into_inner().unwrap());
    println!(
        "{} workflows, {} requests, {} events, {} lists",
        ledger.runs.len(),
        ledger.requests,
        seen.events,
        seen.lists
    );
    let mut broken = check::promises(&ledger, &runs);
    broken.extend(check::objects(&ledger, server.address));
    broken.extend(check::watched(&seen, &runs, &ledger));
    server.stop();
    broken.extend(check::marks(&ledger, &runs, &host));
    broken.extend(check::stored(&data_dir, &runs));
    assert!(broken.is_empty(), "{} promises are broken:\n{}", broken.len(), broken.join("\n"));
    assert!(runs.len() > KILLS, "so few workflows prove nothing: {}", runs.len());
    assert_eq!(left_behind(&data_dir), Vec::<String>::new());
}

/// Whatever waits for somebody is let go on, until nothing is open.
fn until_all_are_over(server: &Server) -> std::collections::BTreeMap<String, serde_json::Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let runs = check::listed(server.address);
        let open: Vec<&String> = runs
            .iter()
            .filter(|(_, run)| {
                let over = terminal(run["status"]["phase"].as_str().unwrap_or_default());
                // What was deleted goes away once it has ended.
                !over || !run["metadata"]["deletionTimestamp"].is_null()
            })
            .map(|(name, _)| name)
            .collect();
        if open.is_empty() {
            return runs;
        }
        for name in &open {
            call(server.address, "PUT", &format!("{RUNS}/{name}/resume"), Some(&json!({})))
                .expect("the server answers");
        }
        assert!(
            Instant::now() < deadline,
            "these are stuck:\n{}",
            open.iter().map(|name| runs[*name].to_string()).collect::<Vec<_>>().join("\n")
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// Lets the other threads end when this one fails, so that the failure is told.
struct OnDrop<'a>(&'a [&'a AtomicBool]);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
    }
}
