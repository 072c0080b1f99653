//! Watches that are not read, watches that are read slowly, and many that begin at once over many workflows.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    crowd::{Listener, all},
    pace,
    stage::Stage,
    wire::{
        http::{ask, begin},
        server::Server,
        waiting::{PATIENCE, within},
    },
};

const WORKFLOWS: &str = "/api/v1/workflows/default";
const KUBE: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";
const EVENTS: &str = "/api/v1/workflow-events/default";

/// Workflows that wait, with so many bytes each.
fn submit(to: SocketAddr, count: usize, bytes: usize) {
    let each = |from: usize| {
        for at in (from..count).step_by(4) {
            let value = "x".repeat(bytes);
            let spec = json!({
                "entrypoint": "a", "templates": [{"name": "a", "suspend": {}}],
                "arguments": {"parameters": [{"name": "p", "value": value}]},
            });
            let workflow = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
                "metadata": {"name": format!("w-{at}")}, "spec": spec,
            });
            let reply = ask(to, "POST", WORKFLOWS, &[], json!({ "workflow": workflow }).to_string().as_bytes());
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
    };
    thread::scope(|scope| (0..4).for_each(|from| drop(scope.spawn(move || each(from)))));
}

fn metric(to: SocketAddr, name: &str) -> u64 {
    let page = ask(to, "GET", "/metrics", &[], b"").text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

#[test]
fn watches_nobody_reads_cost_little_and_are_closed_while_slow_ones_go_on() {
    const SILENT: usize = 50;
    /// What a silent watch may hold: a piece that waits, one that is being sent, and one object beyond each.
    const EACH: u64 = 512 * 1024;
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let to = server.address;
    submit(to, 300, 100_000);
    // Read once first, so that caches of the server are not counted.
    let listed = ask(to, "GET", KUBE, &[], b"");
    assert!(listed.bytes.len() > 30_000_000, "{}", listed.bytes.len());
    let before = server.memory();
    let mut slow = begin(to, "GET", &format!("{KUBE}?watch=1"), &[], b"").unwrap();
    let paths = [format!("{KUBE}?watch=1"), EVENTS.to_owned()];
    let silent: Vec<Listener> = (0..SILENT).map(|at| Listener::new(to, &paths[at % 2])).collect();
    assert!(within(PATIENCE, || metric(to, "octoflow_watches") == SILENT as u64 + 1));

    let (mut most, mut unsent, mut read) = (0, 0, 0);
    let began = Instant::now();
    let closed = within(2 * PATIENCE, || {
        read += slow.piece().expect("whoever reads is not closed").map_or(0, |piece| piece.len());
        most = most.max(server.memory());
        unsent = unsent.max(metric(to, "octoflow_stream_unsent_bytes"));
        thread::sleep(Duration::from_millis(100));
        metric(to, "octoflow_watches") == 1
    });
    let grown = most.saturating_sub(before) >> 20;
    assert!(closed, "{} watches nobody reads are still open", metric(to, "octoflow_watches") - 1);
    assert!(began.elapsed() > Duration::from_secs(20), "they had time to read");
    assert!(unsent <= (SILENT as u64 + 1) * EACH, "{unsent} bytes waited to be sent");
    assert!(grown < 300, "it grew by {grown} MiB");
    // The slow one gets everything that is left.
    while read < 30_000_000 {
        read += slow.piece().expect("whoever reads is not closed").expect("a watch goes on").len();
    }
    drop((slow, silent));
    assert!(within(PATIENCE, || metric(to, "octoflow_stream_unsent_bytes") == 0));
    let left = server.memory().saturating_sub(before) >> 20;
    assert!(left < 200, "{left} MiB did not come back");
    server.stop();
}

#[test]
fn many_watches_that_begin_at_once_starve_nobody_and_miss_nothing() {
    const WATCHES: usize = 30;
    const COUNT: usize = 1_000;
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let to = server.address;
    submit(to, COUNT, 2_000);
    let version = || assert_eq!(ask(to, "GET", "/version", &[], b"").status, 200);
    let before = pace::slowest(50, version);
    let mut watches: Vec<Listener> = (0..WATCHES).map(|_| Listener::new(to, EVENTS)).collect();
    let mut slowest = Duration::ZERO;
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            all(&mut watches, "every workflow", |watch| watch.count("\"ADDED\"") >= COUNT);
        });
        while !reading.is_finished() {
            slowest = slowest.max(pace::once(version));
        }
    });
    assert!(slowest < pace::limit(before), "an answer took {slowest:?}, before that {before:?}");
    server.stop();
}
