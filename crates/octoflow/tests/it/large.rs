//! The memory of a server while many get the same large workflow.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    stage::Stage,
    wire::{
        http::{ask, call},
        server::Server,
        waiting::within,
    },
};

const RUNS: &str = "/api/v1/workflows/default";
/// Enough for an answer of some ten megabytes, which takes ten times that to render.
const NODES: usize = 20_000;
/// Noise of the allocator and of what else the server does.
const NOISE: u64 = 96 << 20;

/// Returns the most memory that the server had while `work` was done.
fn most_memory(server: &Server, work: impl FnOnce()) -> u64 {
    let (most, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                most.fetch_max(server.memory(), Ordering::AcqRel);
                thread::sleep(Duration::from_millis(2));
            }
        });
        work();
        over.store(true, Ordering::Release);
    });
    most.into_inner()
}

#[test]
fn many_who_get_a_large_workflow_cost_little_more_than_one() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let to = server.address;
    let step = json!({"name": "a", "template": "work", "withSequence": {"count": NODES}, "when": "1 == 2"});
    let spec = json!({"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[step], [{"name": "b", "template": "work"}], [{"name": "c", "template": "wait"}]]},
        {"name": "work", "container": {"image": "busybox", "command": ["true"]}},
        {"name": "wait", "suspend": {}},
    ]});
    let workflow = json!({"workflow": {"metadata": {"name": "wide"}, "spec": spec}});
    assert_eq!(call(to, "POST", RUNS, Some(&workflow)).unwrap().status, 200);
    let progress = || call(to, "GET", &format!("{RUNS}/wide?fields=status.progress"), None).unwrap().body;
    let begun = || progress()["status"]["progress"].as_str().is_some_and(|told| told.starts_with("1/"));
    assert!(within(Duration::from_secs(120), begun), "{}", progress());

    let get = |path: &str| {
        let found = ask(to, "GET", path, &[], b"");
        assert!(found.status == 200 && found.bytes.len() > NODES * 200, "{}: {}", found.status, found.bytes.len());
    };
    let kube = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/wide";
    let argo = format!("{RUNS}/wide");
    let before = server.memory();
    let one = most_memory(&server, || get(&argo)).saturating_sub(before);
    let many = most_memory(&server, || {
        thread::scope(|scope| {
            (0..8).for_each(|at| {
                drop(scope.spawn({
                    let path = if at % 2 == 0 { kube } else { argo.as_str() };
                    move || get(path)
                }))
            })
        });
    })
    .saturating_sub(before);
    // Two are rendered at once, in two forms that are sent meanwhile.
    let limit = 3 * one + NOISE;
    assert!(many <= limit, "eight took {} MiB where one takes {} MiB", many >> 20, one >> 20);
    server.kill();
}
