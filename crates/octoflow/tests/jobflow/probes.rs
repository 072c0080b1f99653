//! Conditions on running jobs.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    thread,
};

use serde_json::json;

use crate::stage::{Stage, flow, names, task, template, template_of};

#[test]
fn jf19_a_probe_on_a_task_starts_the_next_job_while_the_first_one_runs() {
    let mut stage = Stage::with_server();
    let two = json!({"tasks": [task("server", 2, &stage.waits("go")), task("other", 1, "true")]});
    stage.create(&[template_of("a", two), template("b", &stage.waits("b"))]);
    let next = json!({"name": "b", "dependsOn": {"targets": ["a"], "probe": {"taskStatusList": [
        {"taskName": "server", "phase": "Running"}]}}});
    stage.create(&[flow("test", json!([{"name": "a"}, next]))]);
    stage.until_status("test", "both run", |status| status["runningJobs"] == json!(["test-a", "test-b"]));
    stage.kill_and_restart();
    let open = stage.flow("test");
    assert_eq!(names(&open, "runningJobs"), ["test-a", "test-b"]);
    stage.say("go");
    stage.say("b");
    stage.until("test", "Succeed");
}

#[test]
fn a_condition_that_can_never_hold_fails_the_flow() {
    let stage = Stage::new();
    let next = json!({"name": "b", "dependsOn": {"targets": ["a"], "probe": {"taskStatusList": [
        {"taskName": "main", "phase": "Failed"}]}}});
    let done =
        stage.run(1, &[template("a", "true"), template("b", "true"), flow("test", json!([{"name": "a"}, next]))]);
    assert_eq!(done["status"]["state"]["phase"], "Failed", "{:#}", done["status"]);
    assert_eq!(names(&done, "completedJobs"), ["test-a"]);
}

#[test]
fn ports_are_probed_at_the_addresses_of_running_pods() {
    let stage = Stage::new();
    // Stands for what the pods serve; pods of this machine have loopback addresses.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let next = json!({"name": "b", "dependsOn": {"targets": ["a"], "probe": {"tcpSocketList": [
        {"taskName": "main", "port": port}]}}});
    let says = format!("touch {}", stage.path("go").display());
    let objects = [template("a", &stage.waits("go")), template("b", &says), flow("test", json!([{"name": "a"}, next]))];
    let done = stage.run(0, &objects);
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b"]);
    assert!(listener.accept().is_ok(), "somebody has connected");
}

/// A server that answers 302 to requests with the header once the file is there, and 503 before. Stands for what pods serve.
fn pages(up: PathBuf) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 2048];
            let read = stream.read(&mut bytes).unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]).to_lowercase();
            let good = up.exists() && text.starts_with("get /ready") && text.contains("x-asks: flow");
            let status = if good { "302 Found\r\nLocation: /elsewhere" } else { "503 No" };
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    port
}

#[test]
fn a_page_of_a_pod_is_asked_for_by_a_server_as_it_comes_and_what_held_once_holds() {
    let mut stage = Stage::with_server();
    let port = pages(stage.path("up"));
    stage.create(&[template("a", &stage.waits("go")), template("b", &stage.waits("b"))]);
    let get =
        json!({"taskName": "main", "port": port, "path": "/ready", "httpHeader": {"name": "X-Asks", "value": "flow"}});
    let next = json!({"name": "b", "dependsOn": {"targets": ["a"], "probe": {"httpGetList": [get]}}});
    stage.create(&[flow("test", json!([{"name": "a"}, next]))]);
    let held = stage.until_status("test", "the page is not good yet", |status| {
        status["conditions"]["test-b"]["message"].as_str().is_some_and(|why| why.contains("answers with status 503"))
    });
    assert_eq!(held["status"]["conditions"]["test-b"]["phase"], "waiting", "{:#}", held["status"]);
    stage.say("up");
    stage.until_status("test", "both run", |status| status["runningJobs"] == json!(["test-a", "test-b"]));
    stage.kill_and_restart();
    std::fs::remove_file(stage.path("up")).unwrap();
    assert_eq!(names(&stage.flow("test"), "runningJobs"), ["test-a", "test-b"]);
    stage.say("go");
    stage.say("b");
    stage.until("test", "Succeed");
}

#[test]
fn one_of_several_conditions_is_enough_if_the_flow_says_any() {
    let stage = Stage::new();
    let probe = json!({"taskStatusList": [
        {"taskName": "main", "phase": "Failed"}, {"taskName": "main", "phase": "Running"}]});
    let next = json!({"name": "c", "dependsOn": {"targets": ["a", "b"], "strategy": "any", "probe": probe}});
    let says = format!("touch {}", stage.path("go").display());
    let waits = stage.waits("go");
    let whole = flow("test", json!([{"name": "a"}, {"name": "b"}, next]));
    let done = stage.run(0, &[template("a", &waits), template("b", &waits), template("c", &says), whole]);
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-c"]);
}
