//! Many log followers at once, through every face: they need no thread each, all of them get every line and the end,
//! and other requests are answered as usual.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;

use crate::{
    crowd::{Listener, all},
    pace,
    stage::Stage,
    wire::{http::ask, server::Server, waiting::eventually},
};

/// Four times as many as there can be blocking threads.
const MANY: usize = 2000;

const WORKFLOWS: &str = "/api/v1/workflows/default";
const KUBE: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";

/// Prints a line, and another one when it is stopped.
fn talker() -> Vec<u8> {
    let script = "trap 'echo last words; exit 0' TERM; echo first words; while :; do sleep 0.1; done";
    let container = json!({"image": "busybox", "command": ["sh", "-c"], "args": [script]});
    let spec = json!({"entrypoint": "talk", "templates": [{"name": "talk", "container": container}]});
    let workflow = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "talker"}, "spec": spec,
    });
    json!({ "workflow": workflow }).to_string().into_bytes()
}

#[test]
fn two_thousand_followers_get_every_line_and_others_do_not_notice() {
    let stage = Stage::new();
    let limits = ["--max-watches", "4000", "--max-watches-per-token", "4000", "--max-connections-per-address", "4000"];
    let mut server = Server::start(&stage.data_dir(), &limits);
    let to = server.address;
    assert_eq!(ask(to, "POST", WORKFLOWS, &[], &talker()).status, 200);
    let faces = [
        "/api/octoflow/v1/runs/default/talker/lines?follow=true",
        "/api/v1/namespaces/default/pods/talker/log?follow=true",
        "/api/v1/workflows/default/talker/log?logOptions.follow=true",
        "/api/v1/workflows/default/talker/log?logOptions.follow=true&grep=words&podName=talker",
    ];
    eventually("the pod runs", || ask(to, "GET", faces[1].split('?').next().unwrap(), &[], b"").status == 200);
    let asked = |name: &str| {
        let spec = json!({"entrypoint": "a", "templates": [{"name": "a", "suspend": {"duration": "0s"}}]});
        let other = json!({"workflow": {"metadata": {"name": name}, "spec": spec}}).to_string();
        [("GET", "/version"), ("POST", WORKFLOWS), ("GET", KUBE)].map(|(method, path)| {
            let body = if method == "POST" { other.as_bytes() } else { b"" };
            let took = pace::once(|| {
                let reply = ask(to, method, path, &[], body);
                assert!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.text());
            });
            (path, took)
        })
    };
    let mut before: BTreeMap<&str, Duration> = BTreeMap::new();
    for round in 0..5 {
        for (what, took) in asked(&format!("before-{round}")) {
            let known = before.entry(what).or_default();
            *known = took.max(*known);
        }
    }
    let mut followers: Vec<Listener> = (0..MANY).map(|at| Listener::new(to, faces[at % faces.len()])).collect();
    all(&mut followers, "the first line", |one| one.heard("first words"));

    // While all of them wait, everything else works as before.
    for round in 0..5 {
        for (what, took) in asked(&format!("other-{round}")) {
            assert!(took < pace::limit(before[what]), "{what} took {took:?}, before that {:?}", before[what]);
        }
    }
    let stop = || assert_eq!(ask(to, "PUT", "/api/v1/workflows/default/talker/stop", &[], b"{}").status, 200);
    let took = pace::once(stop);
    assert!(took < pace::limit(before[WORKFLOWS]), "stopping took {took:?}");
    all(&mut followers, "the last line and the end", |one| one.over && one.heard("last words"));
    server.stop();
}
